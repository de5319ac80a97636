"""A preview of a file, for a person who decides how to import it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from activecover.intake._catalogue import choose_embedding
from activecover.intake._images import is_picture
from activecover.intake._read import read_table
from activecover.tables import as_text

#: Names of columns that probably hold ids or known labels; both can be overridden.
_ID = re.compile(r"^(id|key|uid|.*[_ ]id)$", re.IGNORECASE)
_LABEL = re.compile(r"^(label.*|class|target|included|y)$", re.IGNORECASE)
_ROWS = 8
_LONGEST = 400


def preview(path: Path, *, header: bool = True) -> dict[str, Any]:
    """The first rows of a file, and how vectors would be made from it, as plain data for JSON."""
    table = read_table(path, header=header)
    choice = choose_embedding(table)
    names = [name for name in table.names if not table.width(name)]
    return {
        "rows": len(table),
        "columns": names,
        "first": {name: [_shown(value) for value in table.column(name)[:_ROWS]] for name in names},
        "embed": choice.name,
        "embed_columns": list(choice.columns or []),
        "reason": choice.reason.replace(str(path), "the file"),
        "id_column": names[0] if names and _ID.search(names[0]) else None,
        "label_column": next((name for name in names if _LABEL.search(name)), None),
        "images": table.images is not None,
    }


def _shown(value: object) -> str:
    text = as_text(value)
    return text if is_picture(text) else text[:_LONGEST]
