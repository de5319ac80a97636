"""Shared by the rules that rely on an audit: when it began, and what was known then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from activecover.stopping._record import AUDIT, CONTROL, NO, Ints, Record

UNIFORM = "the audit draws uniformly, without replacement, from all rows that are left when it begins"
FROZEN = "the learner rests during the audit, and the audit is planned before its first label"


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit: a run of uniform draws, uninterrupted by choices of the learner.

    Attributes
    ----------
    places : array of int
        Positions of its draws in the record.
    rows : int
        Rows left when it began.
    found, possible : int
        Positives found by then, without and with the unsettled rows.
    seen : array of int
        Positives drawn so far, unsettled rows included, after each draw.
    sound : bool
        Whether the record confirms the draws: uniform, and from the whole pool.
    """

    places: Ints
    rows: int
    found: int
    possible: int
    seen: Ints
    sound: bool


def audits_of(record: Record) -> list[Audit]:
    """The audits of a record, in order."""
    drawn = np.flatnonzero(record.source == AUDIT)
    if not len(drawn):
        return []
    between = np.cumsum((record.source != AUDIT) & (record.source != CONTROL))[drawn]
    starts = np.flatnonzero(np.diff(between, prepend=-1))
    return [_audit(record, places) for places in np.split(drawn, starts[1:])]


def audited(record: Record) -> str:
    """Describe what the audits have shown; empty if there was none."""
    drawn = [
        f"{int(audit.seen[-1]):,} positives in {len(audit.places):,} uniform draws from the {audit.rows:,} rows left"
        for audit in audits_of(record)
    ]
    return "the audit showed " + ", then ".join(drawn) if drawn else ""


def _audit(record: Record, places: Ints) -> Audit:
    chosen = np.zeros(len(record), bool)
    chosen[places] = True
    start = int(places[0])
    return Audit(
        places=places,
        rows=int(record.open_rows[start]),
        found=int(record.found[start]),
        possible=int(record.possible[start]),
        seen=np.cumsum(record.outcome[places] != NO),
        # A control row drawn during the audit would leave fewer rows than the audit assumes.
        sound=record.uniform(chosen)
        and bool(record.current[places].all())
        and bool(np.all(record.open_rows[places] == record.open_rows[start] - np.arange(len(places)))),
    )
