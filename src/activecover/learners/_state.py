"""What the rules of one search share: labels, and all that is made of them and of the pool, each thing once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.frontier import BitFrontier, ExactFrontier, Frontier, SparseFrontier, choose_frontier
from activecover.graph import NeighbourGraph, local_scale, shared_graph
from activecover.learners._explore import Exploration, FreeRows
from activecover.learners._labels import Labels, Negatives, Proposal, Rows, Scores, ranked
from activecover.learners._products import Values, outside_vectors, projected, summed, vectors_of
from activecover.learners._told import Told
from activecover.learners._topics import Topics, shared_topics
from activecover.pool import Pool, Vectors

#: A frontier that knows a distance for every open row.
Scan = ExactFrontier | SparseFrontier | BitFrontier
_SCANS: dict[str, type[Scan]] = {"dense": ExactFrontier, "sparse": SparseFrontier, "bits": BitFrontier}
T = TypeVar("T")
P = TypeVar("P", bound="Part")
F = TypeVar("F", bound=Frontier)


class Part:
    """Something made of the labels that is brought up to date with each of them, rather than made anew.

    Put it into a state by :meth:`SearchState.part`. Labels that come late are told late: what a part says must not
    depend on the order. While it is told, other parts may not be up to date yet.
    """

    def tell(self, labels: Labels) -> None:
        """Take in labels."""
        raise NotImplementedError

    def untell(self, labels: Labels) -> bool:
        """Take labels out again; False asks for this part to be made anew."""
        return False

    def extend(self) -> bool:
        """Take in the rows by which the pool has grown; False asks for this part to be made anew."""
        return False


class Space(Protocol):
    """The rows of a pool in other coordinates."""

    @property
    def pool(self) -> Pool:
        """The same rows under the same numbers."""

    def encode(self, vectors: Vectors) -> Vectors:
        """Vectors of the original pool as they are here."""

    def follow(self, pool: Pool) -> None:
        """Erase what was erased from the original pool since."""


class SearchState:
    """All that rules score rows by; a learner keeps one from the moment it begins on a pool.

    What is derived is made when it is first asked for, brought up to date once per label, and shared: ten rules
    that look at the nearest positive pay for one frontier. Labels taken back, rows added and rows erased are
    followed too. Nothing here depends on the order in which labels came, only on that in which rows were asked.

    ``negatives`` says what may be learnt from. Every rule may know which rows are settled and how (``labels``), but
    only vectors of rows that are open, positive or permitted negatives are given out: without permission
    ``negatives`` is empty, ``far`` knows no row, and ``vectors`` refuses to read a negative.

    Parameters
    ----------
    pool : Pool
        The rows to choose from.
    seed : int
        Of all randomness.
    outside : array of encoded vectors, optional
        Positives from outside the pool; their keys are -1, -2, ….
    learns_from : {"none", "sample", "all"}
        Which negatives may be learnt from: none, those that exploration drew, or all.
    exploration : Exploration, optional
        The random order of the rows; by default that of the seed, with no sample.

    Attributes
    ----------
    closed : array of bool
        Which rows are settled or erased.
    version : int
        Grows with every change.

    Examples
    --------
    A rule is a function of the state and of open rows; higher scores are asked first:

    >>> from activecover.learners import Labels, SearchState
    >>> from activecover.pool import Pool
    >>> def contrast(state, rows):
    ...     near = state.near.look_up(rows).distances
    ...     far = state.far.look_up(rows).distances
    ...     return far / (near + far)
    >>> state = SearchState(Pool([[0.0], [2.0], [1.2], [-3.0]]))
    >>> state.tell(Labels.of([0, 1], [0, 1], [True, False], sampled=True))
    >>> contrast(state, state.open_rows()).round(2)
    array([0.4 , 0.62])
    """

    def __init__(
        self,
        pool: Pool,
        *,
        seed: int = 0,
        outside: Vectors | None = None,
        learns_from: Negatives = "all",
        exploration: Exploration | None = None,
    ) -> None:
        self.pool = pool
        self.seed = seed
        self.outside: Vectors = pool.take([]) if outside is None else outside
        self.learns_from = learns_from
        self.exploration = Exploration(0, seed).begin(len(pool)) if exploration is None else exploration
        self.closed = pool.withdrawn.copy()
        self.version = 0
        #: Grows when closed rows are opened again.
        self.reopened = 0
        self._open = int((~self.closed).sum())
        self._erasures = pool.erasures
        self._told = Told()
        self._parts: dict[Hashable, Part] = {}
        self._kept: dict[Hashable, tuple[Hashable, object]] = {}

    # Labels.

    def tell(self, labels: Labels) -> None:
        """Take in settled labels."""
        self.check_new(labels)
        labels = labels.in_order()
        rows = labels.rows
        self._told.add(labels)
        self._open -= int((~self.closed[rows]).sum())
        self.closed[rows] = True
        self.version += 1
        for part in self._parts.values():
            part.tell(labels)

    def check_new(self, labels: Labels) -> None:
        """Refuse labels of rows that are settled, or that are not there."""
        rows = labels.rows
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self.closed):
            raise InputError(f"a row lies outside the pool of {len(self.closed)} rows: extend the learner first")
        self._told.check_new(labels)

    def untell(self, rows: npt.ArrayLike) -> Labels:
        """Take labels back, as if they had never been told; what they were."""
        gone = self._told.remove(np.asarray(rows, np.int64).reshape(-1))
        self.closed[gone.rows] = self.pool.withdrawn[gone.rows]
        self._open += int((~self.closed[gone.rows]).sum())
        self.version += 1
        self.reopened += 1
        self._parts = {name: part for name, part in self._parts.items() if part.untell(gone)}
        return gone

    def extend(self) -> None:
        """Take in the rows by which the pool has grown; the random order has to be drawn for them before."""
        added = self.pool.withdrawn[len(self.closed) :]
        self.closed = np.concatenate([self.closed, added])
        self._open += int((~added).sum())
        self.version += 1
        self.reopened += 1
        self._parts = {name: part for name, part in self._parts.items() if part.extend()}

    @property
    def labels(self) -> Labels:
        """All settled labels, in the order in which their rows were asked."""
        return self._told.labels

    def free(self, held: npt.ArrayLike | set[int] | frozenset[int] = ()) -> FreeRows:
        """The open rows that nobody holds."""
        self._close_erased()
        rows = np.asarray(list(held) if isinstance(held, set | frozenset) else held, np.int64)
        if len(rows):
            rows = np.unique(rows)
            rows = rows[~self.closed[rows]]
        return FreeRows(self.closed, rows, self._open - len(rows))

    def open_rows(self) -> Rows:
        """Every open row, ascending."""
        self._close_erased()
        return np.flatnonzero(~self.closed)

    def _close_erased(self) -> None:
        if self._erasures != self.pool.erasures:
            self.closed |= self.pool.withdrawn[: len(self.closed)]
            self._open = int((~self.closed).sum())
            self._erasures = self.pool.erasures

    # What may be learnt from.

    @property
    def marks(self) -> npt.NDArray[np.int8]:
        """One per row: 1 for a positive, -1 for a negative that may be learnt from, else 0. Not to be changed."""
        return self.part("marks", _Marks).values

    @property
    def known(self) -> Rows:
        """The rows with a mark, ascending."""
        return self.kept("known", lambda: np.flatnonzero(self.marks))

    @property
    def positives(self) -> Rows:
        """The rows of known positives, ascending."""
        return self.kept("positives", lambda: np.flatnonzero(self.marks == 1))

    @property
    def negatives(self) -> Rows:
        """The rows of known negatives that may be learnt from, ascending."""
        return self.kept("negatives", lambda: np.flatnonzero(self.marks == -1))

    @property
    def has_positives(self) -> bool:
        """Whether a positive is known, in the pool or from outside."""
        return bool(self.outside.shape[0] or len(self.positives))

    # How far things are.

    @property
    def near(self) -> Scan:
        """How far every open row's nearest positive is, and which that is."""
        return self.part("near", lambda state: NearestTo(state, scan_of(state.pool), _positive, outside=True)).frontier

    @property
    def far(self) -> Scan:
        """How far every open row's nearest negative is, of those that may be learnt from."""
        return self.part("far", lambda state: NearestTo(state, scan_of(state.pool), _negative)).frontier

    def frontier(self, backend: str = "auto", *, of_sample: bool = False) -> Frontier:
        """The open rows by distance to a positive, by a backend of choice; those of the random sample only, if so."""
        which = _sampled_positive if of_sample else _positive
        return self.part(
            ("frontier", backend, of_sample),
            lambda state: NearestTo(state, choose_frontier(state.pool, backend), which, outside=True),
        ).frontier

    # The pool.

    @property
    def graph(self) -> NeighbourGraph:
        """Who is whose neighbour."""
        return shared_graph(self.pool)

    def scale(self, place: int) -> npt.NDArray[np.float64]:
        """How far the neighbour in some place (from 1) of every row is."""
        return self.of_pool(("scale", place), lambda: local_scale(self.pool, place))

    @property
    def topics(self) -> Topics | None:
        """The leading directions of a sparse pool or one of bits; None where there are too many rows, or dense ones."""
        return shared_topics(self.pool)

    @property
    def lots(self) -> npt.NDArray[np.float64]:
        """A number in (0, 1] per row, by chance: those that exploration draws first have the highest."""
        order = self.exploration.order()
        return self.of_pool("lots", lambda: _by_place(order))

    def vectors(self, rows: Rows) -> Values:
        """Some rows as numbers to calculate with: float64, sparse where the pool is, bits as zeros and ones."""
        if np.any(self.closed[rows] & (self.marks[rows] == 0)):
            raise InputError(f"a learner of negatives={self.learns_from!r} read a row that is closed to it")
        return vectors_of(self.pool, rows)

    @property
    def outside_vectors(self) -> Values:
        """The same of the positives from outside."""
        return outside_vectors(self.pool, self.outside)

    @property
    def truth(self) -> npt.NDArray[np.bool_]:
        """Whether each known row is positive, and after them those from outside."""
        return np.concatenate([self.marks[self.known] == 1, np.ones(self.outside.shape[0], bool)])

    def projected(self, rows: Rows, weights: npt.NDArray[np.float64]) -> Scores:
        """The product of some rows with one vector, read where they are stored."""
        return projected(self.pool, rows, weights)

    def summed(self, rows: Rows) -> npt.NDArray[np.float64]:
        """The sum of some rows' vectors."""
        return summed(self.pool, rows)

    def space(self, name: str, make: Callable[[Pool], Space]) -> SearchState:
        """The state of the same search in other coordinates, with the same labels.

        ``make`` is called with the pool when the space is first asked for, and again when the pool has grown. What it
        costs is best kept in ``pool.statistics``, where other learners on the pool find it.
        """
        part = self.part(("space", name), lambda state: _InSpace(state, make(state.pool)))
        part.space.follow(self.pool)
        return part.state

    # Sharing.

    def part(self, name: Hashable, make: Callable[[SearchState], P]) -> P:
        """The part of that name; made and told all labels when it is first asked for."""
        if name not in self._parts:
            part = make(self)
            if len(self._told):
                part.tell(self.labels)
            self._parts[name] = part
        return self._parts[name]  # type: ignore[return-value]

    def kept(self, name: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` gives, kept until a label comes or goes, or rows do."""
        return self.kept_for(name, (self.version, self.pool.erasures), make)

    def of_pool(self, name: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` gives, kept until rows are added or erased."""
        return self.kept_for(name, (len(self.closed), self.pool.erasures), make)

    def kept_for(self, name: Hashable, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` gives, kept under a name for as long as the key is the same."""
        if name not in self._kept or self._kept[name][0] != key:
            self._kept[name] = (key, make())
        return self._kept[name][1]  # type: ignore[return-value]


class NearestTo(Part, Generic[F]):
    """A frontier that is kept up to date: which rows are closed, and which are positives to be near to.

    Parameters
    ----------
    state : SearchState
        Of the search.
    frontier : Frontier
        A new one on the state's pool.
    which : callable
        Of some labels, those whose rows the others are compared with; asked only about labels that may be learnt
        from.
    outside : bool
        Whether positives from outside the pool are among them.
    """

    def __init__(
        self,
        state: SearchState,
        frontier: F,
        which: Callable[[Labels], npt.NDArray[np.bool_]],
        *,
        outside: bool = False,
    ) -> None:
        self._state, self._which = state, which
        self.frontier = frontier
        if outside and state.outside.shape[0]:
            frontier.add(-1 - np.arange(state.outside.shape[0]), state.outside)

    def tell(self, labels: Labels) -> None:
        # Closed first: a negative's vector is not read from here on, unless it may be.
        self.frontier.retire(labels.rows)
        rows = self._chosen(labels)
        if len(rows):
            self.frontier.add(rows, self._state.pool.take(rows))

    def untell(self, labels: Labels) -> bool:
        rows = self._chosen(labels)
        if len(rows):
            self.frontier.remove(rows)
        self.frontier.restore(labels.rows)
        return True

    def extend(self) -> bool:
        self.frontier.extend()
        return True

    def _chosen(self, labels: Labels) -> Rows:
        permitted = labels.take(_permitted(self._state, labels))
        rows = permitted.rows[self._which(permitted)]
        # One that was erased from the pool no longer shows the way.
        return rows[~self._state.pool.withdrawn[rows]]


class _Marks(Part):
    """See :attr:`SearchState.marks`."""

    def __init__(self, state: SearchState) -> None:
        self._state = state
        self._values = np.zeros(len(state.closed), np.int8)
        self._erasures = state.pool.erasures

    @property
    def values(self) -> npt.NDArray[np.int8]:
        if self._erasures != self._state.pool.erasures:
            self._erasures = self._state.pool.erasures
            self._values[self._state.pool.withdrawn[: len(self._values)]] = 0
        return self._values

    def tell(self, labels: Labels) -> None:
        labels = labels.take(_permitted(self._state, labels) & ~self._state.pool.withdrawn[labels.rows])
        self._values[labels.rows] = np.where(labels.positive, 1, -1)

    def untell(self, labels: Labels) -> bool:
        self._values[labels.rows] = 0
        return True

    def extend(self) -> bool:
        added = len(self._state.closed) - len(self._values)
        self._values = np.concatenate([self._values, np.zeros(added, np.int8)])
        return True


class _InSpace(Part):
    """See :meth:`SearchState.space`."""

    def __init__(self, state: SearchState, space: Space) -> None:
        self.space = space
        self.state = SearchState(
            space.pool,
            seed=state.seed,
            outside=space.encode(state.outside),
            learns_from=state.learns_from,
            exploration=state.exploration,
        )

    def tell(self, labels: Labels) -> None:
        self.state.tell(labels)

    def untell(self, labels: Labels) -> bool:
        self.state.untell(labels.rows)
        return True


def near_of_sample(state: SearchState) -> Scan:
    """How far every open row's nearest positive is, of those that exploration drew."""
    return state.part("near of sample", _near_of_sample).frontier


def explained(state: SearchState, rows: Rows) -> Proposal:
    """Rows as a proposal, with the nearest positives where some rule has looked for them."""
    if "near" not in state._parts:
        return ranked(rows)
    found = state.near.look_up(rows)
    return ranked(rows, found.distances, found.sources)


def scan_of(pool: Pool) -> Scan:
    """The frontier that knows a distance for every open row."""
    if pool.kind not in _SCANS:
        raise InputError(f"this learner needs a pool on one machine, and this one is {pool.kind!r}: use explore-commit")
    return _SCANS[pool.kind](pool)


def _near_of_sample(state: SearchState) -> NearestTo[Scan]:
    return NearestTo(state, scan_of(state.pool), _sampled_positive, outside=True)


def _permitted(state: SearchState, labels: Labels) -> npt.NDArray[np.bool_]:
    """Which of some labels may be learnt from, vector and all."""
    if state.learns_from == "all":
        return np.ones(len(labels), bool)
    return labels.positive | labels.sampled if state.learns_from == "sample" else labels.positive


def _positive(labels: Labels) -> npt.NDArray[np.bool_]:
    return labels.positive


def _negative(labels: Labels) -> npt.NDArray[np.bool_]:
    return ~labels.positive


def _sampled_positive(labels: Labels) -> npt.NDArray[np.bool_]:
    return labels.positive & labels.sampled


def _by_place(order: Rows) -> npt.NDArray[np.float64]:
    lots = np.empty(len(order))
    lots[order] = 1.0 - np.arange(len(order)) / len(order)
    return lots
