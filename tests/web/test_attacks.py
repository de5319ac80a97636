"""Attacks, each tried and refused: docs/serve.md lists them."""

import contextlib
import csv
import io
import json
import zipfile
from urllib.parse import quote

import numpy as np
import pytest
from serving import Server, ThreadServer, httpx, let_in, make_home, scene

from activecover.web import Client
from activecover.workspace import Workspace

POOL, TRUTH = scene()
SQL = "'; DROP TABLE events; DELETE FROM campaigns WHERE 'a'='a"
SCRIPT = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
ROLES = ("annotator", "adjudicator", "owner")


class Team:
    """A server with people of every role, and what each sends."""

    def __init__(self, folder):
        make_home(folder, POOL)
        make_home(folder, POOL, "pair", overlap=2, explore=0, known=["m/0"])
        everyone = [*zip(ROLES, ROLES, strict=True), ("ann", "annotator")]
        self.tokens = {name: let_in(folder, name, role) for name, role in everyone}
        self.server = ThreadServer(folder)
        self.folder = folder
        self.http = {
            name: httpx.Client(base_url=self.server.url, timeout=60, headers={"Authorization": f"Bearer {token}"})
            for name, token in self.tokens.items()
        }

    def post(self, who, path, **body):
        return self.http[who].post(f"/api/campaigns/{path}", json=body)

    def close(self):
        for http in self.http.values():
            http.close()
        self.server.stop()


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    team = Team(tmp_path_factory.mktemp("home"))
    yield team
    team.close()


def refused(answer, status, words):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]


# -- role escalation, another's items, another campaign's ids ------------------------------------------


def test_annotators_act_for_themselves_alone(team):
    item = team.post("ann", "mail/ask").json()["items"][0]["id"]
    refused(team.post("annotator", "mail/ask", by="ann"), 403, "you are 'annotator': you cannot act for 'ann'")
    for what in ("skip", "unsure", "release"):
        refused(team.post("annotator", f"mail/{what}", ids=[item]), 403, f"id '{item}' is not on your table")
    refused(team.post("annotator", "mail/tell", ids=[item], labels=[True]), 403, "is not on your table")
    refused(team.post("annotator", "mail/answer", id=item, label=True), 403, "is not on your table")
    refused(team.post("annotator", "mail/undo", by="ann"), 403, "you cannot act for 'ann'")
    for part in ("image", "frame", "ahead"):
        refused(
            team.http["annotator"].get(f"/api/campaigns/mail/{part}", params={"id": item}), 403, "not on your table"
        )
    assert team.post("ann", "mail/answer", id=item, label=TRUTH[item]).status_code == 200
    assert team.post("annotator", "mail/undo").json()["ids"] == []
    assert team.post("ann", "mail/undo").json()["ids"] == [item]


def test_annotators_see_no_reason(team):
    """Whatever an item was asked for, nothing of its view tells."""
    seen = []
    for _ in range(14):
        (item,) = team.post("ann", "mail/ask").json()["items"]
        ahead = team.http["ann"].get("/api/campaigns/mail/ahead", params={"id": item["id"]}).json()
        for view in (item, *filter(None, ahead.values())):
            assert [view[name] for name in ("source", "distance", "nearest", "reason")] == [None] * 4
        seen.append(item["id"])
        team.post("ann", "mail/answer", id=item["id"], label=TRUTH[item["id"]])
    with Workspace(team.folder) as home, home.open("mail") as campaign:
        sources = {event["source"] for event in campaign.history() if event["event"] == "asked" and event["id"] in seen}
    assert sources == {"explore", "learner"}, "both kinds were asked for"


def test_ids_of_another_campaign_mean_nothing(team, tmp_path):
    table = tmp_path / "other.csv"
    table.write_text("id,x\nsecret-1,1\nsecret-2,2\nsecret-3,9\n")
    with Client(team.server.url, token=team.tokens["owner"]) as client:
        client.new("other", table, id_column="id", explore=0, known=["secret-1"])
    for what, body in (("tell", {"ids": ["secret-2"], "labels": [True]}), ("skip", {"ids": ["secret-2"]})):
        refused(team.post("owner", f"mail/{what}", **body), 422, "id 'secret-2' is not in the pool of 120 rows")
    for part in ("item", "image", "frame", "ahead"):
        answer = team.http["owner"].get(f"/api/campaigns/mail/{part}", params={"id": "secret-2"})
        refused(answer, 422, "id 'secret-2' is not in the pool of 120 rows")


# -- tokens ----------------------------------------------------------------------------------------------


def test_tokens_are_not_kept_and_guessing_is_slowed(tmp_path):
    make_home(tmp_path, POOL)
    token = let_in(tmp_path, "ann")
    assert all(token.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    running = ThreadServer(tmp_path)
    good = {"Authorization": f"Bearer {token}"}
    try:
        with httpx.Client(base_url=running.url) as http:
            assert http.get("/api/campaigns", headers=good).status_code == 200
            for number in range(12):
                wrong = (
                    {"Authorization": f"Bearer {token[:-1]}{number}x"}
                    if number % 2
                    else {"Cookie": f"activecover_{running.port}=no"}
                )
                status, words = (401, "this token is not valid" if number % 2 else "your session has ended")
                if number >= 10:
                    status, words = 429, "too many wrong tokens"
                refused(http.get("/api/campaigns", headers=wrong), status, words)
            assert http.get("/api/campaigns", headers=good).status_code == 200
    finally:
        running.stop()


def test_someone_who_is_removed_is_out_at_once(team):
    token = let_in(team.folder, "temp")
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{team.server.url}/api/me", headers=headers).json() == {
        "name": "temp", "role": "owner", "rights": {}, "session": False,
    }  # fmt: skip
    with Workspace(team.folder) as home:
        home.people.remove("temp")
    assert httpx.get(f"{team.server.url}/api/me", headers=headers).status_code == 401


def test_the_cookie_is_of_no_use_to_scripts_and_other_sites(team):
    answer = httpx.post(f"{team.server.url}/api/login", headers={"Authorization": f"Bearer {team.tokens['ann']}"})
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie.replace("strict", "Strict") for part in ("HttpOnly", "SameSite=Strict", "Path=/"))
    with httpx.Client(base_url=team.server.url, cookies=answer.cookies) as http:
        assert http.get("/api/me").json()["name"] == "ann"
        # What a page of another site can have a browser send, cookie and all.
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Content-Type": "text/plain"},
            {"Content-Type": "application/x-www-form-urlencoded"},
            {"Content-Type": "multipart/form-data; boundary=x"},
        ):
            assert http.post("/api/campaigns/mail/undo", content=b"{}", headers=headers).status_code in (403, 415), (
                headers
            )
        assert http.get("/api/me", headers={"Host": "evil.example"}).status_code == 421


# -- files ------------------------------------------------------------------------------------------------


def upload(http, name, data):
    return http.post("/api/uploads", params={"name": name}, content=data, headers={"Content-Type": "x/y"})


def bomb(kind):
    """A few hundred kilobytes that unpack to gigabytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        block = bytes(1 << 20)
        with packed.open("X.npy" if kind == "npz" else "a.png", "w", force_zip64=True) as inside:
            if kind == "npz":
                header = {"descr": "<f8", "fortran_order": False, "shape": (300 << 17, 1)}
                np.lib.format.write_array_header_1_0(inside, header)
            for _ in range(300):
                inside.write(block)
    return made.getvalue()


@pytest.mark.parametrize("kind", ["zip", "npz"])
def test_bombs_are_refused_before_they_are_unpacked(team, kind):
    kept = upload(team.http["owner"], f"x.{kind}", bomb(kind)).json()["upload"]
    refused(team.http["owner"].get(f"/api/uploads/{kept}/preview"), 413, "unpacks to 314,572,")
    refused(team.http["owner"].post("/api/campaigns", json={"name": "b", "upload": kept}), 413, "unpacks to 314,572,")
    if kind == "zip":
        refused(team.http["owner"].post("/api/restore", json={"upload": kept}), 422, "not an archive of a campaign")


def test_an_image_of_a_billion_pixels_is_refused(team):
    import struct
    import zlib

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for name in ("a.png", "b.png"):
            packed.writestr(name, png)
    kept = upload(team.http["owner"], "x.zip", made.getvalue()).json()["upload"]
    refused(
        team.http["owner"].post("/api/campaigns", json={"name": "b", "upload": kept}), 422, "is not a readable image"
    )


def test_too_large_a_file_is_cut_off_while_it_comes(tmp_path):
    make_home(tmp_path, POOL)
    running = Server(tmp_path, "--upload-limit", "1")

    def endless():
        for _ in range(40):
            yield bytes(1 << 17)

    try:
        with httpx.Client(base_url=running.url, timeout=60) as http:
            refused(upload(http, "a.csv", bytes((1 << 20) + 1)), 413, "more than 1 MB")
            # The answer may come while the file is still being sent; then the connection is cut.
            with contextlib.suppress(httpx.TransportError):
                refused(upload(http, "a.csv", endless()), 413, "more than 1 MB")
            assert upload(http, "a.csv", b"x,y\n1,2\n").status_code == 201
        left = [path.stat().st_size for path in (tmp_path / ".uploads").iterdir()]
        assert left == [8], "nothing of the others may be left"
    finally:
        running.stop()


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "..\\..\\x", "....//x", "%2e%2e%2fx", "a\0.csv", "store.sqlite"]
)
def test_no_path_reaches_the_file_system(team, name):
    owner = team.http["owner"]
    answers = [
        owner.get(f"/api/uploads/{name.replace(chr(0), '%00')}/preview"),
        owner.get(f"/static/{name.replace(chr(0), '%00')}"),
        owner.post("/api/campaigns", json={"name": "p", "upload": name}),
        owner.post("/api/restore", json={"upload": name}),
        upload(owner, name.replace("\0", "").removesuffix(".csv"), b"x"),
    ]
    assert {answer.status_code for answer in answers} <= {404, 422}
    made = owner.post(
        "/api/campaigns", json={"name": name, "upload": upload(owner, "a.csv", b"x,y\n1,2\n2,1\n").json()["upload"]}
    )
    if made.status_code == 201:
        owner.delete(f"/api/campaigns/{name}", params={"confirm": name})
    inside = {path.name for path in team.folder.iterdir() if not path.name.startswith("store.sqlite")}
    assert inside == {"keys", "pools", ".uploads"}
    assert not (team.folder.parent / "x").exists()


def test_an_archive_writes_only_where_it_may(team):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr("../../evil.txt", "x")
        manifest = {"format": 1, "name": "../evil", "about": {"pool": "../../evil"}, "hashes": {"../../evil.txt": "0"}}
        packed.writestr("manifest.json", json.dumps(manifest))
    kept = upload(team.http["owner"], "a.zip", made.getvalue()).json()["upload"]
    answer = team.http["owner"].post("/api/restore", json={"upload": kept, "name": "evil"})
    assert answer.status_code in (422, 503), answer.text
    assert "evil" not in team.http["owner"].get("/api/campaigns").text
    assert not list(team.folder.parent.rglob("evil*"))


# -- contents ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "embed", ["images:/etc/passwd", "images@1:/nowhere", "sentence:somebody/a-model", "sentence@1:/etc"]
)
def test_no_model_of_the_server_or_of_a_hub_is_run_for_a_request(team, embed):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("a.png", b"x")
    owner = team.http["owner"]
    kept = owner.post("/api/uploads", params={"name": "a.zip"}, content=packed.getvalue()).json()["upload"]
    answer = owner.post("/api/campaigns", json={"name": "x", "upload": kept, "embed": embed})
    refused(answer, 422, "begin such a campaign on the server itself")


def test_scripts_in_text_names_and_templates_do_not_run(team, visit, tmp_path):
    """In every place where contents can come from, on every view of the page."""
    rows = [["id", SCRIPT, "note"], *([f"{SCRIPT}{row}", str(900 + row * row), SCRIPT] for row in range(12))]
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    owner = team.http["owner"]
    name = f"x {SCRIPT}".replace("/", "")
    kept = upload(owner, f"{SCRIPT}.csv", text.getvalue().encode()).json()["upload"]
    body = {"name": name, "upload": kept, "id_column": "id", "columns": [SCRIPT], "explore": 0, "known": [f"{SCRIPT}0"]}
    made = owner.post("/api/campaigns", json=body)
    assert made.status_code == 201, made.text
    with Client(team.server.url, token=team.tokens["owner"]) as client:
        remote = client.campaign(name)
        remote.tell(f"{SCRIPT}1", True, by=SCRIPT[:60], note=SCRIPT)
        for template in (None, f"<p>{{{{ note }}}}</p>{SCRIPT}<form action=/api/logout method=post></form>"):
            put = owner.put(f"/api/campaigns/{quote(name, safe='')}/template", json={"template": template})
            assert put.status_code == 200
            look_everywhere(visit, team, name, framed=template is not None)


def look_everywhere(visit, team, name, *, framed):
    someone = visit(team.server.url)
    someone.sign_in(team.tokens["owner"])
    for view in ("label", "progress", "map", "history", "campaigns"):
        someone.go(view, quote(name, safe=""))
        someone.until(lambda: someone.page.locator("main .sheet").count(), f"{view}: nothing shows")
        someone.page.wait_for_timeout(300)
        assert someone.page.title() != "broken"
        assert someone.script("document.querySelectorAll('main script, main img[src=x]').length") == 0
        if framed and view == "label":
            for frame in someone.until(lambda: templates(someone.page), "no frame of the template"):
                assert "<script>" in frame.locator("p").inner_text()
                assert frame.title() == ""
    alarms = [line for line in someone.complaints if "sandbox" not in line and "Content Security Policy" not in line]
    assert alarms == []


def templates(page):
    return [frame for frame in page.frames if "/frame?" in frame.url]


def test_sql_in_every_field_is_text(team):
    owner = team.http["owner"]
    path = "/api/campaigns/pair"
    assert team.post("owner", "pair/tell", ids=["m/5"], labels=[True], by=SQL, note=SQL).status_code == 200
    for method, part, given in (
        ("GET", "history", {"params": {"search": SQL}}),
        ("GET", "items", {"params": {"search": SQL}}),
        ("GET", "history", {"params": {"id": SQL}}),
        ("GET", "item", {"params": {"id": SQL}}),
        ("POST", "ask", {"json": {"by": SQL}}),
        ("POST", "undo", {"json": {"by": SQL + "x"}}),
        ("POST", "tell", {"json": {"ids": [SQL], "labels": [True]}}),
        ("POST", "skip", {"json": {"ids": SQL}}),
        ("POST", "release", {"json": {"by": SQL}, "headers": {"Idempotency-Key": SQL.replace(" ", "_")}}),
    ):
        assert owner.request(method, f"{path}/{part}", **given).status_code in (200, 422), part
    assert owner.get(f"/api/campaigns/{SQL}/status").status_code == 404
    assert owner.delete("/api/campaigns/x", params={"confirm": SQL}).status_code == 422
    (found,) = owner.get(f"{path}/items", params={"search": SQL}).json()["items"]
    assert (found["id"], found["note"]) == ("m/5", SQL)
    assert {"mail", "pair"} <= {one["name"] for one in owner.get("/api/campaigns").json()["campaigns"]}


def test_logs_carry_no_contents_and_no_tokens(tmp_path):
    make_home(tmp_path, POOL)
    token = let_in(tmp_path, "ann")
    running = Server(tmp_path, token=True)
    try:
        with httpx.Client(base_url=running.url, headers={"Authorization": f"Bearer {token}"}) as http:
            item = http.post("/api/campaigns/mail/ask", json={}).json()["items"][0]
            http.post(
                "/api/campaigns/mail/tell", json={"ids": [item["id"]], "labels": ["a secret"], "note": "a secret"}
            )
            http.post("/api/campaigns/mail/tell", json={"ids": [item["id"]], "labels": [False], "note": "a secret"})
            http.get("/api/campaigns/a secret/status")
            http.get("/api/campaigns/mail/items", params={"search": "a secret"})
            http.post("/api/campaigns/mail/ask", content=b"{a secret")
    finally:
        assert running.stop() == 0
    logged = "".join(running.last)
    for private in ("a secret", token, item["content"]["text"], item["id"]):
        assert private not in logged
