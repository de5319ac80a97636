"""Tables that a benchmark writes into a page, between its markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def write_parts(page: Path, parts: Mapping[str, Sequence[str]]) -> None:
    """Replace what lies between ``<!-- name -->`` and ``<!-- end of name -->``, for each part."""
    text = page.read_text(encoding="utf-8")
    for name, lines in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, _, rest = text.partition(begin)
        _, _, tail = rest.partition(end)
        if not rest or not tail:
            raise SystemExit(f"{page}: no part {name!r} between markers")
        text = head + begin + "\n" + "\n".join(lines) + "\n\n" + end + tail
    page.write_text(text, encoding="utf-8")
