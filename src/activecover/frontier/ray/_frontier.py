"""The frontier of a pool in shards: every shard returns its nearest rows, and the best are merged."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.frontier._base import Frontier, Nearest, Rows, RowsLike, known_keys, new_keys
from activecover.frontier._locked import one_at_a_time
from activecover.frontier.ray._pool import ShardedPool
from activecover.frontier.ray._shard import Answer, Changes
from activecover.pool import Pool, Vectors

_numbers = itertools.count(1)


class RayFrontier(Frontier):
    """An exact frontier over all shards of a pool; a step is one parallel call to every shard.

    Changes are collected here and sent with the next query. Everything a shard's frontier depends on is also known
    here: the positives with their vectors, and the closed rows. A shard that replaces a lost one is sent all of it, and
    answers as the lost one would have.

    Parameters
    ----------
    pool : ShardedPool
        The rows.
    """

    kind = "sharded"

    def __init__(self, pool: Pool) -> None:
        if not isinstance(pool, ShardedPool):
            raise InputError("frontier 'ray' serves a pool in shards: open the files with ShardedPool")
        self._lock = threading.RLock()
        self._pool = pool
        self._number = next(_numbers)
        self._erasures = pool.erasures
        self._positives: dict[int, npt.NDArray[np.float32]] = {}
        self._closed: set[int] = set()
        self._rows = len(pool)
        self._forget_pending()
        #: Shards that need the full state.
        self._uninformed = set(range(len(pool.shards)))
        # Shards may drop their part of a deleted frontier; the next query tells them.
        self._ended = pool.ended_frontiers
        weakref.finalize(self, self._ended.append, self._number)

    @property
    def positives(self) -> int:
        self._drop_erased()
        return len(self._positives)

    @one_at_a_time
    def add(self, keys: RowsLike, vectors: Vectors) -> None:
        new = new_keys(keys, self._positives).tolist()
        self._drop_erased()
        matrix = np.array(vectors, np.float32).reshape(len(new), self._pool.dimensions)
        self._positives.update(zip(new, matrix, strict=True))
        self._added.update(dict.fromkeys(new))

    @one_at_a_time
    def remove(self, keys: RowsLike) -> None:
        self._drop_erased()
        self._drop(known_keys(keys, self._positives).tolist())

    @one_at_a_time
    def retire(self, rows: RowsLike) -> None:
        chosen = self._checked(rows)
        self._closed.update(chosen)
        self._to_close.update(chosen)
        self._to_open.difference_update(chosen)

    @one_at_a_time
    def restore(self, rows: RowsLike) -> None:
        chosen = [row for row in self._checked(rows) if row in self._closed and not self._pool.withdrawn[row]]
        self._closed.difference_update(chosen)
        self._to_open.update(chosen)
        self._to_close.difference_update(chosen)

    @one_at_a_time
    def extend(self) -> None:
        self._rows = len(self._pool)

    @one_at_a_time
    def nearest(self, k: int, without: RowsLike = ()) -> Nearest:
        self._drop_erased()
        if k < 1 or not self._positives:
            return _merge([], k)
        held = np.unique(np.asarray(without, np.int64))
        news = self._news()
        closed = _sorted(self._to_close)
        self._forget_pending()
        uninformed, self._uninformed = self._uninformed, set(range(len(self._pool.shards)))
        answers = self._ask(news, uninformed, k, held)
        # Only now is it certain that every shard has received everything.
        self._uninformed = set()
        self._pool.forget(closed)
        found = _merge(answers, k)
        self._keep(found, answers)
        return found

    def _ask(self, news: Changes, uninformed: set[int], k: int, held: Rows) -> list[Answer]:
        """Call every shard, and a second time those that turn out to be new."""
        shards = self._pool.shards
        ended = tuple(self._ended)
        everything = self._everything() if uninformed else None
        questions = {}
        for shard in range(len(shards)):
            changes = everything if everything is not None and shard in uninformed else news
            questions[shard] = self._question(shard, changes, k, held, ended)
        answers = shards.call("step", questions)
        new = [shard for shard, answer in answers.items() if answer is None]
        if new:
            everything = everything or self._everything()
            again = {shard: self._question(shard, everything, k, held, ended) for shard in new}
            answers |= shards.call("step", again)
        for number in ended:
            with suppress(ValueError):  # another thread's query has told the shards as well
                self._ended.remove(number)
        return [answers[shard] for shard in sorted(answers)]

    def _question(
        self, shard: int, changes: Changes, k: int, held: Rows, ended: tuple[int, ...]
    ) -> tuple[int, Changes, int, Rows, tuple[int, ...]]:
        """The query to one shard, reduced to its own rows."""
        own = self._pool.shards.part
        its = replace(changes, closed=own(shard, changes.closed), opened=own(shard, changes.opened))
        return self._number, its, k, own(shard, held), ended

    def _news(self) -> Changes:
        """Changes since the last query."""
        return Changes(
            whole=False,
            removed=_sorted(self._removed),
            keys=_array(self._added),
            vectors=self._vectors_of(self._added),
            closed=_sorted(self._to_close),
            opened=_sorted(self._to_open),
            rows=self._rows,
        )

    def _everything(self) -> Changes:
        """The full state, for a new shard."""
        return Changes(
            whole=True,
            removed=_array([]),
            keys=_array(self._positives),
            vectors=self._vectors_of(self._positives),
            closed=_sorted(self._closed),
            opened=_array([]),
            rows=self._rows,
        )

    def _vectors_of(self, keys: Iterable[int]) -> npt.NDArray[np.float32]:
        vectors = [self._positives[key] for key in keys]
        return np.array(vectors, np.float32).reshape(len(vectors), self._pool.dimensions)

    def _forget_pending(self) -> None:
        self._added: dict[int, None] = {}
        self._removed: set[int] = set()
        self._to_close: set[int] = set()
        self._to_open: set[int] = set()

    def _keep(self, found: Nearest, answers: list[Answer]) -> None:
        """Keep the vectors of proposed rows: those that turn out positive are needed next."""
        for answer in answers:
            if answer.vectors is not None:
                proposed = np.isin(answer.rows, found.rows)
                self._pool.remember(answer.rows[proposed], answer.vectors[proposed])

    def _drop(self, gone: Iterable[int]) -> None:
        for key in gone:
            del self._positives[key]
            if key in self._added:
                del self._added[key]
            else:
                self._removed.add(key)

    @one_at_a_time
    def _drop_erased(self) -> None:
        """Drop positives erased since the last check."""
        if self._erasures != self._pool.erasures:
            self._erasures = self._pool.erasures
            self._drop([key for key in self._positives if key >= 0 and self._pool.withdrawn[key]])

    def _checked(self, rows: RowsLike) -> list[int]:
        chosen = np.asarray(rows, np.int64)
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < self._rows:
            raise InputError(f"a row lies outside the {self._rows} rows of this frontier: extend it first")
        numbers: list[int] = chosen.tolist()
        return numbers


def _merge(answers: list[Answer], k: int) -> Nearest:
    """Merge the nearest rows: by squared distance, then by row."""
    if not answers:
        return Nearest(_array([]), np.zeros(0), _array([]))
    rows = np.concatenate([answer.rows for answer in answers])
    squares = np.concatenate([answer.squares for answer in answers])
    order = np.lexsort((rows, squares))[:k]
    distances = np.concatenate([answer.distances for answer in answers])
    sources = np.concatenate([answer.sources for answer in answers])
    return Nearest(rows[order], distances[order], sources[order])


def _array(numbers: Iterable[int]) -> Rows:
    return np.fromiter(numbers, np.int64)


def _sorted(numbers: Iterable[int]) -> Rows:
    return np.sort(_array(numbers))
