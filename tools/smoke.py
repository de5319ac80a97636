"""Install what was built into clean environments, and see that it works.

    python tools/smoke.py dist [python3.11 python3.12 …]

For each interpreter that can be found, an environment is made in build/smoke, the package is installed by name from the
folder, and the command and every public module are tried from an empty folder. Interpreters that are missing are named.
The last interpreter found also installs the source distribution.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import reference  # noqa: E402
import version  # noqa: E402

TRY = """
import importlib, pathlib, sys
import numpy as np
import activecover
assert activecover.__version__ == {version!r}, activecover.__version__
assert pathlib.Path(activecover.__file__).is_relative_to(sys.prefix), activecover.__file__
assert (pathlib.Path(activecover.__file__).parent / "py.typed").is_file()
for name in {modules!r}:
    importlib.import_module("activecover." + name)
for name in activecover.__all__:
    getattr(activecover, name)
pool = activecover.Pool(np.random.default_rng(0).normal(size=(60, 3)))
with activecover.Campaign(pool, log="labels.jsonl", explore=5, budget=10) as campaign:
    while items := campaign.ask():
        campaign.tell(items[0].id, int(items[0].id) < 5)
    assert campaign.status().labelled == 10
"""
COMMANDS = (
    ("activecover", "--version"),
    ("activecover", "learners"),
    ("activecover", "plan", "explore", "--prevalence", "0.02", "--components", "5", "--rows", "1000"),
    ("activecover", "simulate", "--dataset", "letters", "--label", "A", "--learner", "EC", "--runs", "1"),
    ("activecover", "serve", "--help"),
)


def run(command: list[str], folder: str | Path) -> None:
    """Run a command in a folder, away from the sources; show its output only if it fails."""
    free = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    done = subprocess.run(command, cwd=folder, env=free, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def install(python: str, place: Path, dist: Path, kind: str) -> Path:
    """A clean environment with the package; returns its folder of commands."""
    subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True)
    commands = place / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(commands / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    number = version.named()["src/activecover/__init__.py"]
    # First ours alone, by name, from the folder alone; then what it needs, from the usual index.
    if kind == "wheel":
        run([*pip, "--no-index", "--no-deps", "--find-links", str(dist), f"activecover=={number}"], place)
    else:
        run([*pip, "--no-deps", str(next(dist.glob("*.tar.gz")))], place)
    run([*pip, f"activecover[web,plot]=={number}"], place)
    return commands


def smoke(python: str, place: Path, dist: Path, kind: str) -> None:
    """Install one distribution under one interpreter and try it."""
    commands = install(python, place, dist, kind)
    modules = [name for name in reference.PUBLIC if "." not in name]
    with tempfile.TemporaryDirectory() as empty:
        code = TRY.format(version=version.named()["src/activecover/__init__.py"], modules=modules)
        run([str(commands / "python"), "-c", code], empty)
        for name, *rest in COMMANDS:
            run([str(commands / name), *rest], empty)


def main(arguments: list[str]) -> int:
    """Try what is in a folder under each interpreter."""
    dist, wanted = Path(arguments[0]).resolve(), arguments[1:] or [sys.executable]
    found = [name for name in wanted if usable(name)]
    for name in wanted:
        if name not in found:
            print(f"{name}: not found, not tried")
    if not found:
        print("no interpreter to try the package with: name one with PYTHONS=python3.12", file=sys.stderr)
        return 1
    for number, name in enumerate(found):
        place = ROOT / "build" / "smoke" / str(number)
        for kind in ("wheel", "sdist") if name == found[-1] else ("wheel",):
            smoke(name, place, dist, kind)
            print(f"{name}: the {kind} installs and works")
        shutil.rmtree(place)
    return 0


def usable(name: str) -> bool:
    """Whether an interpreter is there, starts, and can make environments."""
    if shutil.which(name) is None:
        return False
    return subprocess.run([name, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
