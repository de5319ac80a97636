"""Ctrl-C ends a command with one line and exit code 130, whenever it comes; ignored, it stays ignored."""

import os
import random
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from interrupts import interruptible, uninterruptible

MOMENTS = 60 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 8
SIMULATION = ["simulate", "--dataset", "letters", "--label", "A", "--runs", "500", "--batch", "1%"]
GRID = ["bench", "run", "--datasets", "letters", "--labels", "A", "--methods", "EC", "--runs", "500", "--jobs", "2"]
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
#: The command from its first line on; what the interpreter does before that is not ours.
FROM_ITS_FIRST_LINE = """
import sys
from activecover.cli import main
print("up", flush=True)
sys.exit(main())
"""
SCRIPT = Path(sysconfig.get_path("scripts")) / "activecover"


def interrupt(process):
    """Send SIGINT to the whole group, as a terminal does; the exit code, and the lines on standard error."""
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    return process.returncode, [line for line in errors.splitlines() if line.strip()]


def has_loaded(process, module):
    return f"/{module}/" in Path(f"/proc/{process.pid}/maps").read_text()


@pytest.mark.parametrize(
    ("arguments", "latest", "last"),
    [
        (SIMULATION, 3, "interrupted: the figures are based on the finished runs"),
        (
            [*GRID, "--out", "grid"],
            12,
            "interrupted: the finished cells are kept; run the same command again to resume",
        ),
    ],
    ids=["simulate", "workers"],
)
def test_at_any_moment_from_the_first_line_on(tmp_path, arguments, latest, last):
    draw = random.Random(latest)
    for delay in (draw.uniform(0, latest) for _ in range(MOMENTS)):
        command = [sys.executable, "-c", FROM_ITS_FIRST_LINE, *arguments]
        process = interruptible(command, cwd=tmp_path, **PIPES)
        assert process.stdout.readline() == "up\n"
        time.sleep(delay)
        code, lines = interrupt(process)
        # What a meter had shown before stands above the last line.
        shown = [line for line in lines[:-1] if not line.startswith(("explore-commit ", "cells: "))]
        assert (code, shown) == (130, []), (delay, lines)
        assert lines[-1] in ("activecover: interrupted", last) or lines[-1].startswith("explore-commit "), delay


IN_A_DESTRUCTOR = """
import sys, time
import activecover.cli._app
class Slow:
    def __del__(self):
        print("up", flush=True)
        time.sleep(60)
def run(arguments):
    thing = Slow()
    del thing
    while True:
        time.sleep(0.1)
activecover.cli._app.run = run
from activecover.cli import main
sys.exit(main())
"""


def test_in_a_destructor_which_drops_exceptions(tmp_path):
    process = interruptible([sys.executable, "-c", IN_A_DESTRUCTOR], cwd=tmp_path, **PIPES)
    assert process.stdout.readline() == "up\n"
    assert interrupt(process) == (130, ["activecover: interrupted"])


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux shows what a process has loaded")
@pytest.mark.parametrize("module", ["numpy", "scipy", "llvmlite"])
@pytest.mark.parametrize("start", [[sys.executable, "-m", "activecover"], [str(SCRIPT)]], ids=["-m", "script"])
def test_while_modules_are_being_imported(tmp_path, start, module):
    if not Path(start[0]).exists():
        pytest.skip("the package is not installed: there is no script")
    process = interruptible([*start, *SIMULATION], cwd=tmp_path, **PIPES)
    while not has_loaded(process, module):
        assert process.poll() is None
        time.sleep(0.002)
    assert interrupt(process) == (130, ["activecover: interrupted"])


def test_a_command_that_was_started_to_ignore_it_goes_on(tmp_path):
    arguments = [*SIMULATION[:5], "--runs", "2", "--json"]
    process = uninterruptible([sys.executable, "-m", "activecover", *arguments], cwd=tmp_path, **PIPES)
    for _ in range(8):
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)
    text, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert '"runs": 2' in text


def test_a_server_that_was_started_to_ignore_it_goes_on(tmp_path):
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    httpx = pytest.importorskip("httpx", reason="httpx is not installed")
    command = [sys.executable, "-m", "activecover", "serve", "--home", "home", "--port", "0", "--no-token"]
    options = {**PIPES, "env": {**os.environ, "PYTHONUNBUFFERED": "1"}}
    process = uninterruptible(command, cwd=tmp_path, **options)
    try:
        address = process.stdout.readline().partition(" at ")[2].split()[0]
        for _ in range(3):
            os.killpg(process.pid, signal.SIGINT)
            # The server has run its handler, if it has one, before it answers.
            assert httpx.get(f"{address}health", timeout=60).status_code == 200
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.communicate()


def test_the_handler_of_a_program_that_calls_the_command_stays(tmp_path):
    code = (
        "import signal\nfrom activecover.cli import main\n"
        "handler = lambda *_: print('mine', flush=True)\nsignal.signal(signal.SIGINT, handler)\n"
        "assert main(['--version']) == 0\nassert signal.getsignal(signal.SIGINT) is handler\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=120).returncode == 0
