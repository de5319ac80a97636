"""Files of finished cells that somebody else may have written."""

import gzip
import json
import subprocess
import sys

import pytest

from activecover import InputError
from activecover.cli import main
from activecover.lab.grid import Grid

HEAD = "dataset,label,method,run,curve,reason,seconds,made_with\n"
ROW = 'letters,A,O,{run},"[1.0, 2.5]",,0.5,seed=0\n'


def include(folder, path):
    with Grid(folder, create=True) as grid:
        return grid.include(path)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("letters,A,O,-1,[1.0],,0.5,seed=0", "run -1"),
        ("letters,A,O,1e3,[1.0],,0.5,seed=0", "line 3"),
        ("letters,A,O,99999999999999999999,[1.0],,0.5,seed=0", "run 9"),
        ("letters,A,O,0,[NaN],,0.5,seed=0", "not a number"),
        ("letters,A,O,0,[1e999],,0.5,seed=0", "too large"),
        ('letters,A,O,0,"{""a"": 1}",,0.5,seed=0', "not a list"),
        ("letters,A,O,0,[[1]],,0.5,seed=0", "nested"),
        ("letters,A,O,0," + "[" * 100_000 + ",,0.5,seed=0", "nested"),
        ("letters,A,O,0,[true],,0.5,seed=0", "not a valid number"),
        ("letters,A,O,0,[1.0],,inf,seed=0", "seconds"),
        ("let\x1b[2Jters,A,O,0,[1.0],,0.5,seed=0", "not a name"),
        (f"{'x' * 3000},A,O,0,[1.0],,0.5,seed=0", "characters"),
        ("letters,A,O,0,[1.0],,0.5", "values"),
        ("letters,A,O,0,[1.0],,0.5,seed=0,more", "values"),
        ("letters,A,O,0,[1.0],,0.5,seed=1", "made with seed"),
        ("x" * 2_000_000, "a line of more"),
        ('"letters,A', "not an exported grid"),
    ],
)  # fmt: skip
def test_what_is_no_cell_is_refused_in_one_line_and_nothing_is_kept(tmp_path, row, words):
    path = tmp_path / "cells.csv"
    path.write_text(HEAD + ROW.format(run=0) + row + "\n")
    with pytest.raises(InputError, match=words) as wrong:
        include(tmp_path / "grid", path)
    assert len(str(wrong.value).splitlines()) == 1
    assert len(str(wrong.value)) < 700
    with Grid(tmp_path / "grid") as grid:
        assert len(grid) == 0
        grid.check_setting("seed", "7")


@pytest.mark.parametrize("change", [lambda data: data[:-9], lambda data: data + b"x", lambda data: b"x" + data])
def test_a_packed_file_that_is_not_whole(tmp_path, change):
    path = tmp_path / "cells.csv.gz"
    path.write_bytes(change(gzip.compress((HEAD + ROW.format(run=0)).encode())))
    with pytest.raises(InputError, match="not an exported grid"):
        include(tmp_path / "grid", path)


def test_a_small_file_that_becomes_a_huge_one_takes_no_memory(tmp_path):
    """400 megabytes that are all the same, read by a process with 256 MB to spare."""
    path = tmp_path / "cells.csv.gz"
    block = f"letters,A,O,0,,{'x' * 1900},0.5,seed=0\n".encode() * 500
    with gzip.open(path, "wb", 1) as file:
        file.write(HEAD.encode())
        for _ in range(400):
            file.write(block)
    code = (
        "import resource, sys; from activecover.lab.grid import Grid; from activecover.cli import main\n"
        "size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize() + (256 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size, size)); sys.exit(main(sys.argv[1:]))"
    )
    words = ["bench", "include", str(tmp_path / "grid"), str(path)]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert "it holds more than" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_sound_file(tmp_path, capsys):
    path = tmp_path / "cells.csv"
    path.write_text(HEAD + "".join(ROW.format(run=run) for run in range(3)))
    assert main(["bench", "include", str(tmp_path / "grid"), str(path)]) == 0
    assert "3 new cells" in capsys.readouterr().out
    with Grid(tmp_path / "grid") as grid:
        assert json.dumps([result.curve for result in grid.results()]) == json.dumps([[1.0, 2.5]] * 3)
