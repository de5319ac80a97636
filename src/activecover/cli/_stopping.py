"""``activecover stopping``: list the stopping rules, and replay finished runs against them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from activecover.cli import _options as options
from activecover.cli._campaigns import HomeFolder, StoreUrl
from activecover.cli._show import out, print_json, print_table
from activecover.draw import check_picture, draw_stops
from activecover.errors import InputError
from activecover.files import check_writable
from activecover.stopping import RULES, Record, Replay, Stop, describe_rules, load_runs, replay, summarise
from activecover.trace import Trace
from activecover.workspace import Workspace, opened_archive

app = typer.Typer(help="Know when to stop.", no_args_is_help=True)


@app.callback()
def _stopping() -> None:
    """Know when to stop."""


@app.command("rules")
def rules(json: options.Json = False) -> None:
    """List the stopping rules, and what each of them assumes."""
    described = describe_rules()
    if json:
        print_json(described)
        return
    shown = [
        (rule["name"], _yes(rule["valid"]), _yes(rule["anytime"]), rule["design"], rule["summary"])
        for rule in described
    ]
    print_table("", ["rule", "valid", "at every look", "draws of its own", "idea"], shown)
    out().print()
    for rule in described:
        for assumed in rule["assumptions"]:
            out().print(f"{rule['name']}: {assumed}", markup=False, soft_wrap=True)


@app.command("replay")
def replay_command(
    file: Annotated[
        Path | None,
        typer.Argument(help="Traces written by simulate --out, a label log, or an archive.", show_default=False),
    ] = None,
    campaign: Annotated[str | None, typer.Option("--campaign", help="Name of a campaign, instead of a file.")] = None,
    target: Annotated[float, typer.Option("--target", help="Recall to certify.")] = 0.95,
    confidence: Annotated[float, typer.Option("--confidence", help="Confidence of the certificate.")] = 0.95,
    rule: Annotated[
        list[str] | None, typer.Option("--rule", help="Only this rule; may be given several times.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, help="Rows of the pool; default: taken from the file.")
    ] = None,
    positives: Annotated[
        int | None, typer.Option("--positives", min=0, help="Positives in the pool; default: those found.")
    ] = None,
    seed: options.Seed = 0,
    home: HomeFolder = None,
    store: StoreUrl = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Save a picture: .png, .svg or .pdf.")] = None,
    json: options.Json = False,
) -> None:
    """Replay finished runs against every rule: when each would have stopped, with what recall, at what price."""
    if (file is None) == (campaign is None):
        raise InputError("give either a file with runs, or a campaign with --campaign")
    if plot is not None:
        check_picture(plot)
        check_writable(plot, file)
    chosen = None if not rule else [RULES[name].name for given in rule for name in options.split_names(given) or []]
    results = [
        (name, replay(run, target=target, confidence=confidence, names=chosen, seed=seed + place))
        for place, (name, run) in enumerate(_runs(file, campaign, home, store, rows, positives))
    ]
    if plot is not None:
        draw_stops(plot, results[0][1], title=results[0][0])
    if json:
        print_json([{"run": name, **result.as_dict()} for name, result in results])
        return
    show([result for _, result in results], results[0][0])
    if plot is not None:
        out().print(f"picture: {plot}", markup=False)


def _runs(
    file: Path | None, name: str | None, home: Path | None, store: str | None, rows: int | None, positives: int | None
) -> list[tuple[str, Trace | Record]]:
    """The runs of a file, an archive or a campaign."""
    if file is not None and file.suffix.lower() != ".zip":
        return load_runs(file, rows=rows, positives=positives)
    if rows is not None or positives is not None:
        raise InputError("--rows and --positives are for files: leave them out, as a campaign knows its pool")
    if file is not None:
        with opened_archive(file) as campaign:
            return [(file.name, campaign.guarantee.record())]
    assert name is not None
    with Workspace(home, store) as place, place.open(name) as campaign:
        return [(name, campaign.guarantee.record())]


def show(results: Sequence[Replay], name: str) -> None:
    """Print one run in full, or a summary of several."""
    first = results[0]
    title = f"{first.positives:,} positives among {first.rows:,} rows; target {first.target:g}"
    if len(results) == 1:
        ideal = "" if first.ideal is None else f"; the ranking alone reached it after {first.ideal:,} labels"
        columns = ["rule", "valid", "labels", "recall then", "its bound", "target met", "price"]
        print_table(f"{name}: {title}{ideal}", columns, [_row(stop) for stop in first.stops])
        return
    columns = ["rule", "valid", "stopped in", "median labels", "mean recall", "missed the target", "median price"]
    lines = [
        (s["rule"], _yes(s["valid"]), s["stopped"], s["labels"], s["recall"], s["missed"], s["price"])
        for s in summarise(results)
    ]
    print_table(f"{len(results)} runs; {title}", columns, lines)


def _row(stop: Stop) -> tuple[object, ...]:
    met = None if stop.met is None else _yes(stop.met)
    return (stop.rule, _yes(stop.valid), stop.labels, stop.recall, stop.recall_lower, met, stop.price)


def _yes(value: bool) -> str:
    # As text, so that the column is aligned as text.
    return "yes" if value else "no"
