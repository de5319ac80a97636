"""``activecover people``: who may use the server, and in which roles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from activecover.cli import _options as options
from activecover.cli._secrets import Store, StoreFile, store_of
from activecover.cli._show import out, print_json, print_table
from activecover.workspace import People, Workspace

app = typer.Typer(help="Manage who may use the server, and in which roles.", no_args_is_help=True)

HomeFolder = Annotated[
    Path | None,
    typer.Option("--home", help="Folder of the campaigns; default: ACTIVECOVER_HOME or ~/.activecover."),
]
Name = Annotated[str, typer.Argument(help="Name of the person.", show_default=False)]
Campaign = Annotated[str, typer.Argument(help="Name of the campaign.", show_default=False)]
RoleName = Annotated[
    str, typer.Argument(help="reader, annotator (labels), adjudicator (also settles conflicts), or owner.")
]


@app.command("add")
def add(
    name: Name,
    role: Annotated[
        str,
        typer.Option("--role", help="reader, annotator (labels), adjudicator (also settles conflicts), or owner."),
    ] = "annotator",
    campaigns: Annotated[
        list[str] | None,
        typer.Option("--campaign", help="Only for this campaign; may be given several times. Default: for all."),
    ] = None,
    home: HomeFolder = None,
    store: Store = None,
    store_file: StoreFile = None,
) -> int:
    """Add a person and show their token, which is never shown again."""
    with _people(home, store, store_file) as people:
        inside = dict.fromkeys(campaigns or (), role)
        _show(people.add(name, None if inside else role, inside))
    return 0


@app.command("list")
def list_people(
    home: HomeFolder = None, store: Store = None, store_file: StoreFile = None, json: options.Json = False
) -> int:
    """List the people who may use the server."""
    with _people(home, store, store_file) as people:
        everyone = people.all()
    if json:
        print_json([{"name": person.name, "role": person.role, "campaigns": person.rights} for person in everyone])
    else:
        rows = [
            (
                person.name,
                person.role or "",
                ", ".join(f"{name}: {role}" for name, role in sorted(person.rights.items())),
            )
            for person in everyone
        ]
        print_table("", ("who", "everywhere", "in campaigns"), rows)
    return 0


@app.command("remove")
def remove(name: Name, home: HomeFolder = None, store: Store = None, store_file: StoreFile = None) -> int:
    """Remove a person; their sessions end at once."""
    with _people(home, store, store_file) as people:
        people.remove(name)
        _show(f"removed {name}")
        if not len(people):
            _show("nobody is left: servers that other machines can reach let nobody in until you add someone")
    return 0


@app.command("rotate")
def rotate(name: Name, home: HomeFolder = None, store: Store = None, store_file: StoreFile = None) -> int:
    """Replace a person's token and show the new one once; sessions begun with the old one end."""
    with _people(home, store, store_file) as people:
        _show(people.rotate(name))
    return 0


@app.command("role")
def set_role(
    name: Name,
    role: Annotated[str, typer.Argument(help="reader, annotator, adjudicator, owner or none.")],
    home: HomeFolder = None,
    store: Store = None,
    store_file: StoreFile = None,
) -> int:
    """Set a person's role in all campaigns; with none, only their roles in single campaigns count."""
    with _people(home, store, store_file) as people:
        people.set_role(name, None if role == "none" else role)
    _show(f"{name}: {role}")
    return 0


@app.command("grant")
def grant(
    name: Name,
    campaign: Campaign,
    role: RoleName,
    home: HomeFolder = None,
    store: Store = None,
    store_file: StoreFile = None,
) -> int:
    """Give a person a role in one campaign; the higher of this and their role in all campaigns counts."""
    with _people(home, store, store_file) as people:
        people.grant(name, campaign, role)
    _show(f"{name} in {campaign}: {role}")
    return 0


@app.command("revoke")
def revoke(
    name: Name, campaign: Campaign, home: HomeFolder = None, store: Store = None, store_file: StoreFile = None
) -> int:
    """Take away a person's role in one campaign."""
    with _people(home, store, store_file) as people:
        people.revoke(name, campaign)
    _show(f"{name} in {campaign}: no role of their own any more")
    return 0


@contextmanager
def _people(home: Path | None, store: str | None, store_file: Path | None) -> Iterator[People]:
    with Workspace(home, store_of(store, store_file)) as place:
        yield place.people


def _show(text: str) -> None:
    out().print(Text(text), soft_wrap=True)
