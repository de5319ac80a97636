"""The prose of the package and its pages: no phrases that a reader has to read twice."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "activecover"

#: Phrases to avoid, as regular expressions, and what to write instead.
PHRASES = {
    r"would else": "would otherwise",
    r"who(m?)ever|whyever": "name the person or the thing",
    r"(?<!not )\bso (many|much)\b(?! (of|as|that|the|more|less|faster|slower))": "give the number, or name the parameter",
    r"(is|are|was|were|be) said (with|by|to|of|in)\b": "say who reports or records what",
    r"(as|than|what) (is|was|were|are) said": "as stated, as given",
    r"what is said|whatever is said": "the message",
    r"where there is none": "if there is none",
    r"(is|are|was|were|be) gone on with": "is resumed",
    r"go(es)? on (where|from (there|here))": "resumes",
    r"whether we are\b": "return whether it succeeded",
    r"is kept which|are kept which": "put the relative clause next to its noun",
    r"at least so much": "includes",
    r"looks away|looks aside": "skips",
    r"says? (nothing|something|little|much) of\b": "says … about",
    r"knows? no more than": "is no better than",
    r"hangs? together": "are connected",
    r"(is|are|be) taken for": "counts as, is treated as",
    r"of (yours|ours|theirs)\b": "your own, our own, their own",
    r"at the most\b": "at most",
    r"all the same\b": "nevertheless",
    r"by another way": "through another channel",
    r"(?-i:none given|none where|none if (it|no|the|there))": "None if …",
    r"how far things are": "the progress",
    r"who has (which|what)": "which person has which item",
    r"\banew\b": "again, afresh",
    r"come by\b|comes by\b|came by\b": "reach, get",
    r"say of (positives|what)\b": "say about",
    r"the one or the other": "either",
    r"to the bit\b": "bit-identical",
    r"(by|from|of) strangers?\b": "untrusted",
    r"what (is|goes) wrong in one line": "one-line errors",
    r"in the plainest": "as plainly as possible",
    r"goes? through (all|every|millions)": "processes, reads",
    r"next to (no|nothing)\b": "almost no",
}
PATTERNS = {re.compile(rf"\b(?:{phrase})", re.IGNORECASE): better for phrase, better in PHRASES.items()}

_QUOTES = re.compile(r"^#:?|^[rbfu]*[\"']+|[\"']+$", re.IGNORECASE)

#: Phrases that are right where they stand, as (file, text).
ALLOWED: set[tuple[str, str]] = set()

#: Rooms of the package, and pages, that have not been rewritten yet. Take out what is done; add nothing.
TO_DO = {
    "docs/learners.md",
    "docs/security.md",
    "learners",
}


def rooms() -> dict[str, list[Path]]:
    """The parts of the package and the pages, by name, with their files."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        found.setdefault(parts[0] if parts[0] not in ("cli", "testing") else "/".join(parts), []).append(path)
    for path in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")]):
        found[path.relative_to(ROOT).as_posix()] = [path]
    return found


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and strings of a module, adjacent ones joined, or the paragraphs of a page, with their lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        line = 1
        for paragraph in text.split("\n\n"):
            yield line, paragraph
            line += paragraph.count("\n") + 2
        return
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    start, parts, last = 0, [], -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            if parts and token.type != last:
                yield start, " ".join(parts)
                parts = []
            start = start if parts else token.start[0]
            last = token.type
            parts.append(_QUOTES.sub("", token.string))
        elif token.type not in (
            tokenize.NL,
            getattr(tokenize, "FSTRING_END", -1),
            getattr(tokenize, "FSTRING_START", -1),
        ):
            if parts:
                yield start, " ".join(parts)
            parts = []
    if parts:
        yield start, " ".join(parts)


def findings(path: Path) -> list[str]:
    """What to rewrite in a file, a line each."""
    name = path.relative_to(ROOT).as_posix()
    return [
        f"{name}:{line}: {found[0]!r} in {text[max(0, found.start() - 30) : found.end() + 20]!r}: {better}"
        for line, raw in prose(path)
        for text in [" ".join(raw.split())]
        for pattern, better in PATTERNS.items()
        for found in pattern.finditer(text)
        if not any(name == where and allowed in text for where, allowed in ALLOWED)
    ]


@pytest.mark.parametrize("room", sorted(rooms()))
def test_prose_needs_no_second_reading(room: str) -> None:
    found = [line for path in rooms()[room] for line in findings(path)]
    if room in TO_DO:
        assert found, f"{room} is done: take it out of TO_DO"
    else:
        assert not found, "\n".join(found)


def test_what_is_to_do_exists() -> None:
    assert set(rooms()) >= TO_DO


def test_phrases_are_found_across_lines_and_in_help_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    module = tmp_path / "module.py"
    module.write_text(
        '"""It would\n    else fail."""\n# Rows that are gone\n# on with.\nhelp = ("Keep it, whoever " f"asks {1}.")\n'
    )
    assert [line.split(":")[1] for line in findings(module)] == ["1", "3", "5"]
