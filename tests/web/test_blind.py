"""Control rows of a certified campaign: nobody who labels can tell them from others, whatever they ask the server for."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from serving import ThreadServer, httpx, make_home, scene

from activecover.home import Home

POOL, TRUTH = scene()
LOOKS = ("status", "progress", "labels", "history", "items", "agreement", "conflicts", "map/states", "export")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Any, None, None]:
    folder = tmp_path_factory.mktemp("home")
    make_home(folder, POOL, "blind", certify="0.95@0.95")
    make_home(folder, POOL, "done", certify="0.5@0.5", rule="target")
    running = ThreadServer(folder)
    yield running
    running.stop()


def sources(folder: Path, name: str) -> dict[str, str]:
    with Home(folder) as home, home.open(name) as campaign:
        return {event["id"]: event["source"] for event in campaign.history() if event["event"] == "asked"}


def label(http: Any, name: str, count: int) -> list[dict[str, Any]]:
    views = []
    for _ in range(count):
        found = http.post(f"/api/campaigns/{name}/ask", json={}).json()["items"]
        if not found:
            break
        views.append(found[0])
        http.post(f"/api/campaigns/{name}/tell", json={"ids": found[0]["id"], "labels": TRUTH[found[0]["id"]]})
    return views


def without_contents(view: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in view.items() if key not in ("id", "content", "view")})


def test_nothing_tells_control_rows_from_others(server: Any) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as http:
        views = label(http, "blind", 60)
        before = http.get("/api/campaigns/blind/ahead", params={"id": views[-1]["id"]}).json()
        answers = {what: http.get(f"/api/campaigns/blind/{what}").text for what in LOOKS}
        searched = http.get("/api/campaigns/blind/history", params={"search": "control"}).json()
        trace = http.get("/api/campaigns/blind/trace").json()
    drawn = sources(server.folder, "blind")
    assert set(drawn.values()) == {"explore", "learner", "control"}
    assert len({without_contents(view) for view in views}) == 1, "items to label differ by more than what they are"
    assert not any(before.values()), "what comes next is foreseen for some"
    progress = json.loads(answers["progress"])
    # What the whole campaign promises is no secret; how far it is would tell what the last item was.
    assert progress["bound"].pop("assumptions")
    assert progress["bound"].pop("rule") == "qbcb@1"
    answers["progress"] = json.dumps(progress)
    for what, text in answers.items():
        for word in ("control", "reached", "probability", 'insurance": "'):
            assert word not in text.replace("some items are controls", ""), f"{what} says {word!r}"
        for word in ('"source": "learner"', '"source": "explore"', ",learner,", ",explore,", '"frontier"'):
            assert word not in text, f"{what} says {word!r}"
    assert searched["total"] == 0
    items = json.loads(answers["items"])["items"]
    assert {(item["source"], item["nearest"]) for item in items} == {(None, None)}
    events = [event for event in json.loads(answers["history"])["events"] if event["event"] == "asked"]
    assert len({tuple(sorted(event)) for event in events}) == 1
    assert progress["distance"] == []
    assert (set(trace["explored"]), set(trace["batch"])) == ({False}, {1})


def test_once_certified_everything_can_be_seen(server: Any) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as http:
        label(http, "done", 120)
        status = http.get("/api/campaigns/done/status").json()
        said = http.get("/api/campaigns/done/certificate").json()
        history = http.get("/api/campaigns/done/history").text
    assert status["stopped"].startswith("certified: recall at least")
    assert said["certified"]
    assert said["statement"][0].startswith("CERTIFIED")
    assert '"control"' in history
