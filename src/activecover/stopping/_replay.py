"""Replay a finished run against every rule: when each would have stopped, and with what recall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.stopping._catalogue import standard_rules
from activecover.stopping._designs import campaign_for
from activecover.stopping._record import YES, Record
from activecover.stopping._rule import Rule, check_levels
from activecover.stopping._tails import first_true
from activecover.store import Ledger, open_log
from activecover.trace import Trace, read_traces


@dataclass(frozen=True, slots=True)
class Stop:
    """Where one rule would have ended a run.

    Attributes
    ----------
    rule, valid, anytime
        Name of the rule, and what it promises.
    labels : int or None
        Labels spent by then, the rule's own draws included; None if it would not have stopped.
    recall : float or None
        Recall at that time, judged by everything known now.
    recall_lower : float or None
        The rule's bound on recall at that time.
    price : int or None
        Labels beyond those with which the ranking alone reached the target.
    met : bool or None
        Whether the target was reached.
    """

    rule: str
    valid: bool
    anytime: bool
    labels: int | None
    recall: float | None
    recall_lower: float | None
    price: int | None
    met: bool | None


@dataclass(frozen=True, slots=True)
class Replay:
    """One run, replayed against several rules.

    Attributes
    ----------
    target, confidence : float
        Target and confidence of all rules.
    rows, positives : int
        Rows and positives of the pool; for a live log, the positives found.
    ideal : int or None
        Labels with which the ranking alone reached the target.
    stops : list of Stop
        One per rule.
    found : array of int
        Positives found by the ranking alone, after each number of labels.
    """

    target: float
    confidence: float
    rows: int
    positives: int
    ideal: int | None
    stops: list[Stop]
    found: npt.NDArray[np.int64]

    def as_dict(self) -> dict[str, Any]:
        """The replay as plain data, for JSON; the curve is left out."""
        return {
            "target": self.target, "confidence": self.confidence, "rows": self.rows, "positives": self.positives,
            "ideal": self.ideal, "stops": [asdict(stop) for stop in self.stops],
        }  # fmt: skip


def replay(
    run: Trace | Record,
    *,
    target: float = 0.95,
    confidence: float = 0.95,
    rules: Sequence[Rule] | None = None,
    names: Sequence[str] | None = None,
    seed: int = 0,
    share: float = 0.1,
) -> Replay:
    """Replay a finished run against rules.

    A trace is treated as a ranking: its order is kept, rows that it never asked for follow in random order, and
    each rule adds the draws that it needs (control, audit, insurance), with all labels known in
    the end. A record of a live campaign is used as it is: a rule that needs draws which the campaign
    did not make does not stop, and recall is relative to the positives found in the end.

    Parameters
    ----------
    run : Trace or Record
        A finished run.
    target, confidence : float
        For the standard rules, if no rules are given, and for judging whether the target was reached.
    rules : sequence of Rule, optional
        By default one of each registered rule.
    names : sequence of str, optional
        Only the rules with these names.
    seed : int
        Seed of the rules' own draws.
    share : float
        Share of insurance among the asks.

    Examples
    --------
    >>> rows = np.arange(1000)
    >>> trace = Trace(rows, rows < 50, rows, rows < 0, pool_rows=1000, positives=50)
    >>> stops = {stop.rule: stop for stop in replay(trace, target=0.9).stops}
    >>> stops["consecutive-negatives"].labels, stops["confidence-sequence"].met
    (100, True)
    """
    check_levels(target, confidence)
    rules = standard_rules(target, confidence) if rules is None else rules
    rules = [rule for rule in rules if names is None or rule.name in names]
    if isinstance(run, Record):
        ranking = run.outcome == YES
        positives, rows, found = int(run.found_members[-1]), run.members, run.found_members
        records = [run] * len(rules)
    else:
        ranking = _ranking(run, seed)
        positives, rows = int(ranking.sum()), run.pool_rows
        found = np.concatenate([[0], np.cumsum(ranking)])
        explored = int(np.cumprod(run.explored).sum())
        records = [
            campaign_for(rule, ranking, np.random.default_rng([seed, place]), explored=explored, share=share)
            for place, rule in enumerate(rules)
        ]
    ideal = first_true(found >= target * positives - 1e-9)
    stops = [_stop(rule, record, positives, ideal, target) for rule, record in zip(rules, records, strict=True)]
    return Replay(target, confidence, rows, positives, ideal, stops, found)


def load_runs(
    path: str | Path, *, rows: int | None = None, positives: int | None = None
) -> list[tuple[str, Trace | Record]]:
    """Load the runs of a file, with their names: traces of a simulation, or the label log of one live campaign."""
    path = Path(path)
    if path.suffix.lower() == ".jsonl" and _is_log(path):
        with open_log(path) as log:
            return [(path.name, Record.from_ledger(Ledger(log.read()), rows=rows))]
    traces = read_traces(path, rows=rows, positives=positives)
    return [(f"{trace.learner}, run {trace.run}", trace) for trace in traces]


def summarise(replays: Sequence[Replay]) -> list[dict[str, Any]]:
    """Summarise several replays, rule by rule."""
    return [_summary([result.stops[place] for result in replays]) for place in range(len(replays[0].stops))]


def _summary(stops: Sequence[Stop]) -> dict[str, Any]:
    labels = [stop.labels for stop in stops if stop.labels is not None]
    recalls = [stop.recall for stop in stops if stop.recall is not None]
    prices = [stop.price for stop in stops if stop.price is not None]
    return {
        "rule": stops[0].rule,
        "valid": stops[0].valid,
        "runs": len(stops),
        "stopped": len(labels),
        "labels": int(np.median(labels)) if labels else None,
        "recall": float(np.mean(recalls)) if recalls else None,
        "missed": sum(stop.met is False for stop in stops),
        "price": int(np.median(prices)) if prices else None,
    }


def _is_log(path: Path) -> bool:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    with path.open("rb") as file:
        return file.readline(200).startswith(b'{"seq":')


def _ranking(trace: Trace, seed: int) -> npt.NDArray[np.bool_]:
    """The truth of all rows in the order of the run, followed by the rows not asked in random order."""
    missing = 0 if trace.positives is None else max(0, trace.positives - trace.found)
    rest = np.zeros(trace.pool_rows - len(trace), bool)
    rest[:missing] = True
    return np.concatenate([trace.positive.astype(bool), np.random.default_rng([seed]).permutation(rest)])


def _stop(rule: Rule, record: Record, positives: int, ideal: int | None, target: float) -> Stop:
    course = rule.follow(record)
    time = first_true(rule.stops(record, course))
    if time is None:
        return Stop(rule.name, rule.valid, rule.anytime, None, None, None, None, None)
    recall = 1.0 if not positives else int(record.found_members[time]) / positives
    return Stop(
        rule=rule.name,
        valid=rule.valid,
        anytime=rule.anytime,
        labels=time,
        recall=recall,
        recall_lower=float(rule.recall_lower(record, course)[time]),
        price=None if ideal is None else time - ideal,
        met=recall >= target - 1e-9,
    )
