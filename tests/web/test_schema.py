"""What the document of the API says is what the server does, whatever it is sent."""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from serving import ThreadServer, make_home, scene

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

#: Of every operation, and of all of them together where the counts are full.
FULL = 5000
CASES = 160 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 8
CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
#: Of what is sent at random hardly anything exists: some of it is made to.
NAMES = st.sampled_from(["mail", "pair"])
IDS = st.sampled_from([f"m/{row}" for row in range(120)])
PEOPLE = st.sampled_from(["ann", "bob", "me"])


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    make_home(folder, scene()[0])
    make_home(folder, scene()[0], "pair", overlap=2, explore=0, known=["m/0"])
    server = ThreadServer(folder)
    yield server
    server.stop()


def lifelike(data, case):
    """Let a case speak of what there is, now and then."""
    if "name" in (case.path_parameters or {}) and case.method != "DELETE" and data.draw(st.booleans(), "a real name"):
        case.path_parameters["name"] = data.draw(NAMES)
    for place in (case.query, case.body):
        if not isinstance(place, dict) or not data.draw(st.booleans(), "real values"):
            continue
        for key, values in (("id", IDS), ("ids", st.lists(IDS, max_size=3, unique=True)), ("by", PEOPLE)):
            if key in place:
                place[key] = data.draw(values)


def try_out(operation, seen):
    """Many cases of one operation, right ones and wrong ones."""

    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(data=st.data())
    def check(data):
        mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)), "mode")
        case = data.draw(operation.as_strategy(generation_mode=mode))
        lifelike(data, case)
        seen[operation.label] += 1
        case.call_and_validate(checks=CHECKS, timeout=600)

    check()


def test_every_answer_is_a_documented_one(running):
    schema = schemathesis.openapi.from_url(f"{running.url}/api/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    seen = Counter()
    for operation in operations:
        try_out(operation, seen)
    assert set(seen) == {operation.label for operation in operations}
    assert sum(seen.values()) >= FULL or CASES < 100, "make deep promises so many"
    print(f"{sum(seen.values()):,} cases of {len(seen)} operations")
