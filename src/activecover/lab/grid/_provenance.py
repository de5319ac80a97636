"""The provenance of a cell: code, processor, BLAS kernels and versions."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

import activecover

_PACKAGE = Path(activecover.__file__).parent
#: Sources that determine the value of a cell; changes elsewhere in the package do not affect it.
_DECISIVE = (
    "lab/grid/_protocol.py", "lab/grid/_reading.py", "compiling.py", "lab/datasets", "lab/networks", "frontier", "learners", "metrics.py",
    "parallel.py", "pool", "simulate.py",
)  # fmt: skip
#: Parts that identify the origin of a cell but cannot cause a difference.
_ORIGIN = ("seed", "commit")
_UNKNOWN = "unknown"


def made_with(seed: int, reading: str = "ours") -> str:
    """Everything that a result depends on, as ``name=value`` parts without spaces."""
    parts = _parts(seed) if reading == "ours" else {"reading": reading, **_parts(seed)}
    return " ".join(f"{name}={'_'.join(value.split())}" for name, value in parts.items())


def parts_of(made: str) -> dict[str, str]:
    """The parts of a text from :func:`made_with`, of this or an earlier version.

    Examples
    --------
    >>> parts_of("seed=3 numpy=2.4.6")
    {'seed': '3', 'numpy': '2.4.6'}
    """
    return {name: value for name, _, value in (part.partition("=") for part in made.split())}


def causes(before: str, now: str) -> list[str]:
    """The differences between two such texts that can change a result.

    Examples
    --------
    >>> causes("seed=0 commit=a numpy=2.4.6 code=1", "seed=0 commit=b numpy=2.5.0 code=1")
    ['numpy 2.4.6 -> 2.5.0']
    """
    old, new = parts_of(before), parts_of(now)
    names = [name for name in {**old, **new} if name not in _ORIGIN and old.get(name) != new.get(name)]
    # Once a worker has computed convolutions, all its later cells mention PyTorch.
    names = [name for name in names if not name.startswith("torch") or (name in old and name in new)]
    return [f"{name} {old.get(name, _UNKNOWN)} -> {new.get(name, _UNKNOWN)}" for name in names]


@cache
def code_hash() -> str:
    """A hash of the source files that determine the value of a cell."""
    digest = hashlib.blake2b(digest_size=6)
    for part in _DECISIVE:
        path = _PACKAGE / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(_PACKAGE).as_posix()}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _commit() -> str:
    """The commit of a checkout, with a plus if its code has been changed; unknown for an installed package."""
    root = _PACKAGE.parents[1]
    if not (root / ".git").exists():
        return _UNKNOWN
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    changed = _git(root, "status", "--porcelain", "--", str(_PACKAGE))
    return _UNKNOWN if head is None or changed is None else f"{head}{'+' if changed else ''}"


def _git(root: Path, *command: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or _UNKNOWN


def _kernels() -> str:
    """The loaded BLAS libraries, each with the kernels chosen for this processor."""
    found = {
        f"{one['internal_api']}-{one.get('version') or _UNKNOWN}-{one.get('architecture') or _UNKNOWN}"
        for one in threadpool_info()
        if one.get("user_api") == "blas"
    }
    return ",".join(sorted(found)) or _UNKNOWN


def _parts(seed: int) -> dict[str, str]:
    import scipy.linalg
    import sklearn

    parts = {
        "seed": str(seed),
        "activecover": activecover.__version__,
        "commit": _commit(),
        "code": code_hash(),
        "cpu": _processor(),
        "blas": _kernels(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        parts["torch"] = torch.__version__
        parts["torch-kernels"] = torch.backends.cpu.get_cpu_capability()
    return parts
