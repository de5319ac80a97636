"""Threads: limits that overlap are lifted, and a cache that cannot be written is done without."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from activecover.errors import InputError
from activecover.parallel import one_blas_thread, thread_count


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
        "import numpy as np\nfrom activecover import ExploreCommit, Pool, cover\n"
        "print(cover(Pool(np.arange(9.0)[:, None]), np.arange(9) < 3, ExploreCommit([0], 'exact')).found)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path / "file")},
    )
    assert done.stdout == "3\n", done.stderr
    assert Path(tmp_path).exists()
