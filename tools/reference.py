"""Pages of the reference, written from the code: Python modules, the command line, the HTTP API.

Used by the hooks of the documentation site (``tools/site_hooks.py``) and by the smoke test of a release.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

#: Modules with a page, in the order of the navigation. The others may change without notice.
PUBLIC = {
    "campaign": "Live campaigns",
    "workspace": "Campaigns by name",
    "pool": "Pools",
    "intake": "From files to pools",
    "learners": "Learners",
    "stopping": "Stopping rules",
    "planning": "Planning",
    "simulate": "Simulation",
    "trace": "Traces of runs",
    "metrics": "Figures",
    "web": "HTTP client",
    "web.server": "HTTP server",
    "store": "Stores",
    "frontier": "Nearest open rows",
    "graph": "Neighbour graphs",
    "draw": "Pictures",
    "registry": "Parts by name",
    "testing": "Check suites",
    "errors": "Errors",
    "deprecation": "Deprecation",
}
#: Modules without an underscore that are not part of the public interface.
INTERNAL = {"cli", "lab", "tables", "parallel", "compiling", "extras", "files", "spreadsheet", "strict"}

Pages = dict[str, str]


def source_of(root: Path, module: str) -> Path:
    """The file that defines a module of the package."""
    base = root / "src" / "activecover" / Path(*module.split("."))
    package = base / "__init__.py"
    return package if package.is_file() else base.with_suffix(".py")


def public_names(path: Path) -> list[str]:
    """Names in ``__all__``, or, without it, the classes and functions defined there that have no underscore."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    kinds = (ast.ClassDef, ast.FunctionDef)
    return [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]


def summary_of(path: Path) -> str:
    """First line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def slug(module: str) -> str:
    """Name of a module's page."""
    return module.replace(".", "-")


def python_pages(root: Path) -> Pages:
    """One page per public module, for mkdocstrings to fill, and one that lists them."""
    pages: Pages = {}
    rows = []
    for module, title in PUBLIC.items():
        path = source_of(root, module)
        names = public_names(path)
        members = "".join(f"        - {name}\n" for name in names)
        pages[f"reference/python/{slug(module)}.md"] = (
            f"# {title}\n\n`activecover.{module}`\n\n::: activecover.{module}\n    options:\n      members:\n{members}"
        )
        rows.append(f"| [`activecover.{module}`]({slug(module)}.md) | {summary_of(path)} |\n")
    pages["reference/python/index.md"] = (
        "# Python\n\nThe most used names can be imported from `activecover` itself:\n\n"
        f"{_top_names(root)}\nAll public modules:\n\n| module | what it is for |\n|---|---|\n{''.join(rows)}"
    )
    return pages


def _top_names(root: Path) -> str:
    package = root / "src" / "activecover" / "__init__.py"
    rows = "| name | from |\n|---|---|\n"
    for node in ast.parse(package.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_MODULES":
            for module, names in ast.literal_eval(node.value).items():
                links = ", ".join(f"[`{name}`]({slug(module)}.md#activecover.{module}.{name})" for name in names)
                rows += f"| {links} | [`activecover.{module}`]({slug(module)}.md) |\n"
    return rows


def _plain(text: str | None) -> str:
    """Help text without Rich's markup, safe in a cell of a table."""
    text = re.sub(r"\[/?(?:bold|dim|italic|cyan|green|red|yellow|code)[^\]]*\]", "", text or "")
    return _cell(inspect.cleandoc(text))


def _cell(text: str) -> str:
    """Text in a cell: one line, no bars, and no angle brackets outside code."""
    text = " ".join(text.split()).replace("|", "\\|")
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_") for part in parts[::2]]
    return "`".join(parts)


def _default(parameter: Any) -> str:
    value = parameter.default
    if callable(value) or value in (None, False, (), "") or parameter.required:
        return ""
    shown = getattr(value, "value", value)
    return f" Default: `{str(shown).lower() if shown is True else shown}`."


def _options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        is_argument = parameter.param_type_name == "argument"
        names = _metavar(parameter) if is_argument else ", ".join([*parameter.opts, *parameter.secondary_opts])
        help_text = _plain(getattr(parameter, "help", ""))
        required = " **Required.**" if parameter.required else ""
        variable = f" Environment: `{parameter.envvar}`." if isinstance(getattr(parameter, "envvar", None), str) else ""
        yield f"| `{names}` | {help_text}{required}{_default(parameter)}{variable} |\n"


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).upper()


def _usage(path: str, command: Any) -> str:
    pieces = [
        _metavar(parameter) if parameter.required else f"[{_metavar(parameter)}]"
        for parameter in command.params
        if parameter.param_type_name == "argument"
    ]
    return " ".join([path, *pieces, "[OPTIONS]"])


def command_section(path: str, command: Any, level: int = 2) -> str:
    """Heading, usage, help and parameters of one command."""
    text = "\n\n".join(_markdown_of(part) for part in inspect.cleandoc(command.help or "").split("\n\n"))
    rows = "".join(_options(command))
    table = f"\n| parameter | meaning |\n|---|---|\n{rows}" if rows else ""
    return f"{'#' * level} {path}\n\n```text\n{_usage(path, command)}\n```\n\n{text}\n{table}\n"


def _markdown_of(paragraph: str) -> str:
    return _plain(paragraph).replace("\\|", "|")


def command_pages() -> Pages:
    """The command line: one page for the plain commands, one for each group."""
    typer_main = importlib.import_module("typer.main")
    root = typer_main.get_command(importlib.import_module("activecover.cli._app").app)
    plain = {name: one for name, one in root.commands.items() if not getattr(one, "commands", None)}
    groups = {name: one for name, one in root.commands.items() if getattr(one, "commands", None)}
    rows = "".join(
        f"| [`activecover {name}`](#activecover-{name}) | {_first(one)} |\n" for name, one in plain.items()
    ) + "".join(f"| [`activecover {name} …`]({name}.md) | {_first(one)} |\n" for name, one in groups.items())
    head = (
        "# Command line\n\n`activecover COMMAND --help` shows the same text in the terminal. Errors are one line on the "
        "error stream; the exit code is 2 for bad input and 130 after an interruption.\n\n| command | what it does |\n"
        f"|---|---|\n{rows}\n"
    )
    pages = {
        "reference/cli/index.md": head
        + "".join(command_section(f"activecover {name}", one) for name, one in plain.items())
    }
    for name, group in groups.items():
        sections = "".join(command_section(f"activecover {name} {sub}", one) for sub, one in group.commands.items())
        pages[f"reference/cli/{name}.md"] = f"# activecover {name}\n\n{_first(group)}\n\n{sections}"
    return pages


def _first(command: Any) -> str:
    return _plain((command.help or "").strip().partition("\n\n")[0])


def openapi() -> Mapping[str, Any]:
    """The OpenAPI document of a server on an empty folder."""
    # Imported here: only the reference of the HTTP API needs the extra ``web``.
    httpx = importlib.import_module("httpx")
    create = importlib.import_module("activecover.web._app").make_app
    workspace = importlib.import_module("activecover.workspace").Workspace

    async def fetch(app: Any) -> Mapping[str, Any]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            document: Mapping[str, Any] = (await client.get("/api/openapi.json")).raise_for_status().json()
            return document

    with tempfile.TemporaryDirectory() as folder, workspace(folder) as home:
        return asyncio.run(fetch(create(home)))


def http_page(document: Mapping[str, Any]) -> str:
    """The HTTP API, by tag, from its OpenAPI document."""
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tag = (operation.get("tags") or ["other"])[0]
            groups.setdefault(tag, []).append(_operation(method.upper(), path, operation))
    schemas = document.get("components", {}).get("schemas", {})
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    errors = {
        code: _cell(one.get("description", ""))
        for operation in operations
        for code, one in sorted(operation.get("responses", {}).items())
        if not code.startswith("2")
    }
    rows = "".join(f"| {code} | {text} |\n" for code, text in sorted(errors.items()))
    return (
        "# HTTP\n\nWritten from the OpenAPI document, which a running server gives at `/api/openapi.json`. "
        "How to sign in and who may call what: [the page and the HTTP API](../serve.md).\n\n"
        + "".join(f"## {tag.capitalize()}\n\n{''.join(parts)}" for tag, parts in groups.items())
        + f"## Errors\n\nThe body of an error is [ProblemDetails](#problemdetails), with one line that says what to do.\n\n"
        f"| status | meaning |\n|---|---|\n{rows}\n"
        + "## Schemas\n\n"
        + "".join(_schema(name, schema) for name, schema in sorted(schemas.items()))
    )


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    text = operation.get("description") or operation.get("summary") or ""
    rows = "".join(
        f"| `{one['name']}` | {one['in']} | {_type(one.get('schema', {}))} | {_cell(one.get('description', ''))}"
        f"{' **Required.**' if one.get('required') else ''} |\n"
        for one in operation.get("parameters", [])
    )
    table = f"| parameter | in | type | meaning |\n|---|---|---|---|\n{rows}\n" if rows else ""
    body = "".join(
        f"Body (`{kind}`): {_type(content.get('schema', {}))}\n\n"
        for kind, content in operation.get("requestBody", {}).get("content", {}).items()
    )
    answers = "".join(
        f"| {code} | {_cell(one.get('description', ''))} | {_answer(one)} |\n"
        for code, one in operation.get("responses", {}).items()
        if code.startswith("2")
    )
    responses = f"| status | meaning | body |\n|---|---|---|\n{answers}\n" if answers else ""
    errors = ", ".join(code for code in operation.get("responses", {}) if not code.startswith("2"))
    refused = f"[Errors](#errors): {errors}.\n\n" if errors else ""
    return f"### `{method} {path}`\n\n{_paragraphs(text)}\n\n{table}{body}{responses}{refused}"


def _paragraphs(text: str) -> str:
    return "\n\n".join(_cell(part).replace("\\|", "|") for part in text.split("\n\n"))


def _answer(response: Mapping[str, Any]) -> str:
    return ", ".join(_type(content.get("schema", {})) for content in response.get("content", {}).values())


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a few words, with a link if it has a name."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[key]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "anything")


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    required: Sequence[str] = schema.get("required", [])
    rows = "".join(
        f"| `{field}` | {_type(one)} | {_cell(one.get('description', ''))}"
        f"{' **Required.**' if field in required else ''} |\n"
        for field, one in schema.get("properties", {}).items()
    )
    table = f"| field | type | meaning |\n|---|---|---|\n{rows}\n" if rows else f"{_type(schema)}\n\n"
    text = _paragraphs(schema.get("description", ""))
    return f"### {name} {{ #{name.lower()} }}\n\n{text}\n\n{table}"


def all_pages(root: Path) -> Pages:
    """Every page of the reference that is written from the code."""
    return {**python_pages(root), **command_pages(), "reference/http.md": http_page(openapi())}
