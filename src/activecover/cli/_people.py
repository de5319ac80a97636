"""``activecover people``: who may use the server, and as what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from activecover.cli import _options as options
from activecover.cli._show import out, print_json, print_table
from activecover.home import Home, People

app = typer.Typer(help="Who may use the server, and as what.", no_args_is_help=True)

HomeFolder = Annotated[
    Path | None,
    typer.Option("--home", help="Folder of the campaigns; default: ACTIVECOVER_HOME or ~/.activecover."),
]
Name = Annotated[str, typer.Argument(help="Who.", show_default=False)]


@app.command("add")
def add(
    name: Name,
    role: Annotated[
        str, typer.Option("--role", help="annotator (labels), adjudicator (also settles and sees), or owner.")
    ] = "annotator",
    home: HomeFolder = None,
) -> int:
    """Let someone in and show their token, once."""
    out().print(Text(_people(home).add(name, role)), soft_wrap=True)
    return 0


@app.command("list")
def list_people(home: HomeFolder = None, json: options.Json = False) -> int:
    """Show who may use the server."""
    everyone = _people(home).all()
    if json:
        print_json([{"name": person.name, "role": person.role} for person in everyone])
    else:
        print_table("", ("who", "role"), [(person.name, person.role) for person in everyone])
    return 0


@app.command("remove")
def remove(name: Name, home: HomeFolder = None) -> int:
    """Let someone in no longer, at once."""
    _people(home).remove(name)
    out().print(Text(f"{name} is out"))
    return 0


def _people(home: Path | None) -> People:
    return People(Home(home).folder)
