"""What is proved, as numbers: bounds, sample sizes, and a planner for the exploration."""

from activecover.theory._bounds import (
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
from activecover.theory._planner import (
    ExplorePlan,
    SampleEstimate,
    clopper_pearson,
    estimate_from_sample,
    plan_explore,
    plan_from_sample,
)

__all__ = [
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
