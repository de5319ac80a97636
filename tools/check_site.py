"""Check the links of the built site: every page, anchor, picture, style and script that a page names must be there.

    python tools/check_site.py build/site

Links to other hosts are counted, not followed. Nothing may be loaded from another host.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that load something, as opposed to leading somewhere.
LOADS = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src")}


class Page(HTMLParser):
    """The links and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.anchors: set[str] = {"", "__skip", "__search"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names."""
        sheet = tag == "link" and dict(attrs).get("rel") in ("stylesheet", "icon", "preload")
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.append((tag if sheet or (tag, name) in LOADS else "a", value))


def problems(root: Path) -> tuple[list[str], int]:
    """Broken links, a line each, and the number of links to other hosts."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.html"))}
    broken, outside = [], 0
    for path, page in pages.items():
        for tag, link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("mailto", "data", "javascript"):
                continue
            if parts.netloc:
                outside += 1
                if tag != "a":
                    broken.append(f"{path.relative_to(root)}: loads {link} from another host")
                continue
            target = file_of(root, path, unquote(parts.path))
            if not target.is_file():
                broken.append(f"{path.relative_to(root)}: {link} leads nowhere")
            elif target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].anchors:
                broken.append(f"{path.relative_to(root)}: {link} names no anchor of {target.relative_to(root)}")
    return broken, outside


def file_of(root: Path, page: Path, link: str) -> Path:
    """The file that a link on a page leads to."""
    if not link:
        return page
    target = (root / link.lstrip("/")) if link.startswith("/") else (page.parent / link)
    target = target.resolve()
    return target / "index.html" if target.is_dir() else target


def main(arguments: list[str]) -> int:
    """Check a site."""
    root = Path(arguments[0]).resolve()
    broken, outside = problems(root)
    print("\n".join(broken))
    pages = len(list(root.rglob("*.html")))
    print(f"{pages} pages, {len(broken)} broken links, {outside} links to other hosts (not followed)")
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
