"""Random requests to twin campaigns that differ only in what must stay unknown: every answer is the same to the byte."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from serving import httpx  # noqa: F401 - skips where the server's packages are missing
from twins import Twin, bytes_of, dictate, make_pool, register

from activecover.stopping import ControlQuantile

IDS = [make_pool().id(row) for row in range(60)]
STRANGE = ["m/999", "", "known", "m/0\u0000", "m/59"]
LOOKS = (
    "status", "progress", "assess", "certificate", "trace", "records", "labels", "history", "history?newest=true",
    "history?search=control", "history?search=m/1&limit=5", "history?limit=3&offset=7", "items", "items?state=negative",
    "items?search=message", "items?search=1&limit=4&offset=2", "conflicts", "agreement", "suspicious", "map",
    "map/states", "export", "export?format=jsonl&which=all", "export?which=positive", "archive", "/api/campaigns",
    "/api/me", "/metrics", "/api/rules", "forgetting", "privacy",
)  # fmt: skip
#: Of each kind; all of them are tried with the full counts.
DEFAULT, FULL = 12, 200
SIZE = 15


class Walk:
    """One random sequence of requests; what is asked next depends on answers that were the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seen = list(IDS[:4])

    def id(self) -> str:
        if self.random.random() < 0.1:
            return self.random.choice(STRANGE)
        return self.random.choice(self.seen if self.random.random() < 0.75 else IDS)

    def label(self) -> bool:
        return self.random.random() < 0.3

    def of_annotator(self) -> tuple[Any, ...]:
        """Method, path, body."""
        draw, name = self.random, self.id()
        quoted = name.replace("/", "%2F").replace("\0", "%00")
        return draw.choice([
            *[("POST", "ask", {"k": draw.choice([1, 1, 1, 2, 5])})] * 4,
            *[("POST", "answer", {"id": name, "label": self.label(), "k": draw.choice([1, 1, 3])})] * 8,
            ("POST", "tell", {"ids": name, "labels": self.label()}),
            ("POST", "tell", {"ids": name, "labels": self.label(), "change": True, "note": "again"}),
            ("POST", "tell", {"ids": [name, self.id()], "labels": [self.label(), False]}),
            ("POST", "skip", {"ids": name}), ("POST", "unsure", {"ids": [name]}),
            ("POST", "release", {"ids": name}), ("POST", "release", {}),
            ("POST", "undo", {"count": draw.choice([1, 1, 2])}),
            ("GET", f"ahead?id={quoted}", None),
            ("GET", f"image?id={quoted}", None), ("GET", f"image?id={quoted}&column=text", None),
            ("GET", f"frame?id={quoted}", None),
            ("GET", draw.choice(LOOKS), None),
        ])  # fmt: skip

    def of_adjudicator(self) -> tuple[Any, ...]:
        draw, name = self.random, self.id()
        quoted = name.replace("/", "%2F").replace("\0", "%00")
        return draw.choice([
            *[("GET", look, None) for look in LOOKS],
            *[("GET", f"{part}?id={quoted}", None) for part in ("item", "image", "frame", "ahead", "history")],
            ("POST", "adjudicate", {"id": name, "label": self.label()}),
            ("POST", "confirm", {"ids": name}), ("POST", "ungroup", {"ids": name}),
            ("POST", "undo", {"count": draw.choice([1, 2])}), ("POST", "undo", {"by": "ann"}),
            ("POST", "tell", {"ids": name, "labels": self.label(), "by": "ann", "change": True}),
            ("POST", "tell", {"ids": self.seen[-12:], "labels": [False] * len(self.seen[-12:])}),
            ("POST", "ask", {"k": 12}), ("POST", "release", {}),
        ])  # fmt: skip

    def note(self, answer: Any) -> None:
        """Ids that were shown may be asked about."""
        if answer.status_code == 200 and b'"stopped"' in answer.content and b'"view"' in answer.content:
            ids = [view["id"] for view in answer.json()["items"]]
            self.seen += [name for name in ids if name not in self.seen]


def same(one: Any, other: Any, what: Any) -> None:
    assert bytes_of(one) == bytes_of(other), what


def settings_of(draw: random.Random) -> dict[str, Any]:
    """The campaigns that sequences are tried on."""
    return draw.choice([{}, {"overlap": 2}, {"forget_negatives": True}, {"duplicates": True}, {"budget": 40}])


def check_control_rows(folder: Path, seed: int) -> None:
    """One sequence, on twins whose samples have the same size and other rows."""
    walk = Walk(seed)
    how = settings_of(walk.random)
    rule = ControlQuantile(0.9, 0.9, sample=SIZE)
    samples = [walk.random.sample(IDS, SIZE) for _ in range(2)]
    twins = [Twin(folder / str(place), sample, certify=rule, **how) for place, sample in enumerate(samples)]
    done: list[Any] = []
    try:
        if "forget_negatives" in how:
            # Nothing is forgotten before there are more negatives than can be undone.
            for _ in range(28):
                answers = [twin.send("ann", "POST", "ask", {}) for twin in twins]
                walk.note(answers[0])
                body = {"ids": walk.seen[-1], "labels": False}
                same(*(twin.send("ann", "POST", "tell", body) for twin in twins), body)
        for _ in range(30):
            who = walk.random.choice(["ann", "ann", "cat", "judge", "judge", "ray"])
            request = walk.of_adjudicator() if who in ("judge", "ray") else walk.of_annotator()
            again = request[0] == "GET" and walk.random.random() < 0.5
            done.append((who, *request))
            answers = [twin.send(who, *request, again=again) for twin in twins]
            assert all(twin.campaign.guarantee.blind for twin in twins), "what is certified is no secret any more"
            same(*answers, done)
            walk.note(answers[0])
        for look in LOOKS:
            same(*(twin.send("judge", "GET", look) for twin in twins), [*done, look])
    finally:
        for twin in twins:
            twin.close()


def check_answers_of_others(folder: Path, seed: int) -> None:
    """One sequence, on twins in which another person answers otherwise; only what ann gets is compared."""
    walk, flips = Walk(seed), random.Random(-1 - seed)
    twins = [Twin(folder / str(place), overlap=2) for place in range(2)]
    theirs: list[str] = []
    done: list[Any] = []
    try:
        for _ in range(50):
            who = walk.random.choice(["ann", "ann", "cat", "cat", "judge"])
            if who == "ann":
                request = walk.of_annotator()
                if walk.random.random() < 0.4:
                    request = ("POST", "answer", {"id": walk.seen[-1], "label": walk.label()})
                done.append((who, *request))
                answers = [twin.send(who, *request) for twin in twins]
                same(*answers, done)
                walk.note(answers[0])
            elif who == "cat":
                name = theirs.pop(0) if theirs else ""
                answers = [twin.send(who, "POST", "ask", {"k": 3}) for twin in twins]
                theirs = [view["id"] for view in answers[0].json()["items"]]
                assert theirs == [view["id"] for view in answers[1].json()["items"]]
                if name:
                    labels = [walk.label(), flips.random() < 0.5]
                    done.append((who, name, labels))
                    for twin, label in zip(twins, labels, strict=True):
                        twin.send(who, "POST", "tell", {"ids": name, "labels": label, "change": True})
            else:
                name = walk.id()
                done.append((who, name))
                label = walk.label()
                for twin in twins:
                    twin.send(who, "POST", "adjudicate", {"id": name, "label": label})
    finally:
        for twin in twins:
            twin.close()


@pytest.fixture(autouse=True)
def dictated(monkeypatch: pytest.MonkeyPatch) -> None:
    register()
    dictate(monkeypatch)


@pytest.mark.parametrize("seed", range(DEFAULT))
def test_requests_do_not_tell_control_rows_from_others(tmp_path: Path, seed: int) -> None:
    check_control_rows(tmp_path, seed)


@pytest.mark.parametrize("seed", range(DEFAULT))
def test_requests_do_not_tell_what_others_answered(tmp_path: Path, seed: int) -> None:
    check_answers_of_others(tmp_path, seed)


@pytest.mark.deep
def test_many_more_sequences_of_requests(tmp_path: Path) -> None:
    for seed in range(DEFAULT, FULL):
        check_control_rows(tmp_path / f"control-{seed}", seed)
        check_answers_of_others(tmp_path / f"others-{seed}", seed)


def test_the_twins_do_differ(tmp_path: Path) -> None:
    """Else the sequences would prove nothing: an owner's figures tell the twins apart, and the learner comes by rows."""
    rule = ControlQuantile(0.9, 0.9, sample=SIZE)
    twins = [Twin(tmp_path / str(place), IDS[place::4][:SIZE], certify=rule) for place in range(2)]
    try:
        for twin in twins:
            for _ in range(12):
                (item,) = twin.campaign.ask(by="ann")
                twin.campaign.tell(item.id, int(item.id[2:]) % 3 == 0, by="ann")
        kinds = [[event["event"] for event in twin.campaign.history()] for twin in twins]
        assert all("reached" in found for found in kinds)
        assert kinds[0] != kinds[1]
        drawn = [
            {event["id"] for event in twin.campaign.history() if event.get("source") == "control"} for twin in twins
        ]
        assert not drawn[0] & drawn[1]
        assert twins[0].campaign.labels() == twins[1].campaign.labels()
    finally:
        for twin in twins:
            twin.close()
