"""References in RIS and PubMed nbib files: read tolerantly, and written back in full."""

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
#: Tags for a user's own keywords, which reference managers show.
_KEYWORD = {".ris": "KW", ".nbib": "OT"}
_MARK = "activecover_"
_INCLUDED, _EXCLUDED = f"{_MARK}included", f"{_MARK}excluded"
#: Keywords that record a reviewer's decision: those of activecover and of ASReview.
_DECISIONS = {_INCLUDED: "1", _EXCLUDED: "0", "asreview_relevant": "1", "asreview_irrelevant": "0"}

#: Tags that hold each part, the best one first.
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
    """One reference: its tags in the order of the file, including repeated ones.

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
        """A reference made from the columns shown to a person (title, authors, year, …).

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
            # PubMed's tag for a DOI needs to say what it is.
            fields += [(tags[0], f"{value} [doi]" if tags[0] == "LID" else value) for value in values if value]
        return cls(tuple(fields), format)

    def all(self, tag: str) -> list[str]:
        """Every value of a tag, each on one line."""
        return [" ".join(value.split()) for known, value in self.fields if known == tag and value]

    def parts(self) -> dict[str, str]:
        """The columns shown to a person: title, abstract, authors, year, journal, doi, keywords."""
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
        """Its number in the database, or an empty text."""
        return (self._first(_NUMBER[self.format]) or [""])[0]

    @property
    def decision(self) -> str:
        """The decision recorded in the file: "1", "0" or an empty text."""
        words = [word.lower() for tag in (_KEYWORD[self.format], "N1") for word in self.all(tag)]
        return next((_DECISIONS[word] for word in words if word in _DECISIONS), "")

    def with_decision(self, included: bool | None) -> Reference:
        """A copy with the decision as a keyword; None removes an earlier decision."""
        kept = [(tag, value) for tag, value in self.fields if not value.startswith(_MARK)]
        if included is not None:
            kept.append((_KEYWORD[self.format], _INCLUDED if included else _EXCLUDED))
        return replace(self, fields=tuple(kept))

    def _first(self, tags: Sequence[str]) -> list[str]:
        return next((values for tag in tags if (values := self.all(tag))), [])


def read_references(path: str | Path) -> list[Reference]:
    """Read a ``.ris`` or ``.nbib`` file.

    Fields may span several lines, tags may repeat, and the line that ends a reference may be missing. Text is UTF-8,
    or UTF-16 with a byte order mark; anything else is read as Windows-1252.
    """
    path = Path(path)
    kind = _kind(path)
    try:
        text = _decoded(path.read_bytes())
    except OSError as wrong:
        raise InputError(f"{path}: cannot be read ({wrong.strerror})") from wrong
    found = [Reference(tuple(fields), kind) for fields in _records(text, kind)]
    if not found:
        raise InputError(f"{path}: contains no references; is it a {kind} file?")
    return found


def references_by_id(references: Sequence[Reference]) -> dict[str, Reference]:
    """References by pool id: their database numbers if these are unique, else their positions."""
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
        Replaced all or nothing.
    references : sequence of Reference
        In the format that the file name implies.
    labels : sequence of bool or None, optional
        The decision on each, written as the keyword ``activecover_included`` or ``activecover_excluded`` (no keyword
        if undecided), which reference managers show as a tag.
    """
    path = Path(path)
    kind = _kind(path)
    if labels is not None:
        references = [one.with_decision(label) for one, label in zip(references, labels, strict=True)]
    for row, reference in enumerate(references):
        if reference.format != kind:
            raise InputError(
                f"{path}: reference {row} came from a {reference.format} file; write to a file of that type"
            )
    with replacing(path) as temporary:
        temporary.write_text("".join(map(_written, references)), encoding="utf-8", newline="\n")


def _written(reference: Reference) -> str:
    ris = reference.format == ".ris"
    # Continuation lines begin with blanks, so that they are not read as tags.
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
    """The fields of each reference; text before the first tag is skipped."""
    fields: list[tuple[str, str]] = []
    blank = 0
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        found = _TAG[kind].match(line)
        if found:
            tag, value = found.group(1), found.group(2).strip()
            ends = tag == "ER" and kind == ".ris"
            # If a reference lacks its end line, the first line of the next one ends it.
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
