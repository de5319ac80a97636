"""Rules for when to stop: bounds on recall computed from the log, their assumptions, and their price."""

from activecover.stopping._betting import WeightedBetting
from activecover.stopping._budget import Budget
from activecover.stopping._catalogue import (
    RULES,
    describe_rules,
    make_rule,
    parse_guarantee,
    rule_from,
    rule_settings,
    standard_rules,
    valid_rules,
)
from activecover.stopping._chao import Chao
from activecover.stopping._consecutive import ConsecutiveNegatives
from activecover.stopping._designs import campaign_for, default_switch
from activecover.stopping._gap import DistanceGap
from activecover.stopping._heuristic import Heuristic
from activecover.stopping._insurance import (
    MissedComponent,
    draws_to_exclude,
    labels_to_hit,
    largest_missed,
    missed_component,
)
from activecover.stopping._knee import Knee
from activecover.stopping._plan import CertificateCost, CertificatePlan, plan_certificate
from activecover.stopping._qbcb import ControlQuantile
from activecover.stopping._ranked import RankedHypergeometric
from activecover.stopping._record import SOURCES, Record
from activecover.stopping._replay import Replay, Stop, load_runs, replay, summarise
from activecover.stopping._rule import AnyOf, Assessment, Course, Rule, check_levels
from activecover.stopping._sequence import ConfidenceSequence
from activecover.stopping._target import TargetMethod
from activecover.stopping._two_phase import TwoPhase, planned_sample

__all__ = [
    "RULES",
    "SOURCES",
    "AnyOf",
    "Assessment",
    "Budget",
    "CertificateCost",
    "CertificatePlan",
    "Chao",
    "ConfidenceSequence",
    "ConsecutiveNegatives",
    "ControlQuantile",
    "Course",
    "DistanceGap",
    "Heuristic",
    "Knee",
    "MissedComponent",
    "RankedHypergeometric",
    "Record",
    "Replay",
    "Rule",
    "Stop",
    "TargetMethod",
    "TwoPhase",
    "WeightedBetting",
    "campaign_for",
    "check_levels",
    "default_switch",
    "describe_rules",
    "draws_to_exclude",
    "labels_to_hit",
    "largest_missed",
    "load_runs",
    "make_rule",
    "missed_component",
    "parse_guarantee",
    "plan_certificate",
    "planned_sample",
    "replay",
    "rule_from",
    "rule_settings",
    "standard_rules",
    "summarise",
    "valid_rules",
]
