"""``activecover data``: get the benchmark data sets and check them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from activecover.cli import _options as options
from activecover.cli._show import meter, out, print_json, print_table
from activecover.errors import InputError
from activecover.lab.datasets import DATASETS, DatasetSpec, data_folder, fetch, load_dataset

app = typer.Typer(help="Get the benchmark data sets and check them.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The data set's name.")]
Folder = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the data sets; default: ACTIVECOVER_DATA, or a cache.")
]


@app.command("list")
def list_datasets(data_dir: Folder = None, json: options.Json = False) -> None:
    """List the data sets, and which of them are on this machine."""
    rows = []
    for entry in DATASETS:
        source = entry.build()
        here = source.bundled or _is_here(source, data_folder(data_dir) / entry.name)
        rows.append((entry.name, here, entry.summary, source.terms))
    if json:
        names = ("name", "here", "summary", "terms")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    print_table("", ["data set", "here", "what it is", "terms"], rows)
    _say(f"data folder: {data_folder(data_dir)}")


def _is_here(source: DatasetSpec, folder: Path) -> bool:
    """Whether all downloads are there or, if there are none, files that were put there by hand."""
    there = [(folder / download.file).exists() for download in source.downloads]
    if any(there):
        return all(there)
    return folder.is_dir() and any(
        path.suffix != ".part" and not path.name.startswith(".") for path in folder.iterdir()
    )


@app.command("fetch")
def fetch_dataset(name: Name, data_dir: Folder = None, json: options.Json = False) -> None:
    """Download a data set; an interrupted download is resumed."""
    with meter("bytes", quiet=json) as shown:
        folder = fetch(name, data_dir, lambda what, done, total: shown.update(what, done, max(done, total)))
    if json:
        print_json({"name": folder.name, "folder": str(folder)})
    else:
        _say(f"{folder.name}: ready in {folder}; check it with: activecover data check {folder.name}")


@app.command("check")
def check(name: Name, data_dir: Folder = None, json: options.Json = False) -> None:
    """Read a data set and compare what is there with what was published."""
    source = DATASETS.build(name)
    with meter("", quiet=json) as shown:
        dataset = load_dataset(source.name, data_dir, shown.update)
    counts = {label: int(dataset.positive(label).sum()) for label in dataset.classes}
    if source.counts and counts != dict(source.counts):
        wrong = next(label for label in {**source.counts, **counts} if counts.get(label) != source.counts.get(label))
        raise InputError(
            f"{data_folder(data_dir) / source.name}: {counts.get(wrong, 0):,} items of {wrong!r} instead of the "
            f"published {source.counts.get(wrong, 0):,}; delete it and run: activecover data fetch {source.name}"
        )
    if json:
        print_json({"name": source.name, "items": len(dataset), "labels": counts})
        return
    remark = ", as published" if source.counts else ""
    if source.subset_allowed:
        remark = "; this may be a part of a larger set"
    _say(f"{source.name}: {len(dataset):,} items, {len(counts)} labels{remark}")


def _say(line: str) -> None:
    """Print one line, however long the folder's name is."""
    out().print(line, markup=False, soft_wrap=True)
