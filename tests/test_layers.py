"""The package's floors: imports point downwards, and optional parts are imported only where used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "activecover"
#: Private names that one room takes from another; none may come to it.
KNOWN: set[str] = set()
HEAVY = ("sqlalchemy", "alembic", "matplotlib", "pyarrow", "torch")


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_imports_point_downwards_only() -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = run(code)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout, done.stdout


def room_of(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The room that a module belongs to: a folder or module of the package, or one of the lab."""
    return parts[: 2 if parts[:1] == ("lab",) else 1]


def borrowed_in_private() -> Iterator[str]:
    for path in sorted(PACKAGE.rglob("*.py")):
        here = path.relative_to(PACKAGE)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("activecover."):
                continue
            parts = tuple(str(node.module).split(".")[1:])
            names = [*parts, *(alias.name for alias in node.names)]
            if room_of(parts) != room_of(here.with_suffix("").parts) and any(name.startswith("_") for name in names):
                yield f"{here.as_posix()}: {node.module}"


def test_no_room_uses_what_another_keeps_private() -> None:
    assert set(borrowed_in_private()) == KNOWN


def rooms() -> set[str]:
    """The folders and modules of the package, of which those with an underscore are nobody's business."""
    found = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    return found | {path.stem for path in PACKAGE.glob("*.py") if not path.name.startswith("_")}


def test_the_map_of_the_rooms_is_the_house() -> None:
    """CONTRIBUTING names every room once, on the floors that import-linter holds."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Where things are")[2]
    floors = [
        re.findall(r"`(\w+)/?`", row.split("|")[1])
        for row in text.partition("\n## ")[0].splitlines()
        if "`" in row and row.startswith("|")
    ]
    named = [room for floor in floors for room in floor]
    assert sorted(named) == sorted(rooms())
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [re.findall(r"activecover\.(\w+)", layer) for layer in settings["contracts"][0]["layers"]]
    assert {room for layer in layers for room in layer} == rooms()
    depth = {room: place for place, floor in enumerate(floors) for room in floor}
    for place, layer in enumerate(layers):
        below = {room for lower in layers[place + 1 :] for room in lower}
        assert all(depth[room] <= depth[lower] for room in layer for lower in below), layer


@pytest.mark.parametrize("module", ["activecover.campaign", "activecover.cli._app", "activecover.testing"])
def test_import_leaves_optional_parts_alone(module: str) -> None:
    done = run(f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))")
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert "activecover" in loaded
    assert not set(HEAVY) & set(loaded)


def test_the_package_and_its_command_are_there_at_once() -> None:
    """What takes a second to import comes later, so that Ctrl-C is answered from the start."""
    done = run("import sys, activecover.cli; print(*sys.modules)")
    assert done.returncode == 0, done.stderr
    assert not {"numpy", "scipy", "numba", "typer"} & set(done.stdout.split())


def test_every_public_name_is_there_and_no_other() -> None:
    code = (
        "import activecover, activecover.simulate\n"
        "from activecover import *\n"
        "assert all(getattr(activecover, name) is globals()[name] for name in activecover.__all__)\n"
        "assert set(activecover.__all__) <= set(dir(activecover))\n"
        "assert callable(simulate) and activecover.learners.Auto is Auto\n"
        "assert not hasattr(activecover, 'no_such_name')\n"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_missing_extra_is_named_in_one_line() -> None:
    """A picture without matplotlib ends in one line that says what to install."""
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from activecover.cli import main\n"
        "sys.exit(main(['simulate', '--dataset', 'letters', '--plot', 'x.png']))"
    )
    done = run(code)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["activecover: pictures need matplotlib: pip install 'activecover[plot]'"]
