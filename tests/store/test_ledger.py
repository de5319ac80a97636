"""What the events add up to."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activecover.errors import StoreError
from activecover.store import FORMAT, Ledger, read_event

CREATED = {
    "event": "created", "format": FORMAT, "rows": 3, "pool": {"ids": "1", "vectors": "2"}, "outside": None,
    "learner": "explore-commit@1", "seed": 0, "explore": 100,
}  # fmt: skip
KNOWN = {"event": "known", "id": "z"}


def asked(number: int, name: str, batch: int = 0, by: str = "me", **more: Any) -> dict[str, Any]:
    return {
        "event": "asked",
        "number": number,
        "id": name,
        "source": "explore",
        "batch": batch,
        "by": by,
        **more,
    }


def told(name: str, label: Any = 1, by: str = "me") -> dict[str, Any]:
    return {"event": "told", "id": name, "label": label, "by": by}


def about(kind: str, name: str, by: str = "me", **more: Any) -> dict[str, Any]:
    return {"event": kind, "id": name, "by": by, **more}


def names(ledger: Ledger, *states: Any) -> list[str]:
    return [ask.id for ask in ledger.with_state(*states)]


def test_from_asked_to_told() -> None:
    ledger = Ledger([CREATED, KNOWN, asked(0, "a"), asked(1, "b"), asked(2, "c", batch=4)])
    assert ledger.created == read_event(CREATED)
    assert list(ledger.known) == ["z"]
    assert names(ledger, "leased") == ["a", "b", "c"]
    assert (ledger.next_number, ledger.next_batch) == (3, 5)
    ledger.apply(told("c"))
    ledger.apply(told("a", 0))
    ledger.apply(about("skipped", "b"))
    assert names(ledger, "positive", "negative") == ["a", "c"]
    assert names(ledger, "skipped") == ["b"]
    assert ledger.count("positive", "negative", "skipped", "leased") == 3
    assert ledger.asks["c"].settled
    assert not ledger.asks["b"].settled


def test_undone_release_and_asking_again() -> None:
    ledger = Ledger([CREATED, asked(0, "a"), told("a"), about("undone", "a", by="you", expires=5.0)])
    assert (ledger.asks["a"].state, ledger.asks["a"].by, ledger.asks["a"].expires) == ("leased", "you", 5.0)
    ledger.apply(about("unsure", "a"))
    assert ledger.last_decisions(1, None) == ["a"]
    ledger.apply(asked(1, "a", batch=1))
    assert ledger.last_decisions(1, None) == []
    assert names(ledger, "leased") == ["a"]
    assert ledger.count("unsure", "open") == 0
    ledger.apply(about("released", "a"))
    assert names(ledger, "open") == ["a"]


def test_last_decisions() -> None:
    ledger = Ledger(
        [
            CREATED,
            *(asked(i, name) for i, name in enumerate("abc")),
            told("b"),
            told("a", by="you"),
            told("c", 0),
        ]
    )
    assert ledger.last_decisions(2, None) == ["c", "a"]
    assert ledger.last_decisions(9, "me") == ["c", "b"]
    ledger.apply(about("undone", "c"))
    assert ledger.last_decisions(9, None) == ["a", "b"]


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({"event": "sold", "seq": 9}, "event 9: unknown kind 'sold'"),
        ({"event": ""}, "unknown kind ''"),
        ({"event": "created__"}, "unknown kind"),
        (told("b"), "'b' was never asked for"),
        (about("undone", "b"), "never asked"),
        (about("released", "b"), "never asked"),
        (about("skipped", "b"), "never asked"),
        (told("a", 2), "label 2 is damaged"),
        (told("a", "yes"), "label 'yes' is damaged"),
        (told("a", None), "label None is damaged"),
        (told("a", [1]), r"label \[1\] is damaged"),
        (told(7), "id 7 is damaged"),
        ({"event": "told"}, "id None is damaged"),
        ({"event": "known"}, "id None is damaged"),
        (asked("x", "b"), "number 'x' is damaged"),
        (asked(True, "b"), "number True is damaged"),
        (asked(-1, "b"), "number -1 is damaged"),
        (asked(2**63, "b"), "is damaged"),
        (asked(1, {}), "id {} is damaged"),
        (asked(1, "b", batch=None), "batch None is damaged"),
        (asked(1, "b", expires="soon"), "expires 'soon' is damaged"),
        (asked(1, "b", source=0), "source 0 is damaged"),
        (CREATED, "created once"),
    ],
)
def test_an_event_that_cannot_be(event: dict[str, Any], says: str) -> None:
    ledger = Ledger([CREATED, asked(0, "a")])
    with pytest.raises(StoreError, match=says):
        ledger.apply(event)
    assert names(ledger, "leased") == ["a"]
    assert ledger.next_number == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": FORMAT + 1}, f"format {FORMAT + 1}, this version reads {FORMAT}"),
        ({"format": None}, "format None"),
        ({"rows": "3"}, "rows '3'"),
        ({"pool": None}, "pool None"),
        ({"pool": {"ids": "1"}}, "pool"),
        ({"pool": {"ids": 1, "vectors": 2}}, "pool"),
        ({"learner": None}, "learner None"),
        ({"seed": "x"}, "seed 'x'"),
        ({"seed": -1}, "seed -1"),
        ({"seed": 1.0}, "seed 1.0"),
        ({"explore": "x"}, "explore 'x'"),
        ({"explore": [1, -1]}, "explore"),
        ({"outside": 3}, "outside 3"),
    ],
)
def test_a_beginning_that_cannot_be(change: dict[str, Any], says: str) -> None:
    with pytest.raises(StoreError, match=says):
        Ledger([CREATED | change])


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "event": st.sampled_from(
                    ["created", "known", "asked", "told", "skipped", "unsure", "released", "undone"]
                )
            },
            optional={
                name: VALUES | st.sampled_from(["a", "b"])
                for name in (
                    "id",
                    "number",
                    "source",
                    "batch",
                    "by",
                    "expires",
                    "label",
                    "format",
                    "rows",
                    "seed",
                )
            },
        ),
        max_size=6,
    )
)
def test_any_event_is_taken_or_refused(events: list[dict[str, Any]]) -> None:
    ledger = Ledger([CREATED, asked(0, "a"), asked(1, "b")])
    for event in events:
        with contextlib.suppress(StoreError):
            ledger.apply(event)
        states = [ask.state for ask in ledger.asks.values()]
        assert sum(ledger.count(state) for state in set(states)) == len(states)
