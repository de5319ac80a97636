"""Commands on campaigns by name: new, next, label, status, export and all the others."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.panel import Panel
from rich.text import Text

from activecover.campaign import UNDO_WINDOW, Campaign, Item, named_positive
from activecover.cli import _options as options
from activecover.cli._show import cell, err, out, print_json, print_table
from activecover.errors import LARGEST_COUNT, InputError
from activecover.intake import is_picture
from activecover.workspace import PublicKey, Workspace, archive, export_labels, privacy_check, read_answers, restored

Name = Annotated[str, typer.Argument(help="The campaign.", show_default=False)]
Ids = Annotated[list[str], typer.Argument(help="Ids of items.", show_default=False)]
HomeFolder = Annotated[
    Path | None, typer.Option("--home", help="Folder of the campaigns; default: ACTIVECOVER_HOME or ~/.activecover.")
]
StoreUrl = Annotated[
    str | None, typer.Option("--store", help="postgresql://… for teams; default: an SQLite file in the folder.")
]
KeyGiven = Annotated[
    str | None,
    typer.Option("--key", help="The public key that it must be signed with (what activecover key prints, or a file)."),
]
Large = Annotated[
    bool, typer.Option("--large", help="Take in an archive of more than the usual size, if you trust its maker.")
]
By = Annotated[str, typer.Option("--by", help="Who you are.")]


@contextmanager
def _opened(name: str, home: Path | None, store: str | None) -> Iterator[Campaign]:
    with Workspace(home, store) as place, place.open(name) as campaign:
        yield campaign


def new(
    name: Name,
    pool: Annotated[
        Path, typer.Option("--pool", help="CSV, TSV, JSONL, Parquet, npy, npz, RIS, nbib, folder or zip of images.")
    ],
    embed: Annotated[
        str, typer.Option("--embed", help="How vectors are made: auto, columns, text, smiles, images, vectors, ….")
    ] = "auto",
    columns: options.Columns = None,
    id_col: options.IdColumn = None,
    label_col: Annotated[str | None, typer.Option("--label-col", help="Column with labels, to leave out.")] = None,
    show: options.ContentColumns = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="euclidean, cosine or jaccard; default: the embedding's.")
    ] = None,
    no_header: options.NoHeader = False,
    learner: Annotated[
        str | None,
        typer.Option(
            "--learner",
            help="What decides; default: auto, or explore-commit for large pools and with --forget-negatives.",
        ),
    ] = None,
    explore: Annotated[
        int | None, typer.Option("--explore", min=0, help="Rows to label at random first; default: 100.")
    ] = None,
    known: Annotated[
        list[str] | None, typer.Option("--known", help="Id of an item known to be positive; may be repeated.")
    ] = None,
    outside: Annotated[
        Path | None, typer.Option("--outside", help="File like that of the pool, with positives that are not in it.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            max=LARGEST_COUNT,
            help="Seed of all randomness; anyone who knows it can work out the control items of --certify.",
        ),
    ] = None,
    overlap: Annotated[int | None, typer.Option("--overlap", min=1, help="People who have to label each item.")] = None,
    lease: Annotated[
        float | None, typer.Option("--lease", min=1, help="Seconds after which an unanswered item goes back.")
    ] = None,
    budget: Annotated[int | None, typer.Option("--budget", min=1, help="Most labels to ask for.")] = None,
    target: Annotated[int | None, typer.Option("--target", min=1, help="Stop after this number of positives.")] = None,
    certify: Annotated[
        str | None, typer.Option("--certify", help="Recall and confidence to certify, as in 0.95@0.95.")
    ] = None,
    rule: Annotated[
        str | None, typer.Option("--rule", help="By which rule; default: qbcb, a blind control sample.")
    ] = None,
    insure: Annotated[
        float | None, typer.Option("--insure", help="Share of the asks that stay random draws, such as 0.1.")
    ] = None,
    forget_negatives: Annotated[
        bool, typer.Option("--forget-negatives", help="Overwrite what turns out negative.")
    ] = False,
    duplicates: Annotated[
        str | None, typer.Option("--duplicates", help="Ask once for items that are the same: exact, or a distance.")
    ] = None,
    same: Annotated[
        str | None, typer.Option("--same", help="Columns whose contents make duplicates; default: those of --embed.")
    ] = None,
    home: HomeFolder = None,
    store: StoreUrl = None,
    json: options.Json = False,
) -> int:
    """Begin a campaign on a file."""
    with Workspace(home, store) as place:
        campaign = place.new(
            name, pool, embed=embed, columns=options.split_names(columns), id_column=id_col, label_column=label_col,
            show=options.split_names(show), metric=metric, header=not no_header, forget_negatives=forget_negatives,
            lease=lease, budget=budget, target=target, learner=learner, explore=explore, known=known or (), seed=seed,
            overlap=overlap, duplicates=_duplicates(duplicates), same=options.split_names(same),
            certify=certify, rule=rule, random_share=insure,
            external_positives=outside,
        )  # fmt: skip
        with campaign:
            if json:
                print_json({"name": name, "rows": len(campaign.pool), "dimensions": campaign.pool.dimensions})
            else:
                out().print(Text(f"{name}: {campaign.pool!r}"))
                if doubles := len(campaign.journal.ledger.groups):
                    out().print(Text(f"{doubles:,} duplicates will not be asked for themselves"))
                out().print(Text(f"next: activecover next {name}"))
    return 0


def next_(
    name: Name,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many items.")] = 1,
    by: By = "me",
    home: HomeFolder = None,
    store: StoreUrl = None,
    json: options.Json = False,
) -> int:
    """Show the next items to decide on, and why each was chosen."""
    with _opened(name, home, store) as campaign:
        items = campaign.ask(count, by=by)
        if json:
            print_json([_plain(item) for item in items])
            return 0
        if not items:
            out().print(Text(campaign.status().stopped or "nothing is left to ask for"))
        for item in items:
            out().print(_panel(item))
    return 0


def label(
    name: Name,
    answers: Annotated[list[str], typer.Argument(help="ID=yes or ID=no, several at once.", show_default=False)],
    by: By = "me",
    change: Annotated[bool, typer.Option("--change", help="Replace an earlier decision.")] = False,
    note: Annotated[str | None, typer.Option("--note", help="A remark to keep with the labels.")] = None,
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Label items."""
    ids, values = zip(*(_answer(text) for text in answers), strict=True)
    with _opened(name, home, store) as campaign:
        campaign.tell(list(ids), list(values), by=by, change=change, note=note)
        _say_counts(campaign)
    return 0


def skip(
    name: Name,
    ids: Ids,
    by: By = "me",
    unsure: Annotated[bool, typer.Option("--unsure", help="Not sure, rather than skipped.")] = False,
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Put items aside; they come back when nothing else is left."""
    with _opened(name, home, store) as campaign:
        (campaign.mark_unsure if unsure else campaign.skip)(ids, by=by)
        _say_counts(campaign)
    return 0


def ungroup(name: Name, ids: Ids, by: By = "me", home: HomeFolder = None, store: StoreUrl = None) -> int:
    """Take items out of their groups of duplicates: they are asked for by themselves then."""
    with _opened(name, home, store) as campaign:
        campaign.ungroup(ids, by=by)
        _say_counts(campaign)
    return 0


def undo(
    name: Name,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many decisions.")] = 1,
    by: Annotated[str | None, typer.Option("--by", help="Only this person's decisions.")] = None,
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Take back the last decisions."""
    with _opened(name, home, store) as campaign:
        undone = campaign.undo(count, by=by)
        out().print(Text("undone: " + (", ".join(undone) or "there was nothing to undo")))
    return 0


def status(name: Name, home: HomeFolder = None, store: StoreUrl = None, json: options.Json = False) -> int:
    """Show the status of a campaign, what is proved of recall, and how much can have been missed."""
    with _opened(name, home, store) as campaign:
        stands = campaign.status().as_dict()
        bound = campaign.assess()
        stands["insurance"] = campaign.guarantee.missed_component().sentence()
    if json:
        print_json({**stands, "bound": bound.as_dict()})
        return 0
    stands["bound"] = f"recall at least {bound.recall_lower:.4g} with confidence {bound.confidence:g} by {bound.rule}"
    stands["price"] = None if bound.stop or bound.price is None else f"{bound.price:,} labels more; {bound.reasoning}"
    # As texts, to the left: among the numbers there are sentences.
    said = {key.replace("_", " "): value for key, value in stands.items() if value is not None}
    print_table(name, ("", ""), [(key, cell(value)) for key, value in said.items()])
    return 0


def history(
    name: Name,
    item: Annotated[str | None, typer.Option("--id", help="Only this item.")] = None,
    home: HomeFolder = None,
    store: StoreUrl = None,
    json: options.Json = False,
) -> int:
    """Show what happened, in order; nothing is ever removed from it."""
    with _opened(name, home, store) as campaign:
        events = campaign.history(item)
    if json:
        print_json(events)
        return 0
    rows = [
        (event["seq"], _time(event.get("at")), event["event"], event.get("id"), event.get("label"), event.get("by"), event.get("note"))
        for event in events
    ]  # fmt: skip
    print_table("", ("", "when", "what", "item", "label", "by", "note"), rows)
    return 0


def export(
    name: Name,
    path: Annotated[Path, typer.Argument(help=".csv, .jsonl, .parquet, .ris or .nbib.", show_default=False)],
    which: Annotated[str, typer.Option("--which", help="labelled, positive or all.")] = "labelled",
    originals: Annotated[
        Path | None, typer.Option("--originals", help="RIS or nbib file of the pool, to write references in full.")
    ] = None,
    raw: options.Raw = False,
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Write the labels to a file: who gave them, when, and why each item was asked for."""
    if which not in ("labelled", "positive", "all"):
        raise InputError(f"--which {which!r}: choose labelled, positive or all")
    with _opened(name, home, store) as campaign:
        count = export_labels(campaign, path, which, originals, raw=raw)  # type: ignore[arg-type]
    out().print(Text(f"{count:,} items written to {path}"))
    return 0


def import_(
    name: Name,
    path: Annotated[Path, typer.Argument(help="CSV, TSV or JSONL with ids and labels.", show_default=False)],
    id_col: Annotated[str, typer.Option("--id-col", help="Column with the ids.")] = "id",
    label_col: Annotated[str, typer.Option("--label-col", help="Column with yes or no.")] = "label",
    by: By = "import",
    outside: Annotated[
        bool, typer.Option("--outside", help="The file, like that of the pool, has positives that are not in it.")
    ] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Take ids as they are: no apostrophe before a formula is removed.")
    ] = False,
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Take in labels that were given elsewhere, all of them or none, or positives from outside the pool."""
    if outside:
        with Workspace(home, store) as place:
            count = place.add_outside(name, path)
        out().print(Text(f"{count:,} known positives taken in from {path}"))
        return 0
    answers = read_answers(path, id_col, label_col, raw=raw)
    with _opened(name, home, store) as campaign:
        campaign.tell([item for item, _ in answers], [value for _, value in answers], by=by)
    out().print(Text(f"{len(answers):,} labels taken in from {path}"))
    return 0


def add_rows(
    name: Name,
    path: Annotated[Path, typer.Argument(help="A file like the one of the pool.", show_default=False)],
    no_header: options.NoHeader = False,
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Add rows to the pool of a campaign while people label; close and reopen to see them."""
    with Workspace(home, store) as place:
        count = place.add_rows(name, path, header=not no_header)
    out().print(Text(f"{count:,} rows added to {name}"))
    return 0


def withdraw(
    name: Name,
    ids: Ids,
    by: By = "me",
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Also the same items in all other campaigns of this home.")
    ] = False,
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Erase items for good: vectors and contents are overwritten, the ids stay."""
    with Workspace(home, store) as place:
        done = place.withdraw(name, ids, by=by, everywhere=everywhere)
    for campaign, items in done.erased.items():
        out().print(Text(f"{campaign}: {len(items)} erased"))
    for campaign, items in done.held.items():
        names = " ".join(map(shlex.quote, items))
        out().print(
            Text(f"{campaign} holds the same: activecover withdraw {shlex.quote(campaign)} {names}"), soft_wrap=True
        )
    if done.held:
        out().print(Text("or erase them all at once with --everywhere"))
    return 0


def archive_(
    name: Name,
    path: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)],
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Write a campaign, with its pool, to one portable file."""
    with Workspace(home, store) as place:
        digest = archive(place, name, path)
    out().print(Text(f"{path}  sha256 {digest}"))
    return 0


def restore_(
    path: Annotated[Path, typer.Argument(help="A file that archive wrote.", show_default=False)],
    name: Annotated[str | None, typer.Option("--as", help="Another name for it.")] = None,
    key: KeyGiven = None,
    large: Large = False,
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Take in a campaign from a file: all of it is checked before anything is kept."""
    trusted = None if key is None else PublicKey.read(key)
    with Workspace(home, store) as place:
        chosen, signer = restored(place, path, name, key=trusted, large=large)
    out().print(Text(f"{chosen}: restored from {path}"))
    err().print(Text(signer.note("archive")), soft_wrap=True)
    return 0


def conflicts(name: Name, home: HomeFolder = None, store: StoreUrl = None, json: options.Json = False) -> int:
    """Show items on which people disagree, and how far they agree in all."""
    with _opened(name, home, store) as campaign:
        found = campaign.conflicts()
        agreement = campaign.agreement()
    if json:
        print_json([{"id": item.id, "opinions": said} for item, said in found])
        return 0
    rows = [
        (item.id, ", ".join(f"{who}: {'yes' if yes else 'no'}" for who, yes in said.items())) for item, said in found
    ]
    print_table(f"{len(found)} in conflict", ("item", "opinions"), rows)
    out().print(Text(f"{agreement.items} items with several opinions, {agreement.same} of them unanimous"))
    for kind, value in (("Cohen", agreement.cohen), ("Fleiss", agreement.fleiss)):
        if value is not None:
            out().print(Text(f"{kind}'s kappa {value:.2f}"))
    return 0


def adjudicate(
    name: Name,
    answer: Annotated[str, typer.Argument(help="ID=yes or ID=no.", show_default=False)],
    by: By = "me",
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Decide on an item on which people disagree."""
    item, value = _answer(answer)
    with _opened(name, home, store) as campaign:
        campaign.adjudicate(item, value, by=by)
        _say_counts(campaign)
    return 0


def suspicious(name: Name, home: HomeFolder = None, store: StoreUrl = None, json: options.Json = False) -> int:
    """Show positives that deserve a second look, and why: one wrong yes misleads the search for long."""
    with _opened(name, home, store) as campaign:
        found = campaign.suspects()
    if json:
        print_json([{**_plain(doubt.item), "reason": doubt.reason} for doubt in found])
    else:
        print_table(f"{len(found)} suspicious", ("item", "why"), [(doubt.item.id, doubt.reason) for doubt in found])
        if found:
            out().print(Text(f"activecover confirm {name} ID, or activecover label {name} ID=no --change"))
    return 0


def confirm(name: Name, ids: Ids, by: By = "me", home: HomeFolder = None, store: StoreUrl = None) -> int:
    """Confirm that suspicious positives are positive."""
    with _opened(name, home, store) as campaign:
        campaign.confirm(ids, by=by)
        _say_counts(campaign)
    return 0


def forget(
    name: Name,
    now: Annotated[
        bool, typer.Option("--now", help="Also the last decisions: they can no longer be undone then.")
    ] = False,
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Overwrite what turned out negative and can no longer be undone."""
    with Workspace(home, store) as place:
        gone = place.forget(name, window=0 if now else UNDO_WINDOW)
        with place.open(name) as campaign:
            kept = campaign.eraser.status(0 if now else UNDO_WINDOW).kept
    out().print(Text(f"{len(gone)} negatives forgotten"))
    _say_kept(name, kept)
    return 0


def _say_kept(name: str, kept: dict[str, list[str]]) -> None:
    """What is not forgotten yet, and why."""
    for why, items in kept.items():
        out().print(Text(f"{len(items)} kept, {why}: {', '.join(items[:10])}{', …' if items[10:] else ''}"))
        if "can be undone" in why:
            out().print(Text(f"activecover forget {shlex.quote(name)} --now forgets these too"))


def privacy(
    name: Name,
    markers: Annotated[
        list[str] | None, typer.Option("--marker", help="Text that must be nowhere; may be repeated.")
    ] = None,
    also: Annotated[
        list[Path] | None, typer.Option("--also", help="File or folder to search too (exports, logs, …).")
    ] = None,
    home: HomeFolder = None,
    store: StoreUrl = None,
    json: options.Json = False,
) -> int:
    """Check that final negatives are forgotten and nothing of them is left; exits with 1 otherwise."""
    with Workspace(home, store) as place:
        report = privacy_check(place, name, [marker.encode() for marker in markers or []], also or [])
    if json:
        print_json(report.as_dict())
    else:
        out().print(Text(f"{report.forgotten} of {report.negatives} negatives are forgotten"))
        out().print(Text(f"looked at {report.files} files, {report.bytes:,} bytes: {len(report.found)} remains found"))
        for line in report.found:
            out().print(Text(line), soft_wrap=True)
        if report.due:
            out().print(Text(f"{len(report.due)} are final and not forgotten: activecover forget {shlex.quote(name)}"))
        _say_kept(name, report.kept)
        out().print(Text("clean" if report.clean else "NOT CLEAN"))
    return 0 if report.clean else 1


def campaigns(home: HomeFolder = None, store: StoreUrl = None, json: options.Json = False) -> int:
    """List the campaigns."""
    with Workspace(home, store) as place:
        rows = []
        for name in place.names():
            log = place.store.open(name)
            rows.append((name, len(log), place.store.about(name)["pool"]))
            log.close()
    if json:
        print_json([{"name": name, "events": events, "pool": pool} for name, events, pool in rows])
    else:
        print_table("", ("campaign", "events", "pool"), rows)
    return 0


def learner(
    name: Name,
    to: Annotated[str, typer.Option("--to", help="The learner that proposes from now on.", show_default=False)],
    home: HomeFolder = None,
    store: StoreUrl = None,
) -> int:
    """Change the learner of a campaign; all labels are kept."""
    with _opened(name, home, store) as campaign:
        before = campaign.learner_name
        campaign.change_learner(to)
        out().print(Text(f"{name}: {campaign.learner_name} in place of {before}"))
    return 0


def register(app: typer.Typer) -> None:
    """Hook the commands into the root."""
    commands: dict[str, Any] = {
        "new": new, "next": next_, "label": label, "skip": skip, "undo": undo, "ungroup": ungroup, "status": status,
        "history": history, "export": export, "import": import_, "add-rows": add_rows, "withdraw": withdraw,
        "archive": archive_, "restore": restore_, "conflicts": conflicts, "adjudicate": adjudicate,
        "suspicious": suspicious, "confirm": confirm, "learner": learner,
        "forget": forget, "privacy-check": privacy, "campaigns": campaigns,
    }  # fmt: skip
    for name, command in commands.items():
        app.command(name, rich_help_panel="Campaigns")(command)


def _answer(text: str) -> tuple[str, bool]:
    item, sign, word = text.rpartition("=")
    words = {"yes": True, "y": True, "1": True, "no": False, "n": False, "0": False}
    if not sign or not item or word.lower() not in words:
        raise InputError(f"{text!r}: say ID=yes or ID=no")
    return item, words[word.lower()]


def _duplicates(text: str | None) -> bool | float:
    if text in (None, "exact"):
        return text == "exact"
    try:
        return float(str(text))
    except ValueError as wrong:
        raise InputError(f"--duplicates {text!r}: say exact, or give a distance") from wrong


def _say_counts(campaign: Campaign) -> None:
    stands = campaign.status()
    err().print(Text(f"{stands.positives} positive, {stands.negatives} negative, {stands.unlabelled:,} to go"))


def _panel(item: Item) -> Panel:
    shown = {name: value for name, value in item.content.items() if not is_picture(value)}
    lines = [f"{name}: {value}" for name, value in shown.items()] or ["(no contents to show)"]
    if item.duplicates:
        lines.append(f"the same: {', '.join(item.duplicates[:5])}{', …' if len(item.duplicates) > 5 else ''}")
    return Panel(Text("\n".join(lines)), title=Text(item.id), subtitle=Text(item.reason), title_align="left")


def _plain(item: Item) -> dict[str, Any]:
    return {
        "id": item.id, "content": item.content, "source": item.source, "reason": item.reason,
        "distance": item.distance, "nearest": named_positive(item.nearest), "duplicates": list(item.duplicates),
    }  # fmt: skip


def _time(at: object) -> str | None:
    return None if not isinstance(at, int | float) else datetime.datetime.fromtimestamp(at).isoformat(" ", "seconds")
