"""Labels in and out: CSV, JSON Lines, Parquet, and references as reviewers keep them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from activecover.campaign import Campaign
from activecover.errors import InputError
from activecover.intake import FORMATS, Reference, read_references, references_by_id, write_references
from activecover.tables import check_records, read_records, write_records

Which = Literal["labelled", "positive", "all"]
COLUMNS = ("id", "label", "state", "by", "at", "source", "rule", "why", "note")


def rows_of(campaign: Campaign, which: Which = "labelled") -> Iterator[dict[str, Any]]:
    """One record per item: its label, who gave it, when, and why it was asked."""
    for record in campaign.records():
        if which == "positive" and record["label"] != 1:
            continue
        if which == "labelled" and record["label"] is None:
            continue
        yield record
    if which == "all":
        asked = {record["id"] for record in campaign.records()}
        for name in campaign.pool.ids:
            if name not in asked:
                yield dict.fromkeys(COLUMNS) | {"id": name, "state": "open"}


def export_labels(
    campaign: Campaign,
    path: Path,
    which: Which = "labelled",
    originals: Path | None = None,
    *,
    blind: bool = False,
    raw: bool = False,
) -> int:
    """Write labels to a file by its ending (.csv, .jsonl, .parquet, .ris, .nbib); how many there were.

    In CSV, an apostrophe keeps spreadsheets from taking text for formulas; :func:`read_answers` removes it again.
    Programs that read the file otherwise want it ``raw``.

    References have the label as a keyword. They are made of what the pool shows of each, or, if the file
    that the pool came from is given as ``originals``, of all that it says of them. In a file for people who must
    stay ``blind`` it is not said where items came from.
    """
    if path.suffix.lower() in FORMATS:
        return _export_references(campaign, path, which, originals)
    check_records(path, "labels")
    hidden = ("source", "rule", "why") if blind else ()
    records = [
        {name: None if name in hidden else record.get(name) for name in COLUMNS} for record in rows_of(campaign, which)
    ]
    write_records(path, records, raw=raw)
    return len(records)


def _export_references(campaign: Campaign, path: Path, which: Which, originals: Path | None) -> int:
    pool, kind = campaign.pool, path.suffix.lower()
    known: dict[str, Reference] = {}
    if originals is not None:
        known = references_by_id(read_references(originals))
    elif "title" not in pool.contents:
        raise InputError(f"{path}: the items have no titles, so they are no references: export to .csv")
    found, labels = [], []
    for record in rows_of(campaign, which):
        name = record["id"]
        row = int(pool.rows([name])[0])
        if pool.withdrawn[row]:
            continue
        if originals is not None and name not in known:
            raise InputError(f"{originals}: no reference {name!r} in it; give the file that the pool came from")
        found.append(known[name] if originals is not None else Reference.of(pool.content(row), kind))
        labels.append(None if record["label"] is None else bool(record["label"]))
    write_references(path, found, labels)
    return len(found)


def read_answers(
    path: Path, id_column: str = "id", label_column: str = "label", *, raw: bool = False
) -> list[tuple[str, bool]]:
    """Ids and labels (yes/no, 1/0, true/false, included/excluded) from a CSV, JSON Lines or Parquet file.

    The apostrophes that :func:`export_labels` puts before what looks like a formula are removed, unless ``raw``.
    """
    answers = []
    for number, record in enumerate(read_records(path, raw=raw), 1):
        for column in (id_column, label_column):
            if record.get(column) is None:
                raise InputError(
                    f"{path} record {number}: no column {column!r} (there are: {', '.join(map(str, record))})"
                )
        answers.append((str(record[id_column]), _yes_or_no(path, number, str(record[label_column]))))
    return answers


def _yes_or_no(path: Path, number: int, text: str) -> bool:
    word = text.strip().lower()
    if word in ("1", "yes", "y", "true", "positive", "included", "1.0"):
        return True
    if word in ("0", "no", "n", "false", "negative", "excluded", "0.0"):
        return False
    raise InputError(f"{path} record {number}: label {text!r} is neither yes nor no")
