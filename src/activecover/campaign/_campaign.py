"""A live campaign: ask for items by id, tell what they are, and never ask in vain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from activecover.campaign._foreseeing import Foreseeing
from activecover.campaign._forgetting import UNDO_WINDOW, Forgetting
from activecover.campaign._mixer import check_share
from activecover.campaign._opening import Opening, encode_outside, promise_of, settings_of
from activecover.campaign._reading import Reading
from activecover.errors import ActiveCoverError, InputError, check_count
from activecover.learners import Learner
from activecover.pool import Duplicates, Pool
from activecover.stopping import Rule
from activecover.store import EventLog, open_log


class Campaign(Opening, Foreseeing, Reading, Forgetting):
    """Find the positives of a pool by asking for one label after the other.

    Parameters
    ----------
    pool : Pool
        The items.
    learner : str or Learner, optional
        What decides; where neither this nor the log says so,
        :func:`~activecover.learners.default_learner` does.
    log : path or EventLog, optional
        Where the events go: a JSON Lines file, or memory where not given. A log that has events already
        is taken up where it ended; its settings then hold, and other ones given here are refused.
    seed : int, optional
        Of all randomness. Who knows it can work out which rows are control rows, so a campaign that draws some
        (``certify``) has by default a random one and a secret key; other campaigns have 0.
    explore : int or sequence of int, optional
        Rows to label at random first, or which; 100 by default.
    budget : int, optional
        Most labels to ask for.
    target : int, optional
        Stop once so many positives have been found.
    known : sequence of str
        Ids of items known to be positive.
    outside : array, optional
        Vectors of positives that are not in the pool. They must be given again when a log is taken up.
    lease : float, optional
        Seconds after which an item that was asked for and not answered goes back; never by default.
    think_ahead : bool
        Find the next item for either answer while a person looks at one, so that ``tell`` and ``ask``
        return at once. Items and their order are the same.
    overlap : int, optional
        How many people have to say the same of an item before it counts; 1 by default.
    forgets : bool
        Whether negatives are forgotten once they are final: their vectors and contents are overwritten in the
        pool's files, and the log does not say which positive an item was near to.
    duplicates : Duplicates, optional
        What makes two items one; then a group of them is asked for once and labelled together. By default
        every item is asked for by itself.
    certify : Rule or str, optional
        What to certify before the campaign ends: a valid rule, or ``0.95@0.95`` for recall .95 with confidence
        .95 by a blind control sample. The draws that the rule needs are mixed into what people see.
    insure : float, optional
        Share of the asks that are drawn uniformly for as long as the campaign goes on, so that a group of positives
        far from all others is found in the end.
    patience : float
        Seconds to wait for proposals from the process that runs the learner, where that is another one.
    clock : callable
        Where the time comes from.

    Examples
    --------
    >>> pool = Pool([[0.0], [9.0], [1.0], [8.0]], ids=["a", "b", "c", "d"])
    >>> campaign = Campaign(pool, "explore-commit", explore=0, known=["a"])
    >>> [item.id for item in campaign.ask(2)]
    ['c', 'd']
    >>> campaign.tell(["c", "d"], [True, False])
    >>> campaign.status().positives
    1
    >>> campaign.undo()
    ['d']
    """

    def __init__(
        self,
        pool: Pool,
        learner: str | Learner | None = None,
        *,
        log: EventLog | str | Path | None = None,
        seed: int | None = None,
        explore: int | Sequence[int] | None = None,
        budget: int | None = None,
        target: int | None = None,
        known: Sequence[str] = (),
        outside: Any = None,
        lease: float | None = None,
        think_ahead: bool = False,
        overlap: int | None = None,
        forgets: bool = False,
        duplicates: Duplicates | None = None,
        certify: Rule | str | None = None,
        insure: float | None = None,
        patience: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for name, value, least in (
            ("budget", budget, 1),
            ("target", target, 1),
            ("seed", seed, 0),
            ("overlap", overlap, 1),
        ):
            check_count(name, value, least)
        if lease is not None and not lease >= 1:
            raise InputError(f"lease {lease!r}: give a number of seconds from 1")
        if isinstance(known, str):
            raise InputError(f"known {known!r}: give a list of ids")
        settings = {
            **settings_of(learner, seed, explore),
            "overlap": overlap,
            "forgets": forgets or None,
            "duplicates": None if duplicates is None else duplicates.as_dict(),
            "certify": promise_of(certify),
            "insure": check_share(insure),
        }
        super().__init__(
            pool,
            lease=lease,
            budget=budget,
            target=target,
            outside=None if outside is None else encode_outside(pool, outside),
            think_ahead=think_ahead,
            patience=patience,
            clock=clock,
        )
        self.log = open_log(log)
        try:
            with self._lock, self.log.turn(), _naming(self.log):
                if len(self.log):
                    self._take_up(learner, settings, known)
                else:
                    self._create(learner, settings, known)
            self._erase_left_over()
        except BaseException:
            self._closing.set()
            self.log.close()
            raise

    def close(self, *, window: int | None = UNDO_WINDOW) -> None:
        """Let go of the log, and of the learner.

        A campaign that forgets forgets what was decided before the last ``window`` decisions: with 0 all of it, so that
        nothing can be undone any more, and with None nothing.
        """
        if not self._closing.is_set():
            self._forget_at_the_end(window)
        self._closing.set()
        if self._server is not None:
            self._server.join()
        with self._lock:
            if self._brain is not None:
                self._brain.close()
            self.log.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _naming(log: EventLog) -> Iterator[None]:
    """What is wrong with a log is said with its name."""
    try:
        yield
    except ActiveCoverError as wrong:
        raise type(wrong)(f"{log}: {wrong}") from wrong
