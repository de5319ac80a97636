"""The schema of ``pool.json``: types, files inside the folder, and the size that each file must have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from activecover.pool._parts import BLOCK
from activecover.pool._pool import METRICS

_REQUIRED = {"kind", "metric", "dimensions", "rows", "named", "columns", "contents", "about"}
_OPTIONAL = {"index", "format", "files", "statistics", "marked"}
_KINDS = ("dense", "sparse", "bits")
#: More rows or dimensions fit no memory, and their products would overflow.
_MOST = 2**40
_HASH = re.compile(r"[0-9a-f]{32}")
_STATISTIC = re.compile(r"[\w -]+")
_INSIDE = re.compile(r"(?:embedding|statistics)/[^/\\\0-\x1f]+")


def check_stored(written: Any) -> None:
    """Raise a ValueError unless the record fits the schema; code that reads pools relies on it."""
    _need(isinstance(written, dict) and set(written) >= _REQUIRED, "fields are missing")
    _need(set(written) <= _REQUIRED | _OPTIONAL, "unknown fields")
    _need(written["kind"] in _KINDS and written["metric"] in METRICS, "unknown kind or metric")
    _need(_count(written["dimensions"]) and _count(written["rows"]) and type(written["named"]) is bool, "no counts")
    _need(written["dimensions"] > 0 or written["kind"] == "sparse", "no dimensions")
    columns, contents = written["columns"], written["contents"]
    _need(columns is None or (_texts(columns) and len(columns) == written["dimensions"]), "columns")
    _need(_texts(contents) and len(set(contents)) == len(contents), "contents")
    _need(isinstance(written["about"], dict) and written.get("index", "<i4") in ("<i4", "<i8"), "about or index")
    marked = written.get("marked")
    _need(marked is None or (isinstance(marked, str) and _HASH.fullmatch(marked) is not None), "marked")
    files, statistics = written.get("files", {}), written.get("statistics", {})
    _need(isinstance(files, dict) and isinstance(statistics, dict), "files")
    for name, part in files.items():
        _check_part(name, part)
    derived = [file for name, kept in statistics.items() for file in _statistic_files(name, kept, written["rows"])]
    fixed = _fixed_sizes(written, files)
    others = set(files) - set(fixed) - set(derived)
    _need(len(set(derived)) == len(derived) and set(derived) <= set(files), "statistics")
    _need(
        all(name.startswith("embedding/") and _is_inside(name) for name in others),
        "a file that does not belong to a pool",
    )
    for name, size in fixed.items():
        _need(name in files and files[name]["size"] == size, f"the size of {name}")
    for kept in statistics.values():
        for file, (dtype, width) in kept["files"].items():
            _need(files[file]["size"] == kept["rows"] * width * (4 if dtype == "<i4" else 8), "the size of a statistic")


def _fixed_sizes(written: Mapping[str, Any], files: Mapping[str, Any]) -> dict[str, int]:
    """The files of a pool of this kind with their sizes; a size that may vary is taken from the record."""
    rows, dimensions = written["rows"], written["dimensions"]
    said = {name: part["size"] for name, part in files.items()}
    sizes = {"withdrawn.npy": rows, "origin.npy": 0 if written["kind"] == "bits" else 4 * dimensions}
    if written["kind"] == "sparse":
        entries = said.get("data.npy", 0) // 4
        width = 4 if written.get("index", "<i4") == "<i4" else 8
        sizes |= {"data.npy": 4 * entries, "indices.npy": width * entries, "indptr.npy": 8 * (rows + 1)}
    else:
        sizes["vectors.npy"] = rows * (4 * dimensions if written["kind"] == "dense" else -(-dimensions // 64) * 8)
    if written["named"]:
        sizes["ids.jsonl"] = said.get("ids.jsonl", -1)
    if written["contents"]:
        sizes |= {"offsets.npy": 8 * (rows + 1), "contents.bin": said.get("contents.bin", -1)}
    return sizes


def _check_part(name: str, part: Any) -> None:
    _need(isinstance(part, dict) and set(part) == {"size", "blocks"}, "a part")
    _need(_count(part["size"], 2**60) and isinstance(part["blocks"], list), "the size of a part")
    _need(len(part["blocks"]) == -(-part["size"] // BLOCK), f"the hashes of {name}")
    _need(all(isinstance(block, str) and _HASH.fullmatch(block) for block in part["blocks"]), f"a hash of {name}")


def _statistic_files(name: str, kept: Any, rows: int) -> list[str]:
    _need(_STATISTIC.fullmatch(name) is not None and isinstance(kept, dict), "a statistic")
    _need(set(kept) == {"rows", "facts", "files", "parts"} and isinstance(kept["facts"], dict), "a statistic")
    files, parts = kept["files"], kept["parts"]
    _need(_count(kept["rows"]) and kept["rows"] <= rows and isinstance(files, dict), "a statistic")
    _need(isinstance(parts, dict) and set(parts) == set(files) and _texts(list(parts.values())), "a statistic's parts")
    for file, layout in files.items():
        _need(file.startswith("statistics/") and _is_inside(file), "a statistic's file")
        _need(isinstance(layout, list) and len(layout) == 2 and layout[0] in ("<i4", "<f8"), "a statistic's type")
        _need(_count(layout[1]), "a statistic's width")
    return list(files)


def _is_inside(name: str) -> bool:
    return _INSIDE.fullmatch(name) is not None and not name.endswith(("/.", "/.."))


def _texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _count(value: object, most: int = _MOST) -> bool:
    return type(value) is int and 0 <= value <= most


def _need(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(what)
