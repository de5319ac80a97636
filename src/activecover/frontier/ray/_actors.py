"""The shards' processes: started, called all at once, and replaced when one is lost."""

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

#: How often a call is tried, each time with a new process, before it is given up.
ATTEMPTS = 4


class Shards:
    """One Ray actor per shard.

    An actor that is lost (killed, out of memory, its node gone) is replaced by a new one, which reads
    its files again and hears what has happened to its rows since; then the call is made again. Frontiers
    are not replayed here: a new actor does not know them, and whoever asks says all.

    Parameters
    ----------
    parts : sequence of sequences of Piece
        What each shard reads.
    layout : Layout
        How.
    backend : str
        The exact frontier that shards use.
    options : mapping
        Of the Ray actors: ``num_cpus``, ``memory``, ``resources``, ….
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
        # Placed wherever there is room, and spread, unless the caller asks for something else.
        self._options = {"num_cpus": 0, "scheduling_strategy": "SPREAD", **options, "max_restarts": 0}
        self._lock = threading.RLock()
        self._firsts = np.concatenate([[0], np.cumsum([sum(map(len, part)) for part in parts])[:-1]]).astype(np.int64)
        self._later = [Later() for _ in parts]
        self._stored: tuple[str, npt.NDArray[np.float32]] | None = None
        self._actors = [self._start(shard) for shard in range(len(parts))]
        #: How many actors had to be replaced so far.
        self.replaced = 0

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def rows(self) -> int:
        """How many rows the files have."""
        return sum(len(piece) for part in self._parts for piece in part)

    def split(self, rows: Rows) -> dict[int, npt.NDArray[np.bool_]]:
        """Which shards have which of some rows, as masks."""
        owners = np.searchsorted(self._firsts, rows, side="right") - 1
        return {int(shard): owners == shard for shard in np.unique(owners)}

    def part(self, shard: int, ascending: Rows) -> Rows:
        """Those of some rows that a shard has."""
        bounds = [self._firsts[shard], *self._firsts[shard + 1 : shard + 2]]
        places = np.searchsorted(ascending, bounds).tolist()
        return ascending[slice(*places) if len(places) == 2 else slice(places[0], None)]

    def build(self, metric: str, origin: npt.NDArray[np.float32]) -> None:
        """Store the rows in all shards; a new actor will do the same from here on."""
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
        """Erase rows where they are."""
        with self._lock:
            owned = {shard: rows[mask] for shard, mask in self.split(rows).items()}
            # Noted first: an actor that is lost meanwhile erases them as soon as it has read them again.
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
            f"shard {shard} of {len(self)} was lost {ATTEMPTS} times in a row ({reason}): has its node enough memory?"
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
        """New processes in place of lost ones, with the rows as they are now."""
        for shard in lost:
            # It may still run, out of reach: then it must not go on holding its memory.
            self._ray.kill(self._actors[shard])
            self._actors[shard] = self._start(shard)
            self.replaced += 1
        if self._stored is not None:
            waiting = {shard: self._actors[shard].build.remote(*self._stored, self._later[shard]) for shard in lost}
            # One that is lost again here will be noticed by the call that follows.
            self._gather(waiting, {})

    def _gather(self, waiting: Mapping[int, Any], answers: dict[int, Any]) -> dict[int, str]:
        """Collect answers; which shards are lost, and why. What a shard refuses is raised."""
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
                    "has the cluster room for all shards?"
                ) from None
            except errors.RayError as wrong:
                lost[shard] = str(wrong).strip().partition("\n")[0] or type(wrong).__name__
        return lost


def _plain(shard: int, cause: BaseException) -> Exception:
    """What went wrong in another process, as it would have been said in this one."""
    if isinstance(cause, ActiveCoverError):
        return type(cause)(str(cause))
    return ActiveCoverError(f"shard {shard}: {type(cause).__name__}: {cause}".partition("\n")[0])
