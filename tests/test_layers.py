"""The package's floors: imports point downwards, and optional parts are imported only where used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("sqlalchemy", "alembic", "matplotlib", "pyarrow", "torch")


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_imports_point_downwards_only() -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = run(code)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout, done.stdout


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
