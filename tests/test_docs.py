"""What the pages of docs/ show in Python runs, block by block, in the order of the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: These need a cluster, a server or files of their own; tests/frontier/test_ray.py, tests/web and tests/test_extend.py
#: run what they show.
ELSEWHERE = {"extend.md", "scale.md", "serve.md"}
PAGES = [page for page in sorted(DOCS.glob("*.md")) if page.name not in ELSEWHERE and BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "docs"}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, page.name, "exec"), namespace)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert not [target for target in targets if "://" not in target and not (page.parent / target).exists()]
