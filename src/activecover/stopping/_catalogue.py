"""The registry of stopping rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from activecover.errors import InputError
from activecover.registry import Registry
from activecover.stopping._betting import WeightedBetting
from activecover.stopping._budget import Budget
from activecover.stopping._chao import Chao
from activecover.stopping._consecutive import ConsecutiveNegatives
from activecover.stopping._gap import DistanceGap
from activecover.stopping._knee import Knee
from activecover.stopping._qbcb import ControlQuantile
from activecover.stopping._ranked import RankedHypergeometric
from activecover.stopping._rule import Rule, check_levels
from activecover.stopping._sequence import ConfidenceSequence
from activecover.stopping._target import TargetMethod
from activecover.stopping._two_phase import TwoPhase

_T = TypeVar("_T")

RULES: Registry[Rule] = Registry("stopping rule", group="activecover.rules")

_STANDARD: list[tuple[type[Rule], str]] = [
    (ControlQuantile, "the review must find enough of the positives in a blind control sample"),
    (TargetMethod, "the review must find all of the positives in a blind control sample"),
    (TwoPhase, "stop ranking, draw a planned sample of the rest, look once"),
    (ConfidenceSequence, "stop ranking, audit the rest, look after every label"),
    (WeightedBetting, "certify while querying: every draw with a known probability counts"),
    (ConsecutiveNegatives, "many negatives in a row"),
    (Knee, "the curve of positives found has bent"),
    (Budget, "a number of labels; says nothing about recall"),
    (Chao, "capture-recapture: control sample against review"),
    (RankedHypergeometric, "treats the end of the ranking as a random sample"),
    (DistanceGap, "proposals are farther away than any positive was"),
]
for _rule, _summary in _STANDARD:
    RULES.register(_rule.name, _summary, version=_rule.version)(_rule)


def make_rule(name: str | Rule, **parameters: object) -> Rule:
    """Build a rule by name; a rule object is returned unchanged.

    Examples
    --------
    >>> make_rule("target", target=0.9)
    TargetMethod(target=0.9, confidence=0.95, positives=None, sample=None)
    """
    if isinstance(name, Rule):
        return name
    rule = RULES.build(name, **parameters)
    check_levels(rule.target, rule.confidence)
    return rule


def rule_settings(rule: Rule) -> dict[str, Any]:
    """The settings from which :func:`rule_from` rebuilds a registered rule: name, version and parameters.

    Examples
    --------
    >>> rule_settings(TwoPhase(0.9))
    {'rule': 'two-phase@1', 'target': 0.9, 'confidence': 0.95, 'sample': None}
    """
    if rule.name not in [entry.name for entry in RULES]:
        raise InputError(f"{rule!r} is not registered, so it could not be rebuilt from its settings: register it")
    names = inspect.signature(type(rule)).parameters
    return {"rule": f"{rule.name}@{rule.version}", **{name: getattr(rule, name) for name in names}}


def rule_from(settings: Mapping[str, Any]) -> Rule:
    """Rebuild a rule from what :func:`rule_settings` returned.

    Examples
    --------
    >>> rule_from(rule_settings(ConfidenceSequence(prior=(1.0, 9.0)))).prior
    (1.0, 9.0)
    """
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    return make_rule(str(given.pop("rule")), **given)


def parse_guarantee(text: str, rule: str = ControlQuantile.name) -> Rule:
    """Make a valid rule from ``target@confidence``, such as ``0.95@0.95``.

    Examples
    --------
    >>> parse_guarantee("0.9@0.95", "target")
    TargetMethod(target=0.9, confidence=0.95, positives=None, sample=None)
    """
    try:
        target, confidence = map(float, text.split("@"))
    except ValueError as error:
        raise InputError(f"{text!r}: give recall and confidence as in 0.95@0.95") from error
    made = make_rule(rule, target=target, confidence=confidence)
    if not made.valid:
        raise InputError(f"{made.name} proves nothing: choose one of {', '.join(valid_rules())}")
    return made


def valid_rules() -> list[str]:
    """The names of the rules that prove something."""
    return [rule.name for rule in standard_rules(valid_only=True)]


def standard_rules(target: float = 0.95, confidence: float = 0.95, *, valid_only: bool = False) -> list[Rule]:
    """Make one of each registered rule that works towards a target."""
    rules = [
        make_rule(entry.name, target=target, confidence=confidence) for entry in RULES if entry.name != Budget.name
    ]
    return [rule for rule in rules if rule.valid or not valid_only]


def describe_rules() -> list[dict[str, Any]]:
    """Describe every registered rule: what it promises, needs and assumes."""
    return [
        {
            "name": entry.name,
            "version": entry.version,
            "summary": entry.summary,
            "valid": _about(entry.build, "valid", False),
            "anytime": _about(entry.build, "anytime", False),
            "design": _about(entry.build, "design", "none"),
            "assumptions": list(_about(entry.build, "assumptions", tuple[str, ...]())),
        }
        for entry in RULES
    ]


def _about(build: Callable[..., Rule], name: str, default: _T) -> _T:
    # Another package may register a function instead of a class: then its rule is unknown until it is built.
    value: _T = getattr(build, name, default)
    return value
