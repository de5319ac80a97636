"""A process that reads one file for a server, within limits.

It waits for one line of JSON on standard input, writes its result as JSON to the work folder named there, and ends.
It also ends with the server, which closes its standard input.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import resource
import select
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from activecover.errors import ActiveCoverError, MissingExtraError
from activecover.intake._claims import TooLarge, check_claims
from activecover.intake._pool import make_pool
from activecover.intake._preview import preview
from activecover.intake._read import read_table
from activecover.pool import PoolFolder

ANSWER, POOL, RECIPE = "answer.json", "pool", "recipe"
#: Seconds to wait for a job.
_IDLE = 120
_MB = 1 << 20


def main() -> None:
    """Do one job."""
    if not select.select([sys.stdin], [], [], _IDLE)[0]:
        return
    line = sys.stdin.readline()
    if not line:
        return
    job = json.loads(line)
    os.umask(0o077)
    # The process is short-lived, and garbage collection over millions of rows takes longer than reading them.
    gc.disable()
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    work = Path(job["work"])
    tempfile.tempdir = job["work"]
    granted = _limit(job["memory"] * _MB, job["seconds"], job["size"])
    answer = _answer(job, granted // _MB)
    written = work / f"{ANSWER}.new"
    written.write_text(json.dumps(answer), encoding="utf-8")
    written.replace(work / ANSWER)


def _answer(job: dict[str, Any], megabytes: int) -> dict[str, Any]:
    path, work = Path(job["path"]), Path(job["work"])
    try:
        check_claims(path)
        return {"made": _JOBS[job["job"]](path, work, job["how"])}
    except MemoryError:
        text = f"reading it needs more than {megabytes:,} MB of memory; make it smaller, or start the server with more"
        return {"problem": "large", "text": f"{path}: {text} (--memory)"}
    except TooLarge as wrong:
        return {"problem": "large", "text": str(wrong)}
    except MissingExtraError as wrong:
        return {"problem": "extra", "text": str(wrong)}
    except ActiveCoverError as wrong:
        return {"problem": "input", "text": str(wrong)}
    except OSError as wrong:
        if wrong.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return {"problem": "full", "text": ""}
        return {"problem": "input", "text": f"{path}: cannot be read ({wrong.strerror})"}
    except Exception as wrong:
        # The message of the error may quote contents.
        return {"problem": "input", "text": f"{path}: cannot be read, is it damaged? ({type(wrong).__name__})"}


def _look(path: Path, work: Path, how: dict[str, Any]) -> dict[str, Any]:
    return preview(path, **how)


def _take_in(path: Path, work: Path, how: dict[str, Any]) -> dict[str, Any]:
    """Make a pool from a file, and leave it in the work folder."""
    table = read_table(path, header=how.pop("header"))
    vectors = work / "vectors.npy"
    made = make_pool(table, vectors_file=vectors, **how)
    made.recipe.save(work / RECIPE)
    PoolFolder.create(work / POOL, made.pool)
    vectors.unlink(missing_ok=True)
    return {"notes": made.notes}


_JOBS: dict[str, Callable[[Path, Path, dict[str, Any]], dict[str, Any]]] = {"preview": _look, "take in": _take_in}


# -- limits -------------------------------------------------------------------------------------------


def _limit(memory: int, seconds: int, size: int) -> int:
    """Limit the resources of this process; return the memory that it can actually use."""
    used = _status("VmSize")
    # Mapped files do not count as memory, but no genuine file maps more than this.
    mapped = memory + 4 * size
    space = _lower(resource.RLIMIT_AS, used + memory + mapped) - used
    if sys.platform == "linux":
        held = _status("VmData")
        space = min(space, _lower(resource.RLIMIT_DATA, held + memory) - held)
    _lower(resource.RLIMIT_FSIZE, memory + mapped)
    _lower(resource.RLIMIT_CPU, seconds)
    _lower(resource.RLIMIT_CORE, 0)
    return min(space, memory)


def _lower(kind: int, value: int) -> int:
    """Set a limit unless a lower one applies; return the one that applies."""
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        value = min(value, most)
    resource.setrlimit(kind, (value, value))
    return value


def _status(name: str) -> int:
    """Memory of the process of a given kind, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:  # not Linux
        return 1 << 30
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:")), 1 << 30)


def _end_with_the_server() -> None:
    sys.stdin.read()
    os._exit(1)
