"""Files, logs and options changed at random are refused in one line, or work."""

from __future__ import annotations

import shlex

import pytest
from bad_input import (
    CSV,
    FIND,
    GOOD,
    SIMULATE,
    refused,
    workplace,
)
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        how = draw(st.sampled_from(["flip", "set", "insert", "delete", "repeat", "truncate"]))
        at = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.integers(1, 12))
        if how == "flip" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "set" and data:
            data[at] = draw(st.sampled_from(b'\0\n\r",;{}[]()0919-.eENaninf\xff\x80 '))
        elif how == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=8))
        elif how == "delete":
            del data[at : at + length]
        elif how == "repeat":
            data[at:at] = data[at : at + length]
        elif how == "truncate":
            del data[at:]
    return bytes(data)


def examples(count: int) -> settings:
    return settings(
        max_examples=max(count, settings.default.max_examples),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


@pytest.mark.parametrize("name", SIMULATE)
@examples(150)
@given(data=st.data())
def test_damaged_files(name: str, data: st.DataObject) -> None:
    content = data.draw(damaged(GOOD[name]))
    with workplace(**GOOD | {name: content}) as folder:
        refused(SIMULATE[name], folder, valid_too=True)


@examples(200)
@given(data=st.data())
def test_damaged_logs(log: bytes, data: st.DataObject) -> None:
    content = data.draw(damaged(log))
    with workplace(**{"p.csv": CSV, "log.jsonl": content}) as folder:
        refused(FIND, folder, valid_too=True)


ODD = st.one_of(
    st.sampled_from(
        [
            "",
            "0",
            "-1",
            "1",
            "3",
            "nan",
            "inf",
            "-inf",
            "1e9",
            "1.5",
            "0x1",
            "%",
            "5%",
            "1e400%",
            "None",
            "\0",
        ]
    ),
    st.integers(-(2**70), -1).map(str),
    st.floats(allow_nan=True).map(str),
    st.text(max_size=6).filter(lambda text: not text.strip().isdecimal()),
)


@examples(200)
@given(
    option=st.sampled_from(
        [
            "batch",
            "runs",
            "explore",
            "budget",
            "seed",
            "metric",
            "learner",
            "columns",
            "id-col",
            "label-col",
            "label",
            "labels",
            "vectors",
            "dataset",
            "out",
            "plot",
            "pool",
        ]
    ),
    value=ODD,
)
def test_odd_options_of_simulate(option: str, value: str) -> None:
    # A great number of runs is no bad input, only a long wait.
    assume(option != "runs" or len(value) < 4 or value.startswith("-") or value.isalpha())
    with workplace(**{"p.csv": CSV}) as folder:
        refused([*shlex.split(SIMULATE["p.csv"]), f"--{option}={value}"], folder, valid_too=True)


@examples(200)
@given(
    option=st.sampled_from(
        [
            "explore",
            "budget",
            "target",
            "seed",
            "metric",
            "learner",
            "columns",
            "id-col",
            "content-cols",
            "known",
            "known-vectors",
            "vectors",
            "export",
            "pool",
        ]
    ),
    value=ODD,
)
def test_odd_options_of_find(option: str, value: str) -> None:
    with workplace(**{"p.csv": CSV}) as folder:
        refused([*shlex.split(FIND), f"--{option}={value}"], folder, valid_too=True)
