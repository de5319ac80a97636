"""The version of the package: the one place is ``src/activecover/__init__.py``.

``python tools/version.py`` prints it; with ``--tag v0.2.0`` it checks that the tag, CITATION.cff and CHANGELOG.md agree.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = {
    "src/activecover/__init__.py": r'^__version__ = "([^"]+)"',
    "CITATION.cff": r"^version: (\S+)",
    "CHANGELOG.md": r"^## \[([^\]]+)\]",
}


def named(root: Path = ROOT) -> dict[str, str]:
    """The version that each file names; the newest one in the changelog."""
    found = {}
    for name, pattern in PLACES.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match[1] if match else "none"
    return found


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """Why this tag must not be released: one line per reason."""
    version = tag.removeprefix("v")
    lines = [f"{name} names {other}, not {version}" for name, other in named(root).items() if other != version]
    heading = re.search(r"^## \[.*", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if heading and not re.fullmatch(r"## \[[^\]]+\] - \d{4}-\d\d-\d\d", heading[0]):
        lines.append(f"CHANGELOG.md: {heading[0]!r} has no date: write '## [{version}] - YEAR-MONTH-DAY'")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Print the version, or check a tag."""
    parser = argparse.ArgumentParser(description="The version of the package.")
    parser.add_argument("--tag", help="check that everything names the version of this tag")
    tag = parser.parse_args(arguments).tag
    if tag is None:
        print(named()["src/activecover/__init__.py"])
        return 0
    found = problems(tag)
    print("\n".join(found) or f"{tag}: the package, the citation and the changelog agree", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
