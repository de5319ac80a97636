"""Control rows of a certified campaign: nobody who labels can tell them from others, whatever they ask the server for."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving import ThreadServer, httpx, let_in, make_home, scene

from activecover import Pool
from activecover.workspace import Workspace

POOL, TRUTH = scene()
PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
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
    with Workspace(folder) as home, home.open(name) as campaign:
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


# -- people with a token of their own ------------------------------------------------------------------


class Team:
    """A server with people of every role."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_home(folder, POOL, "blind", certify="0.95@0.95")
        make_home(folder, POOL, "plain", explore=0, known=["m/0"])
        pictured = Pool(np.arange(30.0)[:, None], ids=[f"p{row}" for row in range(30)], contents={"image": [PNG] * 30})
        make_home(folder, pictured, "pictures", explore=0, known=["p0"], learner="explore-commit")
        make_home(folder, POOL, "pair", explore=0, known=["m/0"], overlap=2)
        self.tokens = {
            name: let_in(folder, name, role)
            for name, role in (
                ("ann", "annotator"), ("cat", "annotator"), ("judge", "adjudicator"), ("boss", "owner"),
            )
        }  # fmt: skip
        self.server = ThreadServer(folder)

    def send(self, who: str, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens[who]}", "X-Request-ID": "same"}
        address = path if "://" in path else f"{self.server.url}/api/campaigns/{path}".rstrip("/")
        return httpx.request(method, address, json=body, headers=headers, timeout=60)

    def tell_once(self, who: str, name: str, id: str, label: bool, key: str) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens[who]}", "Idempotency-Key": key}
        body = {"ids": id, "labels": label}
        return httpx.post(f"{self.server.url}/api/campaigns/{name}/tell", json=body, headers=headers, timeout=60)

    def ask(self, who: str, name: str, k: int = 1) -> list[Any]:
        return list(self.send(who, "POST", f"{name}/ask", {"k": k}).json()["items"])

    def tell(self, who: str, name: str, id: str, label: bool, **more: Any) -> Any:
        return self.send(who, "POST", f"{name}/tell", {"ids": id, "labels": label, **more})


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Generator[Team, None, None]:
    made = Team(tmp_path_factory.mktemp("team"))
    yield made
    made.server.stop()


def refused(answer: Any, status: int, text: str) -> None:
    assert (answer.status_code, text in answer.json()["detail"]) == (status, True), answer.text
    assert "\n" not in answer.json()["detail"]


@pytest.mark.parametrize("what", ["assess", "certificate"])
def test_how_the_control_sample_stands_is_for_owners_while_the_guarantee_is_open(team: Team, what: str) -> None:
    said = []
    for _ in range(6):
        (item,) = team.ask("ann", "blind")
        said.append(team.send("judge", "GET", f"blind/{what}"))
        assert team.tell("ann", "blind", item["id"], TRUTH[item["id"]]).status_code == 200
    assert len({answer.content for answer in said}) == 1
    refused(said[0], 403, "hidden while the guarantee is open")
    assert team.send("boss", "GET", f"blind/{what}").status_code == 200


def test_adjudicators_see_progress_without_the_bound(team: Team) -> None:
    for _ in range(6):
        (item,) = team.ask("ann", "blind")
        team.tell("ann", "blind", item["id"], TRUTH[item["id"]])
    data = team.send("judge", "GET", "blind/progress").json()
    assert (data["bound"], data["bounds"], data["withheld"]) == (None, [], "hidden while the guarantee is open")
    assert [data["status"][name] for name in ("phase", "note", "insurance")] == [None, None, None]
    assert team.send("boss", "GET", "blind/progress").json()["bound"]["rule"] == "qbcb@1"


def test_neither_seed_nor_numbers_of_events_tell_control_rows(team: Team) -> None:
    for _ in range(30):
        (item,) = team.ask("ann", "blind")
        team.tell("ann", "blind", item["id"], TRUTH[item["id"]])
    events = team.send("judge", "GET", "blind/history?limit=1000").json()["events"]
    assert not {"seed", "key", "explore"} & set(events[0])
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert team.send("judge", "GET", "blind/trace").json()["seed"] == 0
    assert all("why" not in record for record in team.send("judge", "GET", "blind/records").json()["records"])


def test_in_double_labelling_counts_do_not_tell_what_the_other_said(team: Team) -> None:
    (item,) = team.ask("ann", "pair")
    first = team.tell("ann", "pair", item["id"], True).json()["counts"]
    assert team.ask("cat", "pair")[0]["id"] == item["id"]
    assert team.tell("cat", "pair", item["id"], False).json()["counts"]["negative"] == 1
    again = team.tell("ann", "pair", item["id"], True).json()["counts"]
    assert first == again == {"rows": 120, "positive": 1, "negative": 0, "leased": 0, "skipped": 0, "unsure": 0}
    shown = {one["name"]: one["counts"] for one in team.send("ann", "GET", "").json()["campaigns"]}
    assert shown["pair"] == first
    assert team.send("judge", "GET", "pair/status").json()["conflicts"] == 1


def test_in_double_labelling_an_answer_is_final_once_the_other_is_in(team: Team) -> None:
    while (item := team.ask("ann", "pair")[0]["id"]) in [one["id"] for one in team.ask("cat", "pair", 5)]:
        team.tell("ann", "pair", item, False)
    assert team.tell("ann", "pair", item, True).status_code == 200
    assert team.tell("ann", "pair", item, False, change=True).status_code == 200
    assert team.tell("ann", "pair", item, True, change=True).status_code == 200
    while item not in [one["id"] for one in team.ask("cat", "pair", 20)]:
        team.tell("cat", "pair", team.ask("cat", "pair")[0]["id"], False)
    assert team.tell("cat", "pair", item, False).status_code == 200
    for request in (
        team.tell("ann", "pair", item, False, change=True),
        team.tell("cat", "pair", item, True, change=True),
        team.send("cat", "POST", "pair/undo", {}),
        team.send("ann", "POST", "pair/answer", {"id": item, "label": False}),
    ):
        refused(request, 422, "has all its answers: only an adjudicator can change them")
    (found,) = team.send("judge", "GET", f"pair/items?search={item}&limit=1").json()["items"]
    assert found["opinions"] == {"ann": True, "cat": False}


def test_the_name_of_somebody_else_s_request_does_not_tell_what_they_said(team: Team) -> None:
    """Who guesses it (scripts like to use the id) learnt whether they agree, and their own answer was lost."""
    (item,) = team.ask("ann", "pair")
    name = item["id"]
    assert team.tell_once("ann", "pair", name, True, "label-1").json()["repeated"] is False
    while name not in [one["id"] for one in team.ask("cat", "pair", 20)]:
        team.tell("cat", "pair", team.ask("cat", "pair")[0]["id"], False)
    for repeated in (False, True):
        answer = team.tell_once("cat", "pair", name, False, "label-1")
        assert (answer.status_code, answer.json().get("repeated")) == (200, repeated), answer.text
    (found,) = team.send("judge", "GET", f"pair/items?search={name}&limit=1").json()["items"]
    assert found["opinions"] == {"ann": True, "cat": False}


def test_annotators_do_not_overturn_an_adjudication(team: Team) -> None:
    (item,) = team.ask("ann", "pair")
    name = item["id"]
    team.tell("ann", "pair", name, True)
    while name not in [one["id"] for one in team.ask("cat", "pair", 20)]:
        team.tell("cat", "pair", team.ask("cat", "pair")[0]["id"], False)
    team.tell("cat", "pair", name, False)
    assert team.send("judge", "POST", "pair/adjudicate", {"id": name, "label": True}).status_code == 200
    for who in ("ann", "cat"):
        assert team.tell(who, "pair", name, who == "cat", change=True).status_code == 422
    assert team.send("cat", "POST", "pair/undo", {}).status_code == 422
    assert dict(team.send("judge", "GET", "pair/labels").json()["labels"])[name] is True
    beside = [view["beside"] for who in ("ann", "cat") for view in team.ask(who, "pair", 8)]
    assert {shown["id"] for shown in beside if shown} <= {"m/0"}, "only what was known from the start"
    refused(team.tell("judge", "pair", name, False, by="ann", change=True), 422, "only adjudicating it again")
    assert team.send("judge", "POST", "pair/adjudicate", {"id": name, "label": False}).status_code == 200
    assert dict(team.send("judge", "GET", "pair/labels").json()["labels"])[name] is False


def test_of_ids_that_are_not_theirs_annotators_learn_nothing(team: Team) -> None:
    """Positive, negative, open, known, on another's table, or of no item at all: the same answer, headers included."""
    names = [item["id"] for item in team.ask("cat", "plain", 3)]
    team.tell("cat", "plain", names[0], True)
    team.tell("cat", "plain", names[1], False)
    still_open = next(name for name in TRUTH if name not in [*names, "m/0"])
    for path in ("image", "frame", "ahead"):
        answers = [
            team.send("ann", "GET", f"plain/{path}?id={name}") for name in (*names, "m/0", still_open, "m/999999", "?")
        ]
        told = {
            (answer.status_code, str(sorted({**answer.headers, "date": "", "content-length": ""}.items())))
            for answer in answers
        }
        assert told == {(403, next(iter(told))[1])}
        assert all("is not on your table" in answer.json()["detail"] for answer in answers)


def test_the_positive_that_was_shown_beside_an_item_is_seen_and_no_other(team: Team) -> None:
    (item,) = team.ask("ann", "pictures")
    beside = item["beside"]
    assert beside["id"] == "p0"
    addresses = [item["content"]["image"], beside["content"]["image"]]
    assert [team.send("ann", "GET", team.server.url + address).status_code for address in addresses] == [200, 200]
    assert team.send("cat", "GET", team.server.url + addresses[1]).status_code == 403
    assert team.send("ann", "GET", "pictures/image?id=p0").status_code == 403
    assert team.send("ann", "GET", team.server.url + addresses[1].replace("p0", "p9")).status_code == 403
    assert team.send("judge", "GET", "pictures/image?id=p9").status_code == 200
    following = team.send("ann", "GET", f"pictures/ahead?id={item['id']}").json()
    for view in filter(None, following.values()):
        assert team.send("ann", "GET", team.server.url + view["content"]["image"]).status_code == 200


@pytest.mark.parametrize(("who", "hidden"), [("judge", True), ("boss", False)])
def test_the_page_says_what_is_hidden(team: Team, visit: Any, who: str, hidden: bool) -> None:
    (item,) = team.ask("ann", "blind")
    team.tell("ann", "blind", item["id"], TRUTH[item["id"]])
    someone = visit(team.server.url)
    someone.page.goto(team.server.url)
    someone.script(
        f"fetch('/api/login', {{method: 'POST', headers: {{Authorization: 'Bearer {team.tokens[who]}'}}}}).then(() => 1)"
    )
    someone.complaints.clear()
    someone.go("progress", "blind")
    someone.until(lambda: "positives found" in someone.page.inner_text("main"), "no figures")
    assert ("hidden while the guarantee is open" in someone.page.inner_text("main")) == hidden
    assert someone.page.get_by_role("button", name="Certificate").count() == (0 if hidden else 1)
    assert someone.complaints == []
