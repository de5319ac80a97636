"""Threads: limits that overlap are lifted, and a cache that cannot be written is done without."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from activecover.errors import InputError
from activecover.parallel import for_each, one_blas_thread, thread_count


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_overlapping_limits_are_all_lifted():
    before = blas_threads()

    def work(_):
        with one_blas_thread():
            assert set(blas_threads()) == {1}

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(40)))
    assert blas_threads() == before


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_part_is_worked_on_once(monkeypatch, threads):
    monkeypatch.setenv("ACTIVECOVER_THREADS", str(threads))
    done = []
    for_each(done.append, range(300), blas=False)
    assert sorted(done) == list(range(300))
    # Within itself too: those who wait for others to begin would wait for ever.
    for_each(lambda _: for_each(done.append, range(10), blas=False), range(10), blas=False)
    assert len(done) == 400


@pytest.mark.parametrize("bad", [0, 7, 40])
def test_what_goes_wrong_is_said_to_who_called_and_nobody_works_on(monkeypatch, bad):
    monkeypatch.setenv("ACTIVECOVER_THREADS", "3")
    at_work = []

    def work(part):
        at_work.append(part)
        time.sleep(0.001)
        at_work.remove(part)
        if part == bad:
            raise ValueError(f"part {part}")

    with pytest.raises(ValueError, match=f"part {bad}"):
        for_each(work, range(50), blas=False)
    assert at_work == []


def test_the_number_of_threads_can_be_set(monkeypatch):
    monkeypatch.setenv("ACTIVECOVER_THREADS", "3")
    assert thread_count() == 3
    monkeypatch.setenv("ACTIVECOVER_THREADS", "none")
    with pytest.raises(InputError, match="not a number of threads"):
        thread_count()


def test_where_no_cache_can_be_written_code_is_compiled_all_the_same(tmp_path):
    """A cache folder below a file cannot be made, not even by root."""
    (tmp_path / "file").write_text("")
    script = (
        "import numba\n"
        "def refuse(*arguments, **named): raise RuntimeError('no locator available')\n"
        "numba.core.dispatcher.Dispatcher.enable_caching = refuse\n"
        "import numpy as np\nfrom activecover import ExploreCommit, Pool, simulate_one\n"
        "print(simulate_one(Pool(np.arange(9.0)[:, None]), np.arange(9) < 3, ExploreCommit([0], 'exact')).found)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path / "file")},
    )
    assert done.stdout == "3\n", done.stderr
    assert Path(tmp_path).exists()
