"""Interleave a ranking with the draws that a rule needs: control, audit or insurance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from activecover.stopping._consecutive import ConsecutiveNegatives
from activecover.stopping._qbcb import ControlQuantile
from activecover.stopping._record import (
    AUDIT,
    CONTROL,
    EXPLORE,
    INSURANCE,
    LEARNER,
    Bools,
    Floats,
    Ints,
    Record,
)
from activecover.stopping._rule import Rule
from activecover.stopping._tails import first_true

Random = np.random.Generator


def campaign_for(
    rule: Rule,
    positive: npt.ArrayLike,
    random: Random,
    *,
    explored: int = 0,
    switch: int | None = None,
    share: float = 0.1,
    distance: npt.ArrayLike | None = None,
) -> Record:
    """Turn a ranking into the campaign that a rule would have run, down to the last row.

    The order of the ranking does not depend on the labels of the rows that the rule draws.

    Parameters
    ----------
    rule : Rule
        Determines which draws are added to the ranking.
    positive : array of bool
        The truth of all rows, in the order of the ranking.
    random : Generator
        Generates all draws.
    explored : int
        How many rows at the head of the ranking were drawn uniformly.
    switch : int, optional
        How many rows of the ranking are asked before the learner rests, for an audit or for uniform draws only.
        By default it rests after a run of negatives as long as 1 % of the pool, but at least 50.
    share : float
        Share of insurance among the asks until then.
    distance : array, optional
        Distance of each row to the nearest positive when it was proposed.

    Examples
    --------
    >>> from activecover.stopping import ConfidenceSequence
    >>> ranking = np.arange(2000) < 100
    >>> record = campaign_for(ConfidenceSequence(0.9), ranking, np.random.default_rng(0))
    >>> len(record), ConfidenceSequence(0.9).stop_time(record)
    (2000, 666)
    """
    truth = np.asarray(positive, bool)
    far = np.full(len(truth), np.nan) if distance is None else np.asarray(distance, np.float64)
    if switch is None:
        switch = default_switch(truth)
    switch = max(switch, explored)
    if rule.design == "control":
        planned = rule if isinstance(rule, ControlQuantile) else ControlQuantile(rule.target, rule.confidence)
        return _with_control(truth, planned, random, explored, far)
    if rule.design == "audit":
        return _with_audit(truth, switch, random, explored, far)
    if rule.design == "insurance":
        return _with_insurance(truth, switch, share, random, explored, far)
    return _record(np.arange(len(truth)), _plain(len(truth), explored), truth, far)


def default_switch(positive: Bools) -> int:
    """How many rows are asked before the learner rests: up to the end of the first long run of negatives."""
    plain = Record.of(positive, rows=len(positive))
    time = ConsecutiveNegatives().stop_time(plain)
    return len(positive) if time is None else time


def _with_control(truth: Bools, rule: ControlQuantile, random: Random, explored: int, far: Floats) -> Record:
    drawn = random.permutation(len(truth))
    if rule.sample is not None:
        end = min(rule.sample, len(truth))
    else:
        last = first_true(np.cumsum(truth[drawn]) >= rule.planned())
        end = len(truth) if last is None else last + 1
    chosen = np.zeros(len(truth), bool)
    chosen[drawn[:end]] = True
    others = np.flatnonzero(~chosen)
    order = np.concatenate([drawn[:end], others])
    source = np.concatenate([np.full(end, CONTROL), _plain(len(truth), explored)[others]])
    # The review reaches a control row once it has asked for all other rows that are ranked before it.
    passed = end + np.cumsum(~chosen)
    reached = np.concatenate([passed[drawn[:end]], end + np.arange(1, len(others) + 1)])
    return _record(order, source, truth, far, reached)


def _with_audit(truth: Bools, switch: int, random: Random, explored: int, far: Floats) -> Record:
    rest = random.permutation(np.arange(switch, len(truth)))
    order = np.concatenate([np.arange(switch), rest])
    source = _plain(len(truth), explored)
    source[switch:] = AUDIT
    return _record(order, source, truth, far)


def _with_insurance(truth: Bools, switch: int, share: float, random: Random, explored: int, far: Floats) -> Record:
    count = len(truth)
    waiting = random.permutation(count).tolist()
    coins = (random.random(count) < share).tolist()
    asked = bytearray(count)
    order, source = list(range(explored)), [EXPLORE] * explored
    asked[:explored] = b"\1" * explored
    ranked, drawn = explored, 0
    while len(order) < count:
        while ranked < switch and asked[ranked]:
            ranked += 1
        if ranked < switch and not coins[len(order)]:
            row, origin = ranked, LEARNER
        else:
            while asked[waiting[drawn]]:
                drawn += 1
            row, origin = waiting[drawn], INSURANCE
        asked[row] = 1
        order.append(row)
        source.append(origin)
    return _record(np.array(order, np.int64), np.array(source), truth, far)


def _record(
    order: Ints, source: npt.NDArray[np.integer], truth: Bools, far: Floats, reached: Ints | None = None
) -> Record:
    return Record.of(
        truth[order],
        rows=len(truth),
        source=source,
        reached=reached,
        distance=far[order],
        positives=int(truth.sum()),
    )


def _plain(rows: int, explored: int) -> npt.NDArray[np.int8]:
    source = np.full(rows, LEARNER, np.int8)
    source[:explored] = EXPLORE
    return source
