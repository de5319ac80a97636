"""The HTTP API against a real server: once means once, problems are clear, strangers stay outside."""

import csv
import io
import os
import socket
import sys
import threading
import time
import zipfile

import numpy as np
import pytest
from serving import Server, ThreadServer, httpx, make_home, scene

from activecover.cli import main
from activecover.web import Client
from activecover.web.server import listen
from activecover.workspace import Workspace

TRUTH = scene()[1]
#: How often the server is killed under load.
KILLS = 100 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 2


@pytest.fixture
def http(server):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def post(http, path, body, key=None):
    headers = {} if key is None else {"Idempotency-Key": key}
    return http.post(f"/api/campaigns/mail/{path}", json=body, headers=headers)


def test_health_metrics_and_the_document(http):
    assert http.get("/health").json()["status"] == "ok"
    http.get("/api/campaigns/mail/status")
    text = http.get("/metrics").text
    assert 'activecover_requests_total{method="GET",route="/health",status="200"}' in text
    assert 'activecover_items{campaign="mail",state="rows"} 120' in text
    document = http.get("/api/openapi.json").json()
    assert {"/api/campaigns/{name}/ask", "/api/campaigns/{name}/tell", "/health"} <= set(document["paths"])


def test_a_request_bears_a_name(http):
    assert http.get("/health", headers={"X-Request-ID": "abc-1"}).headers["X-Request-ID"] == "abc-1"
    made = http.get("/health", headers={"X-Request-ID": "<script>"}).headers["X-Request-ID"]
    assert len(made) == 16
    assert made.isalnum()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "line"),
    [
        ("GET", "nowhere/status", None, 404, "there is no campaign 'nowhere' (there are: mail, pair)"),
        ("POST", "mail/tell", {"ids": ["zz"], "labels": [True]}, 422, "id 'zz' is not in the pool of 120 rows"),
        ("POST", "mail/tell", {"ids": ["m/1"], "labels": ["perhaps"]}, 422, "label 'perhaps' is neither yes nor no"),
        ("POST", "mail/tell", {"ids": ["m/1"], "labels": []}, 422, "0 labels for 1 ids"),
        ("POST", "mail/ask", {"k": 0}, 422, "ask for a number of items from 1, not 0"),
        ("POST", "mail/ask", {"by": ""}, 422, "by '': give a name"),
        ("POST", "mail/ask", {"many": 1}, 422, "many: Extra inputs are not permitted"),
        ("POST", "mail/undo", {"count": 0}, 422, "undo 0: give a whole number from 1"),
        ("POST", "mail/adjudicate", {"id": "m/1", "label": True}, 422, "is not in conflict"),
        ("GET", "mail/item?row=120", None, 422, "give an id, or a row below 120"),
        ("GET", "mail/image?id=m/1", None, 422, "has no image"),
        ("DELETE", "mail?confirm=no", None, 422, "confirm it by its name"),
    ],
)
def test_problems_carry_the_line_of_the_command_line(http, method, path, body, status, line):
    answer = http.request(method, f"/api/campaigns/{path}", json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert line in problem["detail"]
    assert "\n" not in problem["detail"]
    assert problem["status"] == status
    assert problem["request"] == answer.headers["X-Request-ID"]


def test_asking_again_gives_the_same_and_answering_gives_the_next(http):
    first = post(http, "ask", {"by": "ann"}).json()["items"][0]
    assert post(http, "ask", {"by": "ann"}).json()["items"][0]["id"] == first["id"]
    ahead = http.get("/api/campaigns/mail/ahead", params={"id": first["id"]}).json()
    answer = post(http, "answer", {"id": first["id"], "label": TRUTH[first["id"]], "by": "ann"}).json()
    assert answer["items"][0]["id"] != first["id"]
    if ahead:  # nobody else was heard of lately: then what was foreseen is what came
        assert ahead["yes" if TRUTH[first["id"]] else "no"]["id"] == answer["items"][0]["id"]
    assert answer["counts"]["positive"] + answer["counts"]["negative"] >= 1
    post(http, "release", {"by": "ann"})


def test_a_repeated_request_counts_once(http):
    item = post(http, "ask", {"by": "once"}).json()["items"][0]["id"]
    for again in (False, True):
        done = post(http, "tell", {"ids": [item], "labels": [True], "by": "once"}, "key-1").json()
        assert done["repeated"] is again
    for again in (False, True):
        done = post(http, "undo", {"by": "once"}, "key-2").json()
        assert done == {**done, "ids": [item], "repeated": again}
    other = post(http, "tell", {"ids": ["m/77"], "labels": [True], "by": "once"}, "key-1")
    assert other.status_code == 422
    assert "was used for another request" in other.json()["detail"]
    events = http.get("/api/campaigns/mail/history", params={"id": item}).json()["events"]
    assert [event["event"] for event in events if event["by"] == "once"] == ["asked", "told", "undone"]
    post(http, "release", {"by": "once"})


def test_killed_under_load_every_request_counts_once(tmp_path):
    """The client makes a request again under its name until there is an answer, also after a crash."""
    pool, truth = scene(6000, seed=9)
    make_home(tmp_path, pool)
    fresh = Server(tmp_path)
    acknowledged, done = {}, threading.Event()

    def work(who):
        with Client(fresh.url, retries=10_000, timeout=30) as client:
            campaign = client.campaign("mail")
            while not done.is_set() and (items := campaign.ask(by=who)):
                campaign.tell(items[0].id, truth[items[0].id], by=who)
                acknowledged[items[0].id] = who

    def until(count):
        deadline = time.monotonic() + 300
        while len(acknowledged) < count and time.monotonic() < deadline:
            time.sleep(0.02)

    workers = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(4)]
    try:
        with httpx.Client(base_url=fresh.url, timeout=60) as http:
            post(http, "tell", {"ids": ["m/0", "m/1"], "labels": [truth["m/0"], truth["m/1"]], "by": "boss"})
            (undone,) = post(http, "undo", {"by": "boss"}, "undo").json()["ids"]
        for worker in workers:
            worker.start()
        for _ in range(KILLS):
            until(len(acknowledged) + 6)
            fresh.kill()
            fresh.start()
        until(len(acknowledged) + 6)
        done.set()
        for worker in workers:
            worker.join()
        assert len(acknowledged) >= 6 * (KILLS + 1)
        with httpx.Client(base_url=fresh.url, timeout=60) as http:
            again = post(http, "undo", {"by": "boss"}, "undo").json()
            assert again["repeated"]
            assert again["ids"] == [undone]
        # The same folder serves others while the server runs.
        with Workspace(tmp_path) as home, home.open("mail") as campaign:
            told = [event["id"] for event in campaign.history() if event["event"] == "told" and event["by"] != "boss"]
            labels = campaign.labels()
        assert len(told) == len(set(told))
        assert set(acknowledged) <= set(told)
        assert all(labels[name] == truth[name] for name in acknowledged)
        print(f"killed {KILLS} times; {len(acknowledged)} labels acknowledged, each there once")
    finally:
        done.set()
        assert fresh.stop() == 0
    assert "Traceback" not in fresh.last[1]


def test_people_never_get_the_same_item(http):
    taken, lock = [], threading.Lock()

    def work(who):
        for _ in range(4):
            items = post(http, "ask", {"k": 2, "by": who}).json()["items"]
            ids = [item["id"] for item in items]
            with lock:
                taken.extend((item, who) for item in ids)
            post(http, "tell", {"ids": ids, "labels": [TRUTH[item] for item in ids], "by": who})

    workers = [threading.Thread(target=work, args=(f"p{number}",)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(taken) == 32 == len({item for item, _ in taken})


def test_status_is_sent_only_when_something_changed(http):
    first = http.get("/api/campaigns/mail/status")
    tag = {"If-None-Match": first.headers["ETag"]}
    assert first.status_code == 200
    assert http.get("/api/campaigns/mail/status", headers=tag).status_code == 304
    post(http, "ask", {"by": "etag"})
    assert http.get("/api/campaigns/mail/status", headers=tag).status_code == 200
    post(http, "release", {"by": "etag"})


def test_history_and_items_are_searched_and_paged(http):
    post(http, "tell", {"ids": ["m/100"], "labels": [TRUTH["m/100"]], "by": "zoe", "note": "needle"})
    found = http.get("/api/campaigns/mail/items", params={"search": "NEEDLE"}).json()
    assert [item["id"] for item in found["items"]] == ["m/100"]
    whole = http.get("/api/campaigns/mail/history", params={"limit": 1000}).json()
    page = http.get("/api/campaigns/mail/history", params={"limit": 2, "offset": 1}).json()
    assert page["total"] == whole["total"]
    assert page["events"] == whole["events"][1:3]
    newest = http.get("/api/campaigns/mail/history", params={"limit": 1, "newest": True}).json()
    assert newest["events"] == whole["events"][-1:]


def test_conflicts_are_decided_and_agreement_is_said(http):
    path = "/api/campaigns/pair"
    item = http.post(f"{path}/ask", json={"by": "a"}).json()["items"][0]["id"]
    http.post(f"{path}/tell", json={"ids": item, "labels": True, "by": "a"})
    http.post(f"{path}/tell", json={"ids": item, "labels": False, "by": "b"})
    (conflict,) = http.get(f"{path}/conflicts").json()["conflicts"]
    assert conflict["item"]["id"] == item
    assert conflict["opinions"] == {"a": True, "b": False}
    assert http.get(f"{path}/agreement").json()["items"] == 1
    assert http.post(f"{path}/adjudicate", json={"id": item, "label": True, "by": "c"}).status_code == 200
    assert http.get(f"{path}/status").json()["conflicts"] == 0


def test_progress_and_map(http):
    data = http.get("/api/campaigns/mail/progress").json()
    assert data["found"][-1] == data["status"]["positives"]
    assert len(data["labels"]) == len(data["recent"])
    assert {person["who"] for person in data["people"]} >= {"zoe"}
    assert data["bound"] is None or 0 <= data["bound"]["recall_lower"] <= 1
    assert http.get("/api/campaigns/mail/map", params={"by": "magic"}).status_code == 422
    points = http.get("/api/campaigns/mail/map").content
    count = int(np.frombuffer(points[:4], "<u4")[0])
    assert count == 120
    assert len(points) == 4 + 12 * count
    states = http.get("/api/campaigns/mail/map/states").json()
    assert "frontier" in states["states"]
    assert len(states["rows"]) == len(states["x"])
    item = http.get("/api/campaigns/mail/item", params={"row": states["rows"][0]}).json()
    assert item["content"]["text"]


def test_export_holds_what_was_told(http):
    answer = http.get("/api/campaigns/mail/export", params={"format": "csv"})
    assert answer.status_code == 200, answer.text
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    labels = dict(http.get("/api/campaigns/mail/labels").json()["labels"])
    assert {row["id"]: row["label"] in ("1", "True") for row in rows} == labels


def test_an_export_for_spreadsheets_has_no_formulas_and_one_for_programs_has_the_text_itself(http):
    base = "/api/campaigns/mail"
    (item,) = http.post(f"{base}/ask", json={}).json()["items"]
    assert http.post(f"{base}/tell", json={"ids": [item["id"]], "labels": [True], "note": "=1+1"}).status_code == 200
    notes = {}
    for raw in ("false", "true"):
        answer = http.get(f"{base}/export", params={"format": "csv", "raw": raw})
        notes[raw] = {row["note"] for row in csv.DictReader(io.StringIO(answer.text))} - {""}
    assert notes["false"] - notes["true"] == {"'=1+1"}
    assert notes["true"] - notes["false"] == {"=1+1"}
    http.post(f"{base}/undo", json={})


def test_strangers_stay_outside(http, server):
    evil = {"Origin": "http://evil.example"}
    assert http.post("/api/campaigns/mail/ask", json={}, headers=evil).status_code == 403
    assert http.post("/api/campaigns/mail/ask", json={}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    form = http.post("/api/campaigns/mail/ask", content="{}", headers={"Content-Type": "text/plain"})
    assert form.status_code == 415
    assert http.get("/api/campaigns", headers={"Host": "evil.example"}).status_code == 421
    page = http.get("/")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "set-cookie" not in page.headers


def test_too_large_a_body_is_refused_before_it_is_sent(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as raw:
        head = "POST /api/campaigns/mail/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999999999999\r\n\r\n"
        raw.sendall(head.encode())
        assert raw.recv(1000).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("name", ["../../etc/passwd", "x.exe", "noend", "..\\..\\a.sh", "%00.csv.sh"])
def test_uploads_of_other_kinds_are_refused(http, name):
    answer = http.post("/api/uploads", params={"name": name}, content=b"x", headers={"Content-Type": "x/y"})
    assert answer.status_code == 422
    assert "unknown kind of file" in answer.json()["detail"]


@pytest.mark.parametrize("upload", ["..%2F..%2Fstore.sqlite", "0" * 32 + ".csv", "a.csv", "%2e%2e"])
def test_no_path_reaches_the_file_system(http, upload):
    assert http.get(f"/api/uploads/{upload}/preview").status_code == 404
    assert http.get(f"/static/{upload}").status_code == 404
    assert http.get("/static/..%2f_api.py").status_code == 404


def test_a_campaign_from_a_dropped_table_to_its_archive(http, server):
    lines = ["id,weight,doors,note"] + [
        f"c{row},{900 + row},{3 + row % 2},<img src=x onerror=alert(1)>" for row in range(30)
    ]
    kept = http.post("/api/uploads", params={"name": "cars.csv"}, content="\n".join(lines).encode()).json()["upload"]
    seen = http.get(f"/api/uploads/{kept}/preview").json()
    assert seen["rows"] == 30
    assert seen["columns"] == ["id", "weight", "doors", "note"]
    assert seen["id_column"] == "id"
    body = {
        "name": "cars", "upload": kept, "id_column": "id", "columns": ["weight", "doors"], "explore": 0,
        "known": ["c3"], "template": "<b>{{ note }}</b><script>alert(2)</script>",
    }  # fmt: skip
    made = http.post("/api/campaigns", json=body)
    assert made.status_code == 201, made.text
    again = http.post("/api/campaigns", json={**body, "upload": "0" * 32 + ".csv"})
    assert again.status_code == 409
    assert "there is a campaign 'cars' already" in again.json()["detail"]
    item = http.post("/api/campaigns/cars/ask", json={}).json()["items"][0]
    assert item["nearest"] == "c3"
    assert item["beside"]["content"]["note"].startswith("<img")
    frame = http.get(item["view"]["frame"])
    assert "&lt;img src=x" in frame.text
    assert frame.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    archive = http.get("/api/campaigns/cars/archive").content
    assert "manifest.json" in zipfile.ZipFile(io.BytesIO(archive)).namelist()
    assert http.delete("/api/campaigns/cars", params={"confirm": "cars"}).status_code == 200
    assert "cars" not in [one["name"] for one in http.get("/api/campaigns").json()["campaigns"]]
    back = http.post("/api/uploads", params={"name": "a.zip"}, content=archive).json()["upload"]
    taken = http.post("/api/restore", json={"upload": back, "name": "again"}).json()
    assert taken["name"] == "again"
    assert "signed with the key of this home" in taken["signature"]
    assert http.post("/api/campaigns/again/ask", json={}).json()["items"][0]["id"] == item["id"]


def test_a_bad_table_is_named_the_file(http):
    kept = http.post("/api/uploads", params={"name": "x.csv"}, content=b"a,b\n1,2,3\n").json()["upload"]
    answer = http.get(f"/api/uploads/{kept}/preview")
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("the file line 2: 3 values for 2 columns")


def test_a_token_is_asked_for_and_guessing_is_slowed(tmp_path):
    make_home(tmp_path, scene()[0])
    running = ThreadServer(tmp_path, token="a secret")
    try:
        with httpx.Client(base_url=running.url, timeout=60) as http:
            assert http.get("/health").status_code == 200
            assert http.get("/").status_code == 200
            refused = http.get("/api/campaigns")
            assert refused.status_code == 401
            assert refused.headers["WWW-Authenticate"] == "Bearer"
            good = {"Authorization": "Bearer a secret"}
            assert http.get("/api/campaigns", headers=good).status_code == 200
            assert http.get("/metrics").status_code == 401
            wrong = {"Authorization": "Bearer no"}
            for _ in range(10):
                assert http.get("/api/campaigns", headers=wrong).status_code == 401
            pauses = [http.get("/api/campaigns", headers=wrong) for _ in range(3)]
            assert [answer.status_code for answer in pauses] == [429] * 3
            assert [int(answer.headers["Retry-After"]) for answer in pauses] == [1, 2, 4]
            # Nobody is locked out by it, and a missing token is not a wrong one.
            assert http.get("/api/campaigns", headers=good).status_code == 200
            assert http.get("/api/campaigns").status_code == 401
    finally:
        running.stop()


def test_a_port_that_is_taken_is_said_in_one_line(server, tmp_path, capsys):
    assert main(["serve", "--home", str(tmp_path), "--port", str(server.port)]) == 2
    line = f"activecover: port {server.port} of 127.0.0.1 is taken: choose another with --port"
    assert capsys.readouterr().err.splitlines() == [line]


def test_a_missing_extra_is_said_in_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert main(["serve", "--home", str(tmp_path)]) == 2
    line = "activecover: the page and the HTTP API need fastapi: pip install 'activecover[web]'"
    assert capsys.readouterr().err.splitlines() == [line]


def test_small_answers_are_sent_at_once():
    """Asyncio turns off the delay of 40 ms only for sockets that say that they are TCP."""
    with listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
