"""The processes of the shards: started, called in parallel, and replaced when one is lost."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import ActiveCoverError
from activecover.frontier._base import Rows
from activecover.frontier.ray._connect import Actor, import_ray
from activecover.frontier.ray._files import Layout, Piece
from activecover.frontier.ray._shard import Later, Shard

#: Attempts per call, each with a new process, before giving up.
ATTEMPTS = 4


class Shards:
    """One Ray actor per shard.

    An actor that is lost (killed, out of memory, or its node gone) is replaced by a new one, which reads its files
    again and is told about later changes to its rows; then the call is repeated. Frontiers are not replayed here: a new
    actor does not know them, and the caller sends their full state.

    Parameters
    ----------
    parts : sequence of sequences of Piece
        What each shard reads.
    layout : Layout
        How to read it.
    backend : str
        The exact frontier that shards use.
    options : mapping
        Options of the Ray actors: ``num_cpus``, ``memory``, ``resources``, ….
    patience : float
        Seconds to wait for an answer.
    """

    def __init__(
        self,
        parts: Sequence[Sequence[Piece]],
        layout: Layout,
        *,
        backend: str,
        options: Mapping[str, Any],
        patience: float,
    ) -> None:
        self._ray = import_ray()
        self._parts, self._layout, self._backend, self._patience = parts, layout, backend, patience
        # Spread over the nodes wherever there is room, unless the caller asks otherwise.
        self._options = {"num_cpus": 0, "scheduling_strategy": "SPREAD", **options, "max_restarts": 0}
        self._lock = threading.RLock()
        self._firsts = np.concatenate([[0], np.cumsum([sum(map(len, part)) for part in parts])[:-1]]).astype(np.int64)
        self._later = [Later() for _ in parts]
        self._stored: tuple[str, npt.NDArray[np.float32]] | None = None
        self._actors = [self._start(shard) for shard in range(len(parts))]
        #: Number of actors replaced so far.
        self.replaced = 0

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def rows(self) -> int:
        """Number of rows in the files."""
        return sum(len(piece) for part in self._parts for piece in part)

    def split(self, rows: Rows) -> dict[int, npt.NDArray[np.bool_]]:
        """The shards of the given rows, each with a mask of its rows."""
        owners = np.searchsorted(self._firsts, rows, side="right") - 1
        return {int(shard): owners == shard for shard in np.unique(owners)}

    def part(self, shard: int, ascending: Rows) -> Rows:
        """The given rows that belong to a shard."""
        bounds = [self._firsts[shard], *self._firsts[shard + 1 : shard + 2]]
        places = np.searchsorted(ascending, bounds).tolist()
        return ascending[slice(*places) if len(places) == 2 else slice(places[0], None)]

    def build(self, metric: str, origin: npt.NDArray[np.float32]) -> None:
        """Store the rows in all shards; replacement actors will do the same."""
        self._stored = (metric, origin)
        self.call("build", {shard: (metric, origin, Later()) for shard in range(len(self))})

    def extend(self, encoded: npt.NDArray[np.float32]) -> None:
        """Add rows to the last shard."""
        last = len(self) - 1
        with self._lock:
            self.call("extend", {last: (encoded,)})
            old = self._later[last]
            self._later[last] = Later((*old.added, encoded), old.withdrawn)

    def withdraw(self, rows: Rows) -> None:
        """Erase rows in their shards."""
        with self._lock:
            owned = {shard: rows[mask] for shard, mask in self.split(rows).items()}
            # Recorded first: an actor that replaces a lost one erases them as soon as it has read them.
            for shard, part in owned.items():
                old = self._later[shard]
                self._later[shard] = Later(old.added, (*old.withdrawn, *part.tolist()))
            self.call("withdraw", {shard: (part,) for shard, part in owned.items()})

    def call(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a method of some shards at once, and wait for all answers."""
        answers: dict[int, Any] = {}
        left = list(arguments)
        with self._lock:
            for _ in range(ATTEMPTS):
                waiting = {shard: getattr(self._actors[shard], method).remote(*arguments[shard]) for shard in left}
                lost = self._gather(waiting, answers)
                if not lost:
                    return answers
                self._replace(list(lost))
                left = list(lost)
        shard, reason = next(iter(lost.items()))
        raise ActiveCoverError(
            f"shard {shard} of {len(self)} was lost {ATTEMPTS} times in a row ({reason}): "
            "does its node have enough memory?"
        )

    def close(self) -> None:
        """End all processes."""
        for actor in self._actors:
            self._ray.kill(actor)

    def _start(self, shard: int) -> Actor:
        first = int(self._firsts[shard])
        actor = self._ray.remote(Shard).options(**self._options)
        started: Actor = actor.remote(self._parts[shard], self._layout, first, self._backend)
        return started

    def _replace(self, lost: Sequence[int]) -> None:
        """Replace lost processes by new ones with the current rows."""
        for shard in lost:
            # It may still be running out of reach, and must not keep its memory.
            self._ray.kill(self._actors[shard])
            self._actors[shard] = self._start(shard)
            self.replaced += 1
        if self._stored is not None:
            waiting = {shard: self._actors[shard].build.remote(*self._stored, self._later[shard]) for shard in lost}
            # If it is lost again, the next call notices.
            self._gather(waiting, {})

    def _gather(self, waiting: Mapping[int, Any], answers: dict[int, Any]) -> dict[int, str]:
        """Collect answers, and return the lost shards with the reason. An error raised by a shard is raised here."""
        errors = self._ray.exceptions
        lost: dict[int, str] = {}
        for shard, reference in waiting.items():
            try:
                answers[shard] = self._ray.get(reference, timeout=self._patience)
            except errors.RayTaskError as wrong:
                raise _plain(shard, wrong.cause) from wrong.cause
            except errors.GetTimeoutError:
                raise ActiveCoverError(
                    f"shard {shard} of {len(self)} gave no answer within {self._patience:g} s: "
                    "does the cluster have room for all shards?"
                ) from None
            except errors.RayError as wrong:
                lost[shard] = str(wrong).strip().partition("\n")[0] or type(wrong).__name__
        return lost


def _plain(shard: int, cause: BaseException) -> Exception:
    """An error of another process, as it would have been raised in this one."""
    if isinstance(cause, ActiveCoverError):
        return type(cause)(str(cause))
    return ActiveCoverError(f"shard {shard}: {type(cause).__name__}: {cause}".partition("\n")[0])
