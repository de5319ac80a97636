"""The record: what the rules see of a log, a ledger or a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from activecover.campaign import Campaign
from activecover.errors import InputError, StoreError
from activecover.pool import Pool
from activecover.stopping import SOURCES, ConfidenceSequence, ControlQuantile, Record, WeightedBetting, make_rule
from activecover.stopping._record import NEVER
from activecover.store import Ledger, MemoryLog
from activecover.trace import Trace


def asked(number: int, name: str, source: str = "learner", **more: Any) -> dict[str, Any]:
    return {"event": "asked", "number": number, "id": name, "source": source, "batch": number, "by": "me", **more}


def told(name: str, label: int) -> dict[str, Any]:
    return {"event": "told", "id": name, "label": label, "by": "me"}


def ledger(*events: dict[str, Any]) -> Ledger:
    return Ledger({"seq": place, **event} for place, event in enumerate(events))


def test_from_a_trace() -> None:
    trace = Trace(
        np.array([4, 2, 0]), np.array([False, True, True]), np.array([0, 0, 1]), np.array([True, True, False]), 6, 3
    )
    record = Record.from_trace(trace)
    assert [SOURCES[code] for code in record.source] == ["explore", "explore", "learner"]
    assert record.probability.tolist() == pytest.approx([1 / 6, 1 / 5, 1])
    assert record.open_rows.tolist() == [6, 5, 4]
    assert record.found.tolist() == [0, 0, 1, 2]
    assert (record.rows, record.positives) == (6, 3)


def test_from_a_ledger_with_every_state() -> None:
    record = Record.from_ledger(
        ledger(
            asked(0, "a", "explore", probability=0.1, open=10), told("a", 1),
            asked(1, "b", probability=1.0, open=9), told("b", 0),
            asked(2, "c", probability=1.0), {"event": "skipped", "id": "c", "by": "me"},
            asked(3, "d", probability=1.0), {"event": "unsure", "id": "d", "by": "me"},
            asked(4, "e", probability=1.0),
            asked(5, "f", probability=1.0), {"event": "released", "id": "f", "by": "me"},
            asked(6, "g", "insurance", probability=0.2, open=5), {"event": "released", "id": "g", "by": "me"},
            asked(7, "h", "somewhere"), told("h", 1),
        ),
        rows=10,
    )  # fmt: skip
    # f went back without chance and is open as before; g was drawn, and its draw is not forgotten.
    assert record.outcome.tolist() == [1, 0, -1, -1, -1, -1, 1]
    assert [SOURCES[code] for code in record.source] == [
        *["explore", "learner", "learner", "learner", "learner"],
        "insurance",
        "given",
    ]
    assert record.open_rows.tolist() == [10, 9, 8, 7, 6, 5, 4]
    assert np.isnan(record.probability[-1])


def test_a_row_asked_again_keeps_its_first_draw() -> None:
    record = Record.from_ledger(
        ledger(
            asked(0, "a", "explore", probability=0.25, open=4), {"event": "skipped", "id": "a", "by": "me"},
            asked(1, "b", probability=1.0), told("b", 0),
            asked(2, "a", "explore", probability=None), told("a", 1),
        ),
        rows=4,
    )  # fmt: skip
    assert record.outcome.tolist() == [1, 0]
    assert record.probability.tolist() == [0.25, 1.0]


def test_a_choice_that_went_back_and_is_drawn_later_is_a_new_draw() -> None:
    record = Record.from_ledger(
        ledger(
            asked(0, "a", probability=1.0, open=4), {"event": "released", "id": "a", "by": "me"},
            asked(1, "b", probability=1.0, open=4), told("b", 0),
            asked(2, "a", "insurance", probability=1 / 3, open=3), told("a", 1),
        ),
        rows=4,
    )  # fmt: skip
    assert record.outcome.tolist() == [0, 1]
    assert [SOURCES[code] for code in record.source] == ["learner", "insurance"]


def test_control_rows_are_reached_when_the_learner_asks_for_them() -> None:
    record = Record.from_ledger(
        ledger(
            asked(0, "a", "control", probability=0.2), told("a", 1),
            asked(1, "b", "control", probability=0.2), told("b", 1),
            asked(2, "c"), told("c", 0),
            asked(3, "b"), told("b", 1),
            asked(4, "d"), told("d", 1),
        ),
        rows=5,
        control={"a", "b", "d"},
    )  # fmt: skip
    assert record.reached.tolist() == [NEVER, 3, 3, 4]
    assert record.control.tolist() == [True, True, False, True]
    assert record.outcome.tolist() == [1, 1, 0, 1]


@given(st.permutations(list(range(8))), st.lists(st.integers(0, 1), min_size=8, max_size=8))
def test_the_order_of_answers_does_not_matter(order: list[int], labels: list[int]) -> None:
    asks = [asked(n, str(n), "audit" if n > 3 else "learner", open=20 - n, probability=1 / (20 - n)) for n in range(8)]
    answers = [told(str(n), labels[n]) for n in order]
    shuffled = Record.from_ledger(ledger(*asks, *answers), rows=20)
    in_order = Record.from_ledger(ledger(*asks, *sorted(answers, key=lambda event: str(event["id"]))), rows=20)
    assert shuffled.outcome.tolist() == in_order.outcome.tolist() == labels
    for name in ("confidence-sequence", "weighted-betting", "two-phase"):
        assert make_rule(name).assess(shuffled) == make_rule(name).assess(in_order)


def test_known_items_and_groups() -> None:
    record = Record.from_ledger(
        ledger({"event": "known", "id": "z"}, asked(0, "a"), told("a", 1)), rows=5, sizes={"a": 3, "b": 7, "z": 9}
    )
    assert (record.rows, record.members, record.largest_rest) == (4, 12, 7)
    assert record.found_members.tolist() == [0, 3]
    assert record.missed_members.tolist() == [12, 9]
    assert record.largest_group.tolist() == [7, 7]


def test_the_size_of_the_pool_must_be_known() -> None:
    with pytest.raises(StoreError, match="give rows"):
        Record.from_ledger(Ledger())


def test_a_live_campaign() -> None:
    random = np.random.default_rng(0)
    points = np.concatenate([random.normal(size=(20, 2)), random.normal(size=(180, 2)) + 6])
    log = MemoryLog()
    with Campaign(Pool(points), log=log, explore=30, seed=1) as campaign:
        for _ in range(60):
            for item in campaign.ask(1):
                campaign.tell([item.id], [int(item.id) < 20])
    record = Record.from_ledger(Ledger(log.read()))
    assert len(record) == 60
    assert record.uniform(record.source == SOURCES.index("explore"))
    assert record.current.all()
    said = WeightedBetting(0.8).assess(record)
    assert said.valid
    assert 0 < said.recall_lower < 1


def test_rows_that_were_added_are_not_covered_by_earlier_draws() -> None:
    draws = {"source": "audit", "open_rows": 100 - np.arange(100), "probability": 1 / (100 - np.arange(100))}
    outcome = [1] * 20 + [0] * 80
    before = ConfidenceSequence(0.9).assess(Record.of(outcome, rows=100, **draws))
    after = ConfidenceSequence(0.9).assess(Record.of(outcome, rows=150, **draws))
    assert before.remaining_upper == 0
    assert after.remaining_upper == 50
    assert WeightedBetting(0.9).assess(Record.of(outcome, rows=150, **draws)).remaining_upper == 50


def test_head_forgets_the_future() -> None:
    record = Record.of([1, 0, 1], rows=5, source="control", reached=[2, 3, 3], size=[1, 4, 2])
    assert record.head(2).reached.tolist() == [2, NEVER]
    assert record.head(1).largest_rest == 4
    assert ControlQuantile(0.5, positives=1).assess(record.head(0)).recall_lower == 0


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"outcome": [1, 2]}, "outcomes are"),
        ({"outcome": [1, 0, 1, 0]}, "4 rows asked in a pool of 3"),
        ({"outcome": [1], "probability": [1.5]}, "outside 0 to 1"),
        ({"outcome": [1], "size": [0]}, "has no member"),
        ({"outcome": [1, 0], "distance": [1.0]}, "1 values of distance for 2 asks"),
    ],
)
def test_what_is_no_record(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Record.of(**{"rows": 3, **wrong})
