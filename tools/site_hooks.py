"""Hooks of the documentation site: the generated reference, and the pages of the repository outside docs/.

MkDocs calls the functions named ``on_…``. Links from a page to a file outside ``docs/`` lead to a page with its text,
so that the site needs no address of a forge.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "src")]

import reference  # noqa: E402

#: Documents of the repository that are pages of the site.
DOCUMENTS = {
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "GOVERNANCE.md": "project/governance.md",
    "SECURITY.md": "project/security.md",
}
LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml", ".yaml": "yaml", ".conf": "nginx", ".service": "ini"}
PICTURES = (".png", ".svg")
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def place(target: str) -> str | None:
    """The page of the site that shows a file or folder of the repository; None if it has no page."""
    if target in DOCUMENTS:
        return DOCUMENTS[target]
    if target == "README.md":
        return "index.md"
    if target.startswith("docs/") and not (ROOT / target).is_dir():
        return target.removeprefix("docs/")
    return f"repository/{target.strip('/')}.md" if (ROOT / target).exists() else None


def moved(text: str, origin: str, page: str) -> str:
    """Text of the repository's file ``origin`` with its links as seen from the page ``page`` of the site."""

    def follow(match: re.Match[str]) -> str:
        target = match[2]
        if "://" in target or target.startswith(("mailto:", "/")):
            return match[0]
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
        known = place(inside)
        if known is None:
            return match[0]
        return f"{match[1]}{posixpath.relpath(known, posixpath.dirname(page) or '.')}{match[3]}"

    pieces, last = [], 0
    for block in FENCE.finditer(text):
        pieces += [LINK.sub(follow, text[last : block.start()]), block[0]]
        last = block.end()
    return "".join([*pieces, LINK.sub(follow, text[last:])])


def listing(target: str) -> str:
    """A page with the text of a file, or of the files in a folder."""
    path = ROOT / target
    files = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    parts = [f"# {target}\n\nFrom the repository.\n"]
    for one in files:
        if one.suffix in PICTURES:
            picture = posixpath.relpath(str(place(f"{target}/{one.name}")), posixpath.dirname(f"repository/{target}"))
            parts.append(f"\n## {one.name}\n\n![{one.stem}]({picture})\n")
            continue
        text = one.read_text(encoding="utf-8")
        name = f"\n## {one.name}\n" if path.is_dir() else ""
        if one.suffix == ".md":
            parts.append(f"{name}\n{text}\n")
        else:
            parts.append(f"{name}\n````{LANGUAGES.get(one.suffix, 'text')}\n{text.rstrip()}\n````\n")
    return "".join(parts)


def linked_from(origin: str, text: str) -> set[str]:
    """Files and folders outside docs/, without a page of their own, that a text links to."""
    found = set()
    for match in LINK.finditer(FENCE.sub("", text)):
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[2]))
        known = None if "://" in match[2] or inside.startswith("..") else place(inside)
        if known and known.startswith("repository/"):
            found.add(inside)
    return found


def repository_pages() -> dict[str, str]:
    """Pages for documents outside docs/, and for whatever else the pages link to."""
    documents = {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS if (ROOT / name).exists()}
    pages = {f"docs/{path.name}": path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    linked = {target for origin, text in {**documents, **pages}.items() for target in linked_from(origin, text)}
    return {
        **{DOCUMENTS[name]: moved(text, name, DOCUMENTS[name]) for name, text in documents.items()},
        **{f"repository/{target}.md": listing(target) for target in sorted(linked)},
    }


def on_config(config: Any) -> Any:
    """List the generated pages in the navigation, below the index that comes before them."""
    generated = {**reference.python_pages(ROOT), **reference.command_pages()}
    for folder in ("reference/python", "reference/cli"):
        index = f"{folder}/index.md"
        extend(config.nav, index, [uri for uri in generated if uri.startswith(f"{folder}/") and uri != index])
    return config


def extend(nav: Any, index: str, pages: list[str]) -> None:
    """Append pages to the section of the navigation that begins with ``index``."""
    if isinstance(nav, dict):
        nav = list(nav.values())
    elif index in nav:
        nav += pages
        return
    for part in nav:
        if not isinstance(part, str):
            extend(part, index, pages)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are written from the code and those from outside docs/."""
    from mkdocs.structure.files import File

    for uri, text in {**reference.all_pages(ROOT), **repository_pages()}.items():
        files.append(File.generated(config, uri, content=text))
    return files


def boost(uri: str) -> float:
    """How far up a page comes in the results of a search: the manual before the reference, and that before the rest."""
    if uri.startswith("reference/"):
        return 1
    if uri.startswith(("project/", "repository/")) or uri in ("decisions.md", "evidence.md", "results.md"):
        return 0.5
    return 2


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links that leave docs/ to the pages that show their targets, and rank the page for the search."""
    uri = page.file.src_uri
    page.meta.setdefault("search", {"boost": boost(uri)})
    if page.file.generated_by is not None:
        return markdown
    return moved(markdown, f"docs/{uri}", uri)
