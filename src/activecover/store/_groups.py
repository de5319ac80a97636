"""Groups of duplicates: which item stands for which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class Groups:
    """Duplicates: one item of each group, its first, is asked for and stands for the others.

    Examples
    --------
    >>> groups = Groups()
    >>> groups.join("a", ["b", "c"])
    >>> groups.first("c"), groups.members("a"), len(groups)
    ('a', ('a', 'b', 'c'), 2)
    >>> groups.leave("a")
    'b'
    >>> groups.first("c"), groups.members("a")
    ('b', ('a',))
    """

    def __init__(self) -> None:
        self._others: dict[str, list[str]] = {}
        self._first: dict[str, str] = {}
        #: How often the groups changed, so that anything that rests on them can be renewed.
        self.version = 0

    def __len__(self) -> int:
        """How many items another one stands for."""
        return len(self._first)

    def __iter__(self) -> Iterator[str]:
        """The items that another one stands for."""
        return iter(self._first)

    def first(self, name: str) -> str:
        """The item that stands for an item; itself if it is in no group."""
        return self._first.get(name, name)

    def others(self, first: str) -> Sequence[str]:
        """The items that an item stands for, without itself."""
        return self._others.get(first, ())

    def members(self, first: str) -> tuple[str, ...]:
        """An item and all that it stands for."""
        return (first, *self.others(first))

    def sizes(self) -> dict[str, int]:
        """How many members each group has, by the item that stands for it."""
        return {first: 1 + len(others) for first, others in self._others.items()}

    def join(self, first: str, others: Sequence[str]) -> None:
        """Put items into the group that another one stands for."""
        self._others.setdefault(first, []).extend(others)
        self._first.update(dict.fromkeys(others, first))
        self.version += 1

    def leave(self, name: str) -> str | None:
        """Take an item out of its group; the item that stands for the others from now on, if it was this one."""
        self.version += 1
        first = self._first.pop(name, None)
        if first is not None:
            self._others[first].remove(name)
            if not self._others[first]:
                del self._others[first]
            return None
        others = self._others.pop(name, [])
        if not others:
            return None
        heir = others[0]
        del self._first[heir]
        if others[1:]:
            self.join(heir, others[1:])
        return heir
