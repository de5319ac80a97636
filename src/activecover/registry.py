"""One registry per kind of part: by name, by the paper's code, by version, open to other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

from activecover.errors import InputError

T = TypeVar("T")
B = TypeVar("B", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A registered part: how it is called, and how it is built."""

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

    Other packages add theirs through an entry point of the registry's group whose value is an
    :class:`Entry`.

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

    def add(self, entry: Entry[T]) -> None:
        """Register a part; a name or code can be taken once only."""
        for known in self._entries.values():
            if entry.name == known.name or (entry.code and entry.code == known.code):
                raise InputError(f"{self.kind} {entry.name!r} is registered already (as {known.versioned})")
        self._entries[entry.name] = entry

    def register(
        self, name: str, summary: str, *, code: str = "", version: int = 1, negatives: str = ""
    ) -> Callable[[B], B]:
        """Register what it decorates: a class, or a function that builds the part.

        What a learner learns from is read from its class where it is not given.

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
            return build

        return add

    def __iter__(self) -> Iterator[Entry[T]]:
        self._ask_other_packages()
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
        raise InputError(f"unknown {self.kind} {name!r}: {hint}(known: {', '.join(names)})")

    def build(self, name: str, **parameters: Any) -> T:
        """Build the part registered under ``name``."""
        entry = self[name]
        try:
            return entry.build(**parameters)
        except TypeError as wrong:
            raise InputError(f"{self.kind} {entry.name!r}: {wrong}") from wrong

    def _ask_other_packages(self) -> None:
        if self._asked_others:
            return
        self._asked_others = True
        for point in entry_points(group=self.group):
            try:
                self.add(point.load())
            except Exception as wrong:
                self._asked_others = False
                raise InputError(f"{self.kind} {point.name!r} of {point.value} cannot be loaded: {wrong}") from wrong
