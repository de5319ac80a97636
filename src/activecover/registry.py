"""One registry per kind of part, by name, by the paper's code and by version, open to parts of other packages.

A part is registered where it is defined, by decorating it:

    @LEARNERS.register("my-rule", "what it asks for")
    class MyRule(Learner): ...

Such a file is found in two ways: an installed package declares it as an entry point of the registry's group, or the
variable ``ACTIVECOVER_PARTS`` names the file. A log, an archive or a request can never cause code to be loaded: they
contain only names.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from inspect import get_annotations
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from activecover.errors import InputError

#: The user's own files with parts, separated like the paths of ``PATH``.
PARTS = "ACTIVECOVER_PARTS"
T = TypeVar("T")
B = TypeVar("B", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A registered part: its name, and how to build it."""

    name: str
    build: Callable[..., T]
    summary: str
    code: str = ""
    version: int = 1
    negatives: str = ""

    @property
    def versioned(self) -> str:
        """Name and version, as the label log records them."""
        return f"{self.name}@{self.version}"


class Registry(Generic[T]):
    """Parts of one kind, found by name, code or ``name@version``.

    Other packages add parts through an entry point of the registry's group, with the name of the part. Its value is
    an object decorated by :meth:`register`, or an :class:`Entry`.

    Examples
    --------
    >>> animals = Registry("animal", group="activecover.doctest")
    >>> animals.add(Entry("cat", dict, "says miaow", code="C"))
    >>> animals["C"].versioned
    'cat@1'
    >>> animals["cta"]
    Traceback (most recent call last):
    activecover.errors.InputError: unknown animal 'cta': did you mean 'cat'? (known: cat)
    """

    def __init__(self, kind: str, *, group: str) -> None:
        self.kind = kind
        self.group = group
        self._entries: dict[str, Entry[T]] = {}
        self._asked_others = False
        self._trouble: InputError | None = None

    def add(self, entry: Entry[T]) -> None:
        """Register a part; a name or code can be used only once."""
        for known in self._entries.values():
            if entry.name == known.name or (entry.code and entry.code == known.code):
                raise InputError(f"{self.kind} {entry.name!r} is already registered (as {known.versioned})")
        self._entries[entry.name] = entry

    def register(
        self, name: str, summary: str, *, code: str = "", version: int = 1, negatives: str = ""
    ) -> Callable[[B], B]:
        """Register the decorated class, or function that builds the part.

        If the class declares ``name`` and ``version``, like stopping rules and embeddings, they are set here. By
        default, ``negatives`` of a learner is read from its class.

        Examples
        --------
        >>> animals = Registry("animal", group="activecover.doctest")
        >>> @animals.register("cat", "says miaow")
        ... def build(colour="grey"):
        ...     return {"colour": colour}
        >>> animals.build("cat", colour="black")
        {'colour': 'black'}
        """

        def add(build: B) -> B:
            about = getattr(build.func if isinstance(build, partial) else build, "negatives", "")
            learns_from = negatives or (about if isinstance(about, str) else "")
            self.add(Entry(name, cast("Callable[..., T]", build), summary, code, version, learns_from))
            _name(build, name, version)
            return build

        return add

    def __iter__(self) -> Iterator[Entry[T]]:
        self._ask_others()
        return iter(self._entries.values())

    def __getitem__(self, name: str) -> Entry[T]:
        plain, _, version = name.partition("@")
        for entry in self:
            if plain == entry.name or (entry.code and plain.upper() == entry.code):
                if version and version != str(entry.version):
                    raise InputError(f"{self.kind} {name!r} is not here: this is {entry.versioned}")
                return entry
        names = [entry.name for entry in self]
        close = get_close_matches(plain, names, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        # A name with a version was not typed but recorded, where the part was available.
        elsewhere = f"name its file in {PARTS}, or install its package " if version else ""
        raise InputError(f"unknown {self.kind} {name!r}: {hint or elsewhere}(known: {', '.join(names)})")

    def build(self, name: str, **parameters: Any) -> T:
        """Build the part registered under ``name``."""
        entry = self[name]
        try:
            return entry.build(**parameters)
        except TypeError as wrong:
            raise InputError(f"{self.kind} {entry.name!r}: {wrong}") from wrong

    def _ask_others(self) -> None:
        if not self._asked_others:
            self._asked_others = True
            try:
                load_files(os.environ.get(PARTS, ""))
                for point in entry_points(group=self.group):
                    self._take(point)
            except InputError as wrong:
                self._trouble = wrong
        if self._trouble is not None:
            raise self._trouble

    def _take(self, point: EntryPoint) -> None:
        try:
            part = point.load()
        except Exception as wrong:
            raise InputError(f"{self.kind} {point.name!r} of {point.value} cannot be loaded: {wrong}") from wrong
        if isinstance(part, Entry):
            self.add(part)
        elif point.name not in self._entries:
            raise InputError(f"{self.kind} {point.name!r} of {point.value}: nothing is registered under that name")


def load_files(paths: str) -> None:
    """Run files that register parts, once each; paths are separated like those of ``PATH``."""
    for path in filter(None, paths.split(os.pathsep)):
        file = Path(path).expanduser().resolve()
        if file not in _LOADED:
            _LOADED[file] = None
            _LOADED[file] = _trouble_with(file)
        trouble = _LOADED[file]
        if trouble is not None:
            raise InputError(f"{PARTS}: {path} {trouble}")


#: Errors of the files that were run, if any.
_LOADED: dict[Path, str | None] = {}


def _trouble_with(file: Path) -> str | None:
    name = f"activecover_parts_{file.stem}_{zlib.crc32(str(file).encode()):08x}"
    spec = spec_from_file_location(name, file) if file.suffix == ".py" and file.is_file() else None
    if spec is None or spec.loader is None:
        return f"is not a Python file: give the paths of .py files, separated by {os.pathsep!r}"
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as wrong:
        return f"cannot be loaded: {type(wrong).__name__}: {next(iter(str(wrong).splitlines()), 'no reason given')}"
    return None


def _name(build: object, name: str, version: int) -> None:
    """Set the name and version of a class that declares them."""
    if isinstance(build, type):
        declared = {attribute for base in build.__mro__ for attribute in get_annotations(base)}
        for attribute, value in (("name", name), ("version", version)):
            if attribute in declared:
                setattr(build, attribute, value)
