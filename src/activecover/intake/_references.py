"""References as reviewers keep them: RIS and PubMed's nbib, read tolerantly and written again in full."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from activecover.errors import InputError
from activecover.files import replacing

FORMATS = (".ris", ".nbib")

_TAG = {
    ".ris": re.compile(r"([A-Z][A-Z0-9])(?:  -| -(?= |$)) ?(.*)"),
    ".nbib": re.compile(r"([A-Z][A-Z0-9]{1,3}) {0,2}-(?: |$)(.*)"),
}
_FIRST = {".ris": "TY", ".nbib": "PMID"}
#: Where keywords of one's own belong: reference managers show them as tags.
_KEYWORD = {".ris": "KW", ".nbib": "OT"}
_MARK = "activecover_"
_INCLUDED, _EXCLUDED = f"{_MARK}included", f"{_MARK}excluded"
#: Keywords that say what a reviewer decided: ours, and those of ASReview.
_DECISIONS = {_INCLUDED: "1", _EXCLUDED: "0", "asreview_relevant": "1", "asreview_irrelevant": "0"}

#: Where each part is found, the best place first.
_PARTS = {
    ".ris": {
        "title": ("TI", "T1", "CT", "BT"),
        "abstract": ("AB", "N2"),
        "authors": ("AU", "A1", "A2", "A3"),
        "year": ("PY", "Y1", "DA"),
        "journal": ("JO", "JF", "T2", "JA", "J2"),
        "doi": ("DO",),
        "keywords": ("KW",),
    },
    ".nbib": {
        "title": ("TI", "BTI"),
        "abstract": ("AB",),
        "authors": ("FAU", "AU", "CN"),
        "year": ("DP", "DEP"),
        "journal": ("JT", "TA"),
        "doi": ("LID", "AID"),
        "keywords": ("OT", "MH"),
    },
}
_NUMBER = {".ris": ("AN", "ID"), ".nbib": ("PMID",)}


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference: its tags in the order of the file, repeated ones included.

    A value of several lines keeps its line breaks.

    Examples
    --------
    >>> paper = Reference((("TY", "JOUR"), ("TI", "On bees"), ("AU", "Ann"), ("AU", "Bob"), ("PY", "1999/05")))
    >>> paper.parts()["authors"], paper.parts()["year"]
    ('Ann; Bob', '1999')
    >>> paper.with_decision(True).fields[-1]
    ('KW', 'activecover_included')
    """

    fields: tuple[tuple[str, str], ...]
    format: str = ".ris"

    @classmethod
    def of(cls, parts: Mapping[str, Any], format: str = ".ris") -> Reference:
        """A reference from what a person is shown of it (title, authors, year, …).

        Examples
        --------
        >>> Reference.of({"title": "On bees", "authors": "Ann; Bob"}).fields
        (('TY', 'JOUR'), ('TI', 'On bees'), ('AU', 'Ann'), ('AU', 'Bob'))
        """
        number = str(parts.get("number") or "")
        first = ("TY", "JOUR") if format == ".ris" else ("PMID", number)
        fields = [first, *([(_NUMBER[format][0], number)] if format == ".ris" and number else [])]
        for part, tags in _PARTS[format].items():
            text = str(parts.get(part) or "").strip()
            values = text.split("; ") if part in ("authors", "keywords") else [text]
            # Of the places for a DOI, PubMed's says what it is.
            fields += [(tags[0], f"{value} [doi]" if tags[0] == "LID" else value) for value in values if value]
        return cls(tuple(fields), format)

    def all(self, tag: str) -> list[str]:
        """Every value of a tag, on one line each."""
        return [" ".join(value.split()) for known, value in self.fields if known == tag and value]

    def parts(self) -> dict[str, str]:
        """What a person is shown: title, abstract, authors, year, journal, doi, keywords."""
        found = {part: self._first(tags) for part, tags in _PARTS[self.format].items()}
        year = re.search(r"\d{4}", " ".join(found["year"]))
        doi = [word for value in found["doi"] for word in value.split() if word.startswith("10.")]
        return {
            **{part: "; ".join(values) for part, values in found.items()},
            "title": " ".join(found["title"]),
            "abstract": " ".join(found["abstract"]),
            "year": year.group() if year else "",
            "journal": found["journal"][0] if found["journal"] else "",
            "doi": doi[0] if doi else "",
            "keywords": "; ".join(word for word in found["keywords"] if word.lower() not in _DECISIONS),
        }

    @property
    def number(self) -> str:
        """The number under which its data base knows it, or nothing."""
        return (self._first(_NUMBER[self.format]) or [""])[0]

    @property
    def decision(self) -> str:
        """What was decided on it, as far as the file says: "1", "0" or nothing."""
        words = [word.lower() for tag in (_KEYWORD[self.format], "N1") for word in self.all(tag)]
        return next((_DECISIONS[word] for word in words if word in _DECISIONS), "")

    def with_decision(self, included: bool | None) -> Reference:
        """A copy that says what was decided on it, as a keyword; None takes an earlier mark away."""
        kept = [(tag, value) for tag, value in self.fields if not value.startswith(_MARK)]
        if included is not None:
            kept.append((_KEYWORD[self.format], _INCLUDED if included else _EXCLUDED))
        return replace(self, fields=tuple(kept))

    def _first(self, tags: Sequence[str]) -> list[str]:
        return next((values for tag in tags if (values := self.all(tag))), [])


def read_references(path: str | Path) -> list[Reference]:
    """Read a ``.ris`` or ``.nbib`` file.

    Fields may run over several lines, tags may repeat, and the line that ends a reference may be missing.
    Text is UTF-8 (or UTF-16 with its mark); what is neither is taken for Windows' Western European.
    """
    path = Path(path)
    kind = _kind(path)
    try:
        text = _decoded(path.read_bytes())
    except OSError as wrong:
        raise InputError(f"{path}: cannot be read ({wrong.strerror})") from wrong
    found = [Reference(tuple(fields), kind) for fields in _records(text, kind)]
    if not found:
        raise InputError(f"{path}: no references in it; is it a {kind} file?")
    return found


def references_by_id(references: Sequence[Reference]) -> dict[str, Reference]:
    """References by the ids that a pool gives them: their numbers if all have one of their own, else their places."""
    numbers = [reference.number for reference in references]
    if all(numbers) and len({*numbers}) == len(numbers):
        return dict(zip(numbers, references, strict=True))
    return {str(place): reference for place, reference in enumerate(references)}


def write_references(
    path: str | Path, references: Sequence[Reference], labels: Sequence[bool | None] | None = None
) -> None:
    """Write references to a ``.ris`` or ``.nbib`` file, with all their tags.

    Parameters
    ----------
    path : path
        Replaced as a whole or not at all.
    references : sequence of Reference
        Of the format that the file's name asks for.
    labels : sequence of bool or None, optional
        What was decided on each: it goes out as the keyword ``activecover_included`` or
        ``activecover_excluded`` (none where undecided), which reference managers show as a tag.
    """
    path = Path(path)
    kind = _kind(path)
    if labels is not None:
        references = [one.with_decision(label) for one, label in zip(references, labels, strict=True)]
    for row, reference in enumerate(references):
        if reference.format != kind:
            raise InputError(f"{path}: reference {row} came from a {reference.format} file; write it to one")
    with replacing(path) as temporary:
        temporary.write_text("".join(map(_written, references)), encoding="utf-8", newline="\n")


def _written(reference: Reference) -> str:
    ris = reference.format == ".ris"
    # A further line begins with blanks, so that it is not taken for a tag.
    lines = [f"{tag:<4}- {value}".replace("\n", "\n      ") for tag, value in reference.fields]
    return "\n".join([*lines, *(["ER  - "] if ris else []), "", ""])


def _kind(path: Path) -> str:
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise InputError(f"{path}: references come from {' and '.join(FORMATS)} files")
    return kind


def _decoded(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def _records(text: str, kind: str) -> Iterator[list[tuple[str, str]]]:
    """Fields of one reference after the other; what stands before the first tag is left out."""
    fields: list[tuple[str, str]] = []
    blank = 0
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        found = _TAG[kind].match(line)
        if found:
            tag, value = found.group(1), found.group(2).strip()
            ends = tag == "ER" and kind == ".ris"
            # Where the last line of a reference is missing, the first of the next one tells.
            starts = tag == _FIRST[kind] or (kind == ".nbib" and blank > 0)
            if fields and (ends or starts):
                yield fields
                fields = []
            if not ends:
                fields.append((tag, value))
            blank = 0
        elif not line.strip():
            blank += 1
        elif fields:
            tag, value = fields[-1]
            fields[-1] = (tag, value + "\n" * (blank + 1) + line.strip())
            blank = 0
    if fields:
        yield fields
