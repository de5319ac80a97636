"""``activecover find``: label in the terminal, one key per item."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from activecover.campaign import Campaign, Item, Status
from activecover.cli import _options as options
from activecover.cli._show import err, out, print_json
from activecover.errors import LARGEST_COUNT, InputError
from activecover.files import check_writable, replacing
from activecover.pool import PackedBits, bit_vectors, bits_set, dense_vectors, load_pool, read_vectors, sparse_vectors
from activecover.spreadsheet import GuardedWriter

try:
    import termios
    import tty
except ImportError:  # pragma: no cover - not a POSIX terminal: answers are typed as lines
    termios = None  # type: ignore[assignment]

KEYS = "y yes   n no   s skip   ? not sure   u undo   q quit"
_LONGEST_TEXT = 2000
_MOST_COLUMNS = 40
_MOST_BITS = 200


def find(
    pool: Annotated[Path, typer.Option("--pool", help="The pool: .npy, .npz, .csv, .tsv or .parquet.")],
    log: Annotated[
        Path | None, typer.Option("--log", help="Where the labels are kept; default: POOL.labels.jsonl.")
    ] = None,
    vectors: options.VectorFile = None,
    columns: options.Columns = None,
    id_col: options.IdColumn = None,
    content_cols: options.ContentColumns = None,
    metric: options.MetricName = "euclidean",
    bits: options.Bits = None,
    no_header: options.NoHeader = False,
    learner: Annotated[
        str | None, typer.Option("--learner", help="What decides; default: auto, or explore-commit for large pools.")
    ] = None,
    explore: Annotated[
        int | None, typer.Option("--explore", min=0, help="Rows to label at random first; default: 100.")
    ] = None,
    known: Annotated[
        list[str] | None, typer.Option("--known", help="Id of an item known to be positive; may be repeated.")
    ] = None,
    known_vectors: Annotated[
        Path | None, typer.Option("--known-vectors", help="Vectors of positives from outside the pool (.npy).")
    ] = None,
    budget: Annotated[int | None, typer.Option("--budget", min=1, help="Stop after this number of labels.")] = None,
    target: Annotated[int | None, typer.Option("--target", min=1, help="Stop after this number of positives.")] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, max=LARGEST_COUNT, help="Seed of all randomness.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the labels to this CSV file at the end.")
    ] = None,
    raw: options.Raw = False,
    json: options.Json = False,
) -> int:
    """Label a pool in the terminal; every answer is saved at once, and the next call resumes."""
    path = log if log is not None else Path(f"{pool}.labels.jsonl")
    if export is not None:
        if export.suffix.lower() != ".csv":
            raise InputError(f"{export}: labels are exported as .csv")
        check_writable(export, pool, path, vectors, known_vectors)
    loaded = load_pool(
        pool, columns=options.split_names(columns), id_col=id_col, content_cols=options.split_names(content_cols),
        vectors=vectors, metric=metric, header=not no_header, bits=bits,
    )  # fmt: skip
    outside = None if known_vectors is None else read_vectors(known_vectors)
    if outside is not None and bits is not None:
        outside = PackedBits(np.asanyarray(outside), bits)
    with Campaign(
        loaded.pool, learner, log=path, seed=seed, explore=explore, budget=budget, target=target,
        known=known or (), external_positives=outside,
    ) as campaign:  # fmt: skip
        interrupted = _label(campaign)
        if export is not None:
            _export(campaign, export, raw)
        status = campaign.status()
    if json:
        print_json({**status.as_dict(), "log": str(path)})
    else:
        _farewell(status, path)
    return 130 if interrupted else 0


def _label(campaign: Campaign) -> bool:
    """Ask until the person or the campaign stops; return whether Ctrl-C ended it."""
    screen = err()
    try:
        with _keyboard() as next_key:
            items = campaign.ask()
            while items:
                _show(campaign, items[0])
                while (following := _answer(campaign, items[0], next_key())) is None:
                    screen.print(f"keys: {KEYS}")
                items = following
    except KeyboardInterrupt:
        return True
    except UnicodeDecodeError as wrong:
        raise InputError(f"standard input: an answer is not text; give one key per line: {KEYS}") from wrong
    return False


def _answer(campaign: Campaign, item: Item, key: str) -> list[Item] | None:
    """Act on one key and return what comes next: nothing to quit, None if the key means nothing."""
    if key == "q":
        return []
    if key in ("y", "n"):
        return campaign.answer(item.id, key == "y")
    if key == "s":
        campaign.skip(item.id)
    elif key == "?":
        campaign.mark_unsure(item.id)
    elif key == "u":
        if not campaign.undo():
            err().print("nothing to undo")
    else:
        return None
    return campaign.ask()


@contextmanager
def _keyboard() -> Iterator[Callable[[], str]]:
    """Single keys of a terminal, or lines of a pipe; the end of input means quit.

    The terminal is switched once for all items, not key by key: what is typed while the next item is
    on its way is kept.
    """
    if not sys.stdin.isatty() or termios is None:
        yield lambda: (line.strip()[:1].lower() or " ") if (line := sys.stdin.readline()) else "q"
        return
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    tty.setcbreak(handle, termios.TCSADRAIN)
    try:
        yield lambda: (os.read(handle, 1) or b"q").decode("ascii", "replace").lower()
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def _show(campaign: Campaign, item: Item) -> None:
    status = campaign.status()
    table = Table.grid(padding=(0, 2))
    content = item.content or _vector(campaign, item)
    for name, value in list(content.items())[:_MOST_COLUMNS]:
        text = str(value)
        shown = text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " …"
        table.add_row(Text(str(name), style="dim"), Text(shown))
    title = Text(f"{item.id} · {item.reason}")
    counts = f"{status.positives:,} yes · {status.negatives:,} no · {status.unlabelled:,} left · {status.phase}"
    err().print(Panel(table, title=title, subtitle=Text(counts), title_align="left", subtitle_align="left"))
    err().print(KEYS, style="dim")


def _vector(campaign: Campaign, item: Item) -> dict[str, object]:
    """A pool without contents still has numbers to look at: of many zeros, only what is not zero."""
    pool = campaign.pool
    row = pool.row(item.id)
    if pool.kind == "bits":
        places = bits_set(bit_vectors(pool.vectors)[row], pool.dimensions).tolist()
        names = [_name(pool.columns, place) for place in places[:_MOST_BITS]]
        more = " …" if len(places) > len(names) else ""
        return {f"{len(places):,} of {pool.dimensions:,} bits": " ".join(names) + more}
    if pool.kind == "sparse":
        stored = sparse_vectors(pool.take([row]))
        largest = np.argsort(-np.abs(stored.data), kind="stable")[:_MOST_COLUMNS]
        return {_name(pool.columns, int(stored.indices[at])): f"{stored.data[at]:.6g}" for at in largest}
    values = (dense_vectors(pool.vectors)[row].astype(float) + pool.origin).tolist()
    return {_name(pool.columns, place): f"{value:.6g}" for place, value in enumerate(values)}


def _name(columns: list[str] | None, place: int) -> str:
    return columns[place] if columns is not None else str(place)


def _export(campaign: Campaign, path: Path, raw: bool) -> None:
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = GuardedWriter(file, raw=raw)
        writer.write(["id", "label"])
        writer.write_all((name, int(positive)) for name, positive in campaign.labels().items())


def _farewell(status: Status, path: Path) -> None:
    console = out()
    aside = f", {status.skipped + status.unsure:,} set aside" if status.skipped + status.unsure else ""
    console.print(
        f"{status.labelled:,} labelled: {status.positives:,} yes, {status.negatives:,} no{aside}; "
        f"{status.unlabelled:,} of {status.rows:,} left",
        markup=False,
    )
    if status.stopped:
        console.print(status.stopped, markup=False)
    console.print(f"saved in {path}; the same command resumes", markup=False)
