"""The statement that an auditor can keep, made from the log alone and checked against it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from activecover.campaign._mixer import Mixer, pool_rows
from activecover.errors import InputError, StoreError
from activecover.pool import Pool
from activecover.stopping import (
    SOURCES,
    Assessment,
    Budget,
    Record,
    Rule,
    make_rule,
    missed_component,
    rule_from,
    rule_settings,
)
from activecover.store import Ledger, Line, head_of

KIND = "activecover certificate of recall"
FORMAT = 1
#: The rule that says most if nothing was promised beforehand.
_BY_DEFAULT = "weighted-betting"
_AFTERWARDS = "rule and target were chosen without looking at the labels (they were not set when the campaign began)"
#: Fields that the maker of the certificate writes, and that the log does not hold.
_NOT_IN_THE_LOG = ("campaign",)

#: The signature covers everything else; it is checked where keys are known.
_SIGNATURE = "signature"


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was sampled, by which rule, the bound, and the head of the log that it rests on."""

    content: dict[str, Any]

    @property
    def certified(self) -> bool:
        """Whether the target was reached with the confidence that was asked for, by a valid rule."""
        return bool(self.content["certified"])

    def as_dict(self) -> dict[str, Any]:
        """For JSON: all that :func:`check_certificate` needs."""
        return dict(self.content)

    def sentences(self) -> list[str]:
        """The statement, in words."""
        return list(self.content["statement"])

    def text(self) -> str:
        """The statement as a page of text."""
        name = self.content["campaign"]
        lines = [KIND if name is None else f"{KIND}: {name}", *self.sentences()]
        return "\n".join(lines) + "\n"


def record_of(ledger: Ledger, pool: Pool, mixer: Mixer | None) -> Record:
    """What the rules look at, with the control sample as the mixer has drawn it."""
    control = None if mixer is None or mixer.control is None else set(mixer.control.ids(ledger))
    return Record.from_ledger(ledger, rows=pool_rows(ledger, pool), control=control)


def certify(
    events: Sequence[Line],
    pool: Pool,
    *,
    rule: Rule | None = None,
    budget: int | None = None,
    name: str | None = None,
) -> Certificate:
    """What the events of a log prove of recall.

    Parameters
    ----------
    events : sequence of Line
        All lines of the log.
    pool : Pool
        The items; only their ids are looked at.
    rule : Rule, optional
        By default the one that the campaign was begun with.
    budget : int, optional
        Most labels: whichever is first ends the campaign.
    name : str, optional
        Of the campaign.
    """
    ledger = Ledger(events)
    created = ledger.created
    if created is None:
        raise StoreError("the label log has no beginning; restore it from a copy")
    promised = None if created.certify is None else rule_from(created.certify)
    chosen = rule or promised or make_rule(_BY_DEFAULT)
    planned = promised is not None and rule_settings(promised) == rule_settings(chosen)
    record = record_of(ledger, pool, Mixer.of(pool, created, promised))
    said = (chosen if budget is None else chosen | Budget(budget)).assess(record)
    certified = said.valid and said.recall_lower >= chosen.target - 1e-12
    content: dict[str, Any] = {
        "kind": KIND,
        "format": FORMAT,
        "campaign": name,
        "certified": certified,
        "rule": rule_settings(chosen),
        "planned": planned,
        "budget": budget,
        "assessment": _plain({**said.as_dict(), "assumptions": _assumed(said, planned)}),
        "sampled": _sampled(record),
        "insurance": missed_component(record, chosen.confidence).sentence(),
        "pool": {"rows": pool_rows(ledger, pool), **(ledger.grown or created).pool},
        "learner": ledger.learner,
        "seed": created.seed,
        "known": len(ledger.known),
        "until": _moment(events[-1].get("at")),
        "events": len(events),
        "head": head_of(events),
    }
    return Certificate({**content, "statement": _statement(content)})


def check_certificate(document: object, events: Sequence[Line], pool: Pool) -> list[str]:
    """What is wrong with a certificate, as far as a log says; nothing if the log bears it out."""
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise InputError(f"this is no {KIND}")
    if document.get("format") != FORMAT:
        raise InputError(f"the certificate has format {document.get('format')!r}, this version reads {FORMAT}")
    count = document.get("events")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        return [f"events: {count!r} is no number of events"]
    if count > len(events):
        return [f"events: the certificate rests on {count:,} events, the log has {len(events):,}: some were dropped"]
    if head_of(events[:count]) != document.get("head"):
        return ["head: the log is not the one that was certified: an event was changed, dropped, moved or added"]
    try:
        rule, budget = rule_from(document["rule"]), document.get("budget")
        again = certify(events[:count], pool, rule=rule, budget=budget, name=document.get("campaign")).as_dict()
    except (InputError, KeyError, TypeError, AttributeError) as wrong:
        return [f"rule: cannot be built again ({wrong})"]
    differ = [key for key in again if key not in _NOT_IN_THE_LOG and not _same(document.get(key), again[key])]
    more = sorted(set(document) - set(again) - {_SIGNATURE})
    return [f"{key}: the certificate says {document.get(key)!r}, the log gives {again[key]!r}" for key in differ] + [
        f"{key}: is not part of a certificate" for key in more
    ]


def _assumed(said: Assessment, planned: bool) -> list[str]:
    return [*said.assumptions, *([] if planned else [_AFTERWARDS])]


def _sampled(record: Record) -> dict[str, dict[str, int]]:
    """For each source how many rows it asked for, and what came of them."""
    found: dict[str, dict[str, int]] = {}
    for code, name in enumerate(SOURCES):
        own = record.outcome[record.source == code]
        if len(own):
            counts = {"positive": own == 1, "negative": own == 0, "unsettled": own == -1}
            found[name] = {"rows": len(own), **{key: int(chosen.sum()) for key, chosen in counts.items()}}
    return found


def _statement(content: Mapping[str, Any]) -> list[str]:
    said, pool, rule = content["assessment"], content["pool"], content["rule"]
    aim = f"recall of at least {rule['target']:g} with confidence {rule['confidence']:g}"
    bound = f"recall is at least {said['recall_lower']:.4g} with confidence {said['confidence']:.6g}"
    if not said["valid"]:
        outcome = f"NOT CERTIFIED: {said['rule']} is a heuristic and proves nothing"
    elif content["certified"]:
        outcome = f"CERTIFIED: {bound}; at most {said['remaining_upper']:,} positives were missed"
    else:
        price = "" if said["price"] is None else f"; price: about {said['price']:,} labels more, see below"
        outcome = f"NOT CERTIFIED: {aim} was not reached; {bound}{price}"
    asked = "; ".join(
        f"{counts['rows']:,} by {source} ({counts['positive']:,} positive, {counts['unsettled']:,} unsettled)"
        for source, counts in content["sampled"].items()
    )
    budget = "" if content["budget"] is None else f" or {content['budget']:,} labels, whichever is first"
    return [
        outcome,
        f"Aim: {aim}{budget}; rule {said['rule']}, "
        + ("set when the campaign began." if content["planned"] else "chosen afterwards."),
        f"How: {said['reasoning']}.",
        f"Asked for: {asked or 'nothing'}.",
        *(f"Assumes: {text}." for text in said["assumptions"]),
        f"Insurance: {content['insurance']}.",
        f"Pool: {pool['rows']:,} rows, {content['known']:,} of them known beforehand; ids {pool['ids']}, "
        f"vectors {pool['vectors']}.",
        f"Learner {content['learner']}, seed {content['seed']}.",
        f"Log: {content['events']:,} events until {content['until']}, head {content['head']}.",
    ]


def _moment(at: object) -> str | None:
    if not isinstance(at, int | float):
        return None
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(timespec="seconds")


def _plain(value: object) -> object:
    """As JSON gives it back, with floats that every machine computes alike."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _same(given: object, expected: object) -> bool:
    if isinstance(expected, float) and isinstance(given, float):
        return math.isclose(given, expected, rel_tol=1e-7)
    if isinstance(expected, Mapping) and isinstance(given, Mapping):
        return set(given) == set(expected) and all(_same(given[key], expected[key]) for key in expected)
    if isinstance(expected, list) and isinstance(given, list):
        return len(given) == len(expected) and all(map(_same, given, expected))
    return type(given) is type(expected) and bool(given == expected)
