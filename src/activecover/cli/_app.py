"""The root of the command: one app, and one clear line per error."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import typer

from activecover.cli import (
    _bench,
    _campaigns,
    _certify,
    _data,
    _demo,
    _find,
    _learners,
    _people,
    _plan,
    _serve,
    _simulate,
    _stopping,
    _theory,
)
from activecover.errors import ActiveCoverError

app = typer.Typer(
    name="activecover",
    help="Find every positive in a pool with the fewest labels.",
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    add_completion=False,
)
#: The base class of Typer's usage errors, which comes from Click or from Typer's own copy of Click.
_UsageError: Any = typer.BadParameter.__bases__[0]

app.command("demo")(_demo.demo)
app.command("simulate")(_simulate.simulate_command)
app.command("find")(_find.find)
app.command("learners")(_learners.learners)
app.command("serve")(_serve.serve)
_campaigns.register(app)
app.add_typer(_people.app, name="people")
_certify.register(app)
app.add_typer(_data.app, name="data")
app.add_typer(_bench.app, name="bench")
app.add_typer(_plan.app, name="plan")
app.add_typer(_theory.app, name="theory")
app.add_typer(_stopping.app, name="stopping")


def _version(wanted: bool) -> None:
    if wanted:
        from activecover import __version__

        typer.echo(f"activecover {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """Find every positive in a pool with the fewest labels."""


def run(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code (2 for bad input, 130 if interrupted)."""
    given = tuple(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            result = _invoke(given or ("--help",))
    except _UsageError as error:
        return _complain(error.format_message(), 2)
    except (typer.Abort, KeyboardInterrupt, EOFError):
        return _complain("interrupted", 130)
    except BrokenPipeError:
        # The reader of a pipe is gone (a pager, head), so there is nobody to report to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except ActiveCoverError as error:
        return _complain(str(error), 2)
    except OSError as error:
        return _complain(f"{error.filename or 'the system'}: {error.strerror or error}", 2)
    except MemoryError:
        return _complain("not enough memory: use fewer columns or rows", 2)
    if not given:
        return 2
    return result if isinstance(result, int) else 0


def _invoke(arguments: Sequence[str]) -> object:
    # Like app(...), but KeyboardInterrupt is passed on: Typer would exit with code 130 without a message.
    try:
        command = typer.main.get_command(app)
        with command.make_context("activecover", list(arguments)) as context:
            result: object = command.invoke(context)
            return result
    except typer.Exit as done:
        return done.exit_code


def _warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print the package's own warnings, in one line each; those of libraries are for programmers."""
    if category is UserWarning:
        _complain(f"note: {message}", 0)


def _complain(text: str, code: int) -> int:
    # Names come from files and the command line: characters a terminal would interpret are escaped.
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))
    print(f"activecover: {line}", file=sys.stderr)
    return code
