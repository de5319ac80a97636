"""The theory in numbers: bounds, sample sizes, and a planner for the exploration."""

from activecover.planning._bounds import (
    active_excess_bound,
    ball_volume,
    best_offline_sample,
    coupon_collector_expected,
    coupon_collector_probability,
    epsilon_active,
    epsilon_connected,
    epsilon_offline,
    explore_lemma1,
    explore_theorem4,
    explore_union,
    n_large_enough,
    offline_excess_bound,
    probability_all_hit,
)
from activecover.planning._planner import ExplorePlan, plan_explore, plan_from_sample
from activecover.planning._sample import LEAST_POSITIVES, SampleEstimate, clopper_pearson, estimate_from_sample

__all__ = [
    "LEAST_POSITIVES",
    "ExplorePlan",
    "SampleEstimate",
    "active_excess_bound",
    "ball_volume",
    "best_offline_sample",
    "clopper_pearson",
    "coupon_collector_expected",
    "coupon_collector_probability",
    "epsilon_active",
    "epsilon_connected",
    "epsilon_offline",
    "estimate_from_sample",
    "explore_lemma1",
    "explore_theorem4",
    "explore_union",
    "n_large_enough",
    "offline_excess_bound",
    "plan_explore",
    "plan_from_sample",
    "probability_all_hit",
]
