"""Old names warn, work, and go when their time has come."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import activecover
from activecover.deprecation import deprecated, renamed_parameter, warn_deprecated

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "activecover"
HELPERS = ("deprecated", "renamed_parameter", "warn_deprecated")


@deprecated(since="0.2", removal="0.4", instead="new")
def old(value: int = 0, *, scale: int = 1) -> int:
    """Multiply."""
    return value * scale


@renamed_parameter("n", "count", since="0.2", removal="0.4")
def stars(*, count: int) -> str:
    return "*" * count


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


def overdue(source: str, now: str) -> list[str]:
    """Calls of the helpers whose version of removal has been reached."""
    return [
        f"line {call.lineno}: {word.value.value}"
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) in HELPERS
        for word in call.keywords
        if word.arg == "removal" and isinstance(word.value, ast.Constant)
        if version(str(word.value.value)) <= version(now)
    ]


def sources() -> Iterator[Path]:
    return (path for path in PACKAGE.rglob("*.py") if path.name != "deprecation.py")


def test_a_deprecated_function_warns_at_the_callers_line_and_works() -> None:
    with pytest.warns(
        FutureWarning, match=r"^old is deprecated since 0\.2 and will be removed in 0\.4: use new$"
    ) as seen:
        assert old(3, scale=2) == 6
    assert seen[0].filename == __file__
    assert (old.__name__, old.__doc__) == ("old", "Multiply.")


def test_a_renamed_parameter_is_passed_on_under_its_new_name() -> None:
    with pytest.warns(FutureWarning, match=r"^stars\(n=\.\.\.\) is deprecated .*: use count$") as seen:
        assert stars(n=3) == "***"
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stars(count=2) == "**"
    with pytest.raises(TypeError, match="both 'n' and 'count'"):
        stars(n=1, count=2)


def test_a_direct_warning_points_at_the_caller_of_the_function_that_gives_it() -> None:
    def ask() -> None:
        warn_deprecated("ask(0)", since="0.2", removal="0.4", instead="ask(1)")

    with pytest.warns(FutureWarning) as seen:
        ask()
    assert seen[0].filename == __file__


def test_what_is_overdue_is_found() -> None:
    source = '@deprecated(since="0.2", removal="0.4", instead="x")\ndef f(): ...\n'
    assert overdue(source, "0.3.9") == []
    assert overdue(source, "0.4.0") == overdue(source, "1.0.0") == ["line 1: 0.4"]


def test_nothing_in_the_package_is_overdue() -> None:
    late = {
        path.name: found
        for path in sources()
        if (found := overdue(path.read_text(encoding="utf-8"), activecover.__version__))
    }
    assert not late, "remove these, or move their removal with a line in the changelog"
