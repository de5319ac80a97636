"""The labels of a search, in arrays that grow in place."""

from __future__ import annotations

import numpy as np

from activecover.errors import InputError
from activecover.learners._labels import Flags, Labels, Rows

_BEFORE_ALL = int(np.iinfo(np.int64).min)


class Told:
    """Settled labels; the last ones are dropped as cheaply as they were added."""

    def __init__(self) -> None:
        self._kept = _with_room(Labels.of([], [], [], []), 64)
        self._count = 0
        self._places: dict[int, int] = {}
        self._labels: Labels | None = None
        #: Whether they were added in the order in which their rows were asked.
        self._in_order = True

    def __len__(self) -> int:
        return self._count

    @property
    def labels(self) -> Labels:
        """All labels, in the order in which their rows were asked."""
        if self._labels is None:
            every = self._kept.take(np.arange(self._count))
            self._labels = every if self._in_order else every.in_order()
        return self._labels

    @property
    def last(self) -> int:
        """The highest number of an ask that has a label; below every number where there is no label."""
        return int(self._kept.numbers[: self._count].max(initial=_BEFORE_ALL))

    def check_new(self, labels: Labels) -> None:
        """Refuse rows that have a label, and rows given twice."""
        again = [row for row in labels.rows.tolist() if row in self._places]
        if again or (len(labels) > 1 and len(np.unique(labels.rows)) != len(labels)):
            raise InputError(f"row {again[0] if again else labels.rows[0]} is settled already: untell it first")

    def add(self, labels: Labels) -> None:
        """Keep new labels, which come in the order in which their rows were asked."""
        if not len(labels):
            return
        if self._count and (labels.numbers[0], labels.rows[0]) < (
            self._kept.numbers[self._count - 1],
            self._kept.rows[self._count - 1],
        ):
            self._in_order = False
        first, self._count = self._count, self._count + len(labels)
        if self._count > len(self._kept):
            self._kept = _with_room(self._kept, 2 * self._count)
        for kept, new in zip(_columns(self._kept), _columns(labels), strict=True):
            kept[first : self._count] = new
        self._places.update(zip(labels.rows.tolist(), range(first, self._count), strict=True))
        self._labels = None

    def remove(self, rows: Rows) -> Labels:
        """Drop the labels of some rows; what they were, in the order in which their rows were asked."""
        unknown = [row for row in rows.tolist() if row not in self._places]
        if unknown:
            raise InputError(f"row {unknown[0]} is not settled: there is nothing to take back")
        places = np.unique([self._places[row] for row in rows.tolist()]).astype(np.int64)
        gone = self._kept.take(places)
        left = self._count - len(places)
        if len(places) and places[0] < left:
            kept = np.delete(np.arange(self._count), places)
            for column in _columns(self._kept):
                column[:left] = column[kept]
            self._places = dict(zip(self._kept.rows[:left].tolist(), range(left), strict=True))
        else:
            for row in gone.rows.tolist():
                del self._places[row]
        self._count, self._labels = left, None
        return gone.in_order()


def _columns(labels: Labels) -> tuple[Rows, Rows, Flags, Flags]:
    return labels.numbers, labels.rows, labels.positive, labels.sampled


def _with_room(labels: Labels, size: int) -> Labels:
    """The same labels with room for more behind them."""
    more = np.zeros(size - len(labels), np.int64)
    numbers, rows, positive, sampled = (
        np.concatenate([column, more.astype(column.dtype)]) for column in _columns(labels)
    )
    return Labels(numbers, rows, positive, sampled)
