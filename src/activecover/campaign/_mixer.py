"""Where the next ask comes from: the learner, a blind control sample, an audit, or insurance."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.pool import Pool
from activecover.stopping import ConsecutiveNegatives, ControlQuantile, Rule
from activecover.store import Ask, Ledger, events

Source = Literal["learner", "control", "audit", "insurance"]

#: The share of asks that are control rows until the sample is complete. In halves, so that neither people nor the learner
#: wait long for the other part.
CONTROL_SHARE = 0.5
#: The share of asks that are insurance if a rule needs it and no share was given.
INSURED = 0.1


class Mixer:
    """Decides which source each ask comes from, and draws what is not for the learner to choose.

    All its chance is a keyed hash of the seed, or of the campaign's secret key where it has one, and of the ask's
    number or the item's id: anyone who has the log gets the same draws.

    Parameters
    ----------
    pool : Pool
        The items.
    seed : int
        Of all draws.
    rule : Rule, optional
        What the draws are to certify.
    random_share : float
        Share of the asks that are uniform draws, until the campaign ends.
    """

    def __init__(self, pool: Pool, *, seed: int, rule: Rule | None, random_share: float) -> None:
        self.rule = rule
        self.random_share = random_share
        self._pool = pool
        self._seed = seed
        self.control = ControlSample(pool, seed, rule) if isinstance(rule, ControlQuantile) else None
        self._awake_until = 0

    @classmethod
    def of(cls, pool: Pool, created: events.Created, rule: Rule | None) -> Mixer | None:
        """The mixer of a campaign as it was created; None if there is only the learner."""
        share = float(created.insure or 0.0)
        if rule is None and not share:
            return None
        if rule is not None and rule.design == "insurance":
            share = share or INSURED
        # The seed may be guessed, and with it the control rows; a key cannot be.
        return cls(pool, seed=int(created.key, 16) if created.key else created.seed, rule=rule, random_share=share)

    def sources(self, k: int, ledger: Ledger, explore: int) -> list[Source]:
        """Where the next ``k`` asks come from; ``explore`` rows are the learner's own sample."""
        design = "none" if self.rule is None else self.rule.design
        if design == "audit" and (ledger.sources["audit"] or self._rests(ledger, explore)):
            return ["audit"] * k
        control = self.control is not None and bool(self.control.missing(ledger, 1))
        rests = design == "insurance" and self._rests(ledger, explore)
        return [self._source(number, control, rests) for number in range(ledger.next_number, ledger.next_number + k)]

    def draw(self, number: int, ledger: Ledger, taken: Collection[str]) -> str:
        """One of the rows that can be drawn, all with the same chance; there must be one."""
        random = np.random.default_rng([self._seed, number, 1])
        while True:
            for row in random.integers(0, pool_rows(ledger, self._pool), size=64).tolist():
                name = self._pool.id(row)
                if name not in taken and not self._pool.withdrawn[row] and is_drawable(ledger, name):
                    return name

    def _source(self, number: int, control: bool, rests: bool) -> Source:
        if control and self._chance("control", number) < CONTROL_SHARE:
            return "control"
        if rests or self._chance("insurance", number) < self.random_share:
            return "insurance"
        return "learner"

    def _chance(self, what: str, number: int) -> float:
        return _keyed(self._seed, what, str(number)) / 2**64

    def _rests(self, ledger: Ledger, explore: int) -> bool:
        """Whether the learner has found nothing for so long that it is time for other draws."""
        if ledger.next_number < self._awake_until or ledger.sources["explore"] < explore:
            return False
        needed = ConsecutiveNegatives().planned(len(self._pool))
        run = waiting = 0
        for ask in reversed(ledger.asks.values()):
            if ask.state == "positive" and not ask.hidden:
                break
            if ask.source in ("explore", "learner"):
                run += ask.state == "negative"
                waiting += ask.state != "negative"
                if run >= needed:
                    return True
        # Not before so many more of its asks are negative: until then there is no need to look.
        self._awake_until = ledger.next_number + max(1, needed - run - waiting)
        return False


class ControlSample:
    """The pool in the order of a keyed hash of the ids, up to the end that the rule sets.

    Rows that are added later fall into the order as if they had been there from the start. Rows that the
    learner has asked for before their turn belong to the sample too.
    """

    def __init__(self, pool: Pool, seed: int, rule: ControlQuantile) -> None:
        self._pool = pool
        self._seed = seed
        self._planned = rule.planned()
        self._size = rule.sample
        self._order: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._revisions = -1
        self._begin()

    def missing(self, ledger: Ledger, k: int, taken: Collection[str] = ()) -> list[str]:
        """The next rows of the sample to ask for, up to ``k``; empty if it is complete as far as is known."""
        return self._walk(ledger, k, taken)[1]

    def ids(self, ledger: Ledger) -> list[str]:
        """The rows of the sample up to the first that was never asked for."""
        later = self._walk(ledger, 1, ())[0]
        return [*self._passed, *later]

    def _begin(self) -> None:
        #: How much of the order is settled, with how many positives, and which rows of it belong to the sample.
        self._settled, self._hits = 0, 0
        self._passed: list[str] = []

    def _walk(self, ledger: Ledger, k: int, taken: Collection[str]) -> tuple[list[str], list[str]]:
        """What was asked for beyond the settled part, up to the first gap, and the next rows to ask for."""
        rows = pool_rows(ledger, self._pool)
        if len(self._order) != rows:
            self._order = control_order([self._pool.id(row) for row in range(rows)], self._seed)
            self._revisions = -1
        if self._revisions != ledger.revisions:
            self._begin()
            self._revisions = ledger.revisions
        place, counted, hits = self._settled, len(self._passed), self._hits
        later: list[str] = []
        missing: list[str] = []
        while place < rows and len(missing) < k and not self._ended(counted, hits):
            name = self._pool.id(int(self._order[place]))
            place += 1
            ask = ledger.asks.get(name)
            if ledger.is_known(name) or ledger.groups.first(name) != name or (ask is None and name in ledger.withdrawn):
                continue
            counted += 1
            # What is not known to be negative may be positive.
            hits += ask is None or ask.state != "negative"
            if (ask is None or ask.state == "open") and name not in taken:
                missing.append(name)
            elif ask is not None and ask.settled and not later and not missing:
                self._passed.append(name)
                self._settled, self._hits = place, hits
            elif not missing:
                later.append(name)
        return later, missing

    def _ended(self, counted: int, hits: int) -> bool:
        return counted >= self._size if self._size is not None else hits >= self._planned


def control_order(ids: Sequence[str], seed: int) -> npt.NDArray[np.int64]:
    """Places of the ids in the order of their keyed hashes.

    Examples
    --------
    >>> control_order(["a", "b", "c", "d"], seed=0).tolist()
    [1, 0, 2, 3]
    """
    hashes = np.fromiter((_keyed(seed, "control", name) for name in ids), np.uint64, len(ids))
    return np.argsort(hashes, kind="stable")


def pool_rows(ledger: Ledger, pool: Pool) -> int:
    """Rows that the pool had, as far as the log goes."""
    last = ledger.grown or ledger.created
    return len(pool) if last is None else last.rows


def is_drawable(ledger: Ledger, name: str) -> bool:
    """Whether nobody has asked for a row, or only the learner, and it went back unanswered."""
    ask = ledger.asks.get(name)
    if ledger.is_known(name) or ledger.groups.first(name) != name:
        return False
    return ask is None or (ask.state == "open" and not was_drawn(ask))


def was_drawn(ask: Ask) -> bool:
    """Whether chance had a part in asking for a row: then it must not be forgotten that it was."""
    return (ask.first or ask).probability != 1


def check_share(share: object) -> float | None:
    """A share of the asks, above 0 and below 1; None stays None."""
    if share is None:
        return None
    if not isinstance(share, int | float) or not 0 < share < 1:
        raise InputError(f"random_share {share!r}: give a share of the asks above 0 and below 1, such as 0.1")
    return float(share)


def _keyed(seed: int, what: str, text: str) -> int:
    """A number below 2^64 that is as good as random."""
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, key=_key(seed, what), digest_size=8).digest(), "big")


@lru_cache(maxsize=16)
def _key(seed: int, what: str) -> bytes:
    return hashlib.sha256(f"activecover {what} {seed}".encode()).digest()
