"""The lowest versions that pyproject.toml allows, as constraints for pip.

    python tools/minimum.py web plot > bounds.txt

prints ``name==lower bound`` for each dependency of the package and of the named extras.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*>=\s*([0-9][0-9.]*)$")


def bounds(extras: Sequence[str], project: Path = PROJECT) -> Iterator[str]:
    """Each dependency with its lower bound.

    Raises
    ------
    ValueError
        If a dependency has no lower bound, or another form than ``name>=version``.
    """
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    wanted = [*table["dependencies"]]
    for extra in extras:
        wanted += table["optional-dependencies"][extra]
    for requirement in wanted:
        match = REQUIREMENT.match(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no lower bound of the form name>=version")
        yield f"{match[1]}=={match[2]}"


if __name__ == "__main__":
    print("\n".join(bounds(sys.argv[1:])))
