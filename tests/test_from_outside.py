"""What once got through, tried again as its finders did: by commands, requests, and files on the disk.

Nothing here needs to know how the package is made inside, so that the same tests fail on versions before the mending.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import re
import resource
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interrupts import interruptible

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("fastapi", reason="fastapi is not installed")

ROOT = Path(__file__).resolve().parents[1]
PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
ROWS = 60


def run(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "activecover", *words, "--home", str(home)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def table(path: Path, text: str = "minutes of meeting {}") -> Path:
    """Sixty items, every seventh of them close together."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "x", "y", "text", "picture"])
        for row in range(ROWS):
            writer.writerow([f"m{row}", row % 7, row * 5 % 11 + 20 * (row % 7 > 0), text.format(row), PNG])
    return path


def is_positive(item: str) -> bool:
    return int(item[1:]) % 7 == 0


def begin(home: Path, file: Path, name: str = "mail", *more: str) -> None:
    options = ["--pool", str(file), "--id-col", "id", "--embed", "columns:x,y", "--explore", "0", "--known", "m0"]
    done = run("new", name, *options, "--learner", "explore-commit", *more, home=home)
    assert done.returncode == 0, done.stderr


def let_in(home: Path, name: str, role: str) -> dict[str, str]:
    done = run("people", "add", name, "--role", role, home=home)
    assert done.returncode == 0, done.stderr
    return {"Authorization": f"Bearer {done.stdout.split()[-1]}"}


class Served:
    """``activecover serve`` on a home, and how its user signs in, where that is asked for."""

    def __init__(self, home: Path, *options: str, before: Callable[[], None] | None = None) -> None:
        command = [sys.executable, "-m", "activecover", "serve", "--home", str(home), "--port", "0", *options]
        self.process = interruptible(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=before,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        self.said: list[str] = []
        self.url = ""
        for line in self.process.stdout:
            self.said.append(line)
            if "serving " in line:
                self.url = re.search(r"http://[\d.]+:\d+", line)[0]
                break
        threading.Thread(target=lambda: self.said.extend(self.process.stdout), daemon=True).start()
        deadline = time.monotonic() + 60
        while not self._answers():
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)
        token = re.search(r"\?token=(\S+)", "".join(self.said))
        self.owner = {"Authorization": f"Bearer {token[1]}"} if token else {}

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def send(self, who: dict[str, str], method: str, path: str, body: Any = None, **more: Any) -> Any:
        address = f"{self.url}/api/{path}"
        return httpx.request(
            method, address, headers=who, timeout=60, **({} if body is None else {"json": body}), **more
        )

    def upload(self, name: str, data: bytes, seconds: float = 60) -> Any:
        headers = {**self.owner, "Content-Type": "application/octet-stream"}
        params = {"name": name}
        return httpx.post(f"{self.url}/api/uploads", params=params, content=data, headers=headers, timeout=seconds)

    def stop(self) -> str:
        """End it; what it wrote to its error stream."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.communicate()[1]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    running: list[Served] = []

    def start(home: Path, *options: str, **more: Any) -> Served:
        running.append(Served(home, *options, **more))
        return running[-1]

    yield start
    for one in running:
        one.stop()


# -- strangers, and other users of the machine -------------------------------------------------------------


def test_on_loopback_nobody_is_an_owner_without_a_token(home: Path, tmp_path: Path, serve: Any) -> None:
    begin(home, table(tmp_path / "a.csv"))
    server = serve(home)
    assert server.send({}, "GET", "campaigns").status_code == 401
    assert server.send({}, "DELETE", "campaigns/mail?confirm=mail").status_code == 401
    assert server.send(server.owner, "GET", "campaigns").status_code == 200


def test_a_home_is_private_whatever_the_umask(home: Path, tmp_path: Path, serve: Any) -> None:
    before = os.umask(0o022)
    try:
        begin(home, table(tmp_path / "a.csv"))
        let_in(home, "ann", "annotator")
        serve(home).upload("a.csv", b"x,y\n1,2\n")
    finally:
        os.umask(before)
    shared = [path.name for path in [home, *home.rglob("*")] if path.lstat().st_mode & 0o077]
    assert shared == []


def test_half_requests_keep_nobody_waiting(home: Path, tmp_path: Path, serve: Any) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))  # noqa: E731
    begin(home, table(tmp_path / "a.csv"))
    server = serve(home, before=few)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    held = []
    try:
        for _ in range(1100):
            held.append(socket.socket())
            held[-1].setblocking(False)
            held[-1].connect_ex(("127.0.0.1", server.port))
        for one in held:
            try:
                one.send(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            except OSError:
                continue
        started = time.monotonic()
        assert httpx.get(f"{server.url}/health", timeout=10).status_code == 200
        assert time.monotonic() - started < 2
    finally:
        for one in held:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))


def test_wrong_tokens_lock_nobody_out(home: Path, serve: Any) -> None:
    ann = let_in(home, "ann", "annotator")
    server = serve(home)
    for number in range(15):
        assert server.send({"Authorization": f"Bearer stale{number}"}, "GET", "me").status_code in (401, 429)
    assert server.send(ann, "GET", "me").status_code == 200


def test_an_invented_address_does_not_make_guessing_free(home: Path, serve: Any) -> None:
    let_in(home, "ann", "annotator")
    server = serve(home)
    codes = [
        server.send({"Authorization": "Bearer no", "X-Forwarded-For": f"10.0.0.{number}"}, "GET", "me").status_code
        for number in range(20)
    ]
    assert 429 in codes


def test_who_removes_the_last_person_does_not_make_everyone_an_owner(home: Path, serve: Any) -> None:
    ann = let_in(home, "ann", "owner")
    server = serve(home)
    assert server.send(ann, "GET", "campaigns").status_code == 200
    assert run("people", "remove", "ann", home=home).returncode == 0
    assert [server.send(who, "GET", "campaigns").status_code for who in ({}, ann)] == [401, 401]


def test_an_odd_host_is_no_error_of_the_server(home: Path, serve: Any) -> None:
    server = serve(home)
    for host in (b"[::1", b"["):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as one:
            one.sendall(b"GET /api/me HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
            assert one.recv(1 << 16).split()[1] in (b"400", b"421")
    assert "Traceback" not in server.stop()


def test_a_damaged_list_of_people_is_one_line_and_lets_nobody_in(home: Path, serve: Any) -> None:
    ann = let_in(home, "ann", "annotator")
    server = serve(home)
    (home / "people.json").write_text("{")
    assert server.send(ann, "GET", "me").status_code in (200, 503)
    assert server.send({}, "GET", "me").status_code in (401, 503)
    assert "Traceback" not in server.stop()


def test_the_unit_for_systemd_puts_no_secret_into_a_command_line() -> None:
    unit = (ROOT / "deploy" / "activecover.service").read_text(encoding="utf-8")
    (command,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    assert not re.search("STORE|TOKEN|--token |--store ", command)


def test_who_signed_out_is_out_and_the_cookie_was_no_token(home: Path, serve: Any) -> None:
    ann = let_in(home, "ann", "annotator")
    server = serve(home)
    answer = server.send(ann, "POST", "login")
    ((name, session),) = answer.cookies.items()
    cookie = {"Cookie": f"{name}={session}"}
    assert session not in ann["Authorization"]
    assert server.send(cookie, "GET", "me").status_code == 200
    assert server.send(cookie, "POST", "logout").status_code == 200
    assert server.send(cookie, "GET", "me").status_code == 401


ADDING = """
import sys
from activecover.workspace import Workspace
home = Workspace(sys.argv[1])
people = getattr(home, "people", None)
if people is None:
    from activecover.workspace import People
    people = People(home.folder)
for number in range(20):
    people.add(f"{sys.argv[2]}-{number}", "annotator")
"""


def test_people_who_are_added_at_the_same_time_are_all_there(home: Path) -> None:
    let_in(home, "first", "owner")
    command = [sys.executable, "-c", ADDING, str(home)]
    adding = [subprocess.Popen([*command, str(worker)], stderr=subprocess.DEVNULL) for worker in range(6)]
    assert [process.wait(300) for process in adding] == [0] * 6
    done = run("people", "list", "--json", home=home)
    assert len(json.loads(done.stdout)) == 121


# -- people who label ----------------------------------------------------------------------------------------


class Team:
    """Two annotators and an adjudicator, on a certified campaign and on one with two labels for each item."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        file = table(folder / "a.csv")
        begin(self.home, file, "blind", "--certify", "0.9@0.9")
        begin(self.home, file, "pair", "--overlap", "2")
        begin(self.home, file)
        roles = {"ann": "annotator", "cat": "annotator", "judge": "adjudicator"}
        self.people = {name: let_in(self.home, name, role) for name, role in roles.items()}
        self.server = Served(self.home)

    def send(self, who: str, method: str, path: str, body: Any = None) -> Any:
        return self.server.send(self.people[who], method, f"campaigns/{path}", body)

    def ask(self, who: str, name: str, k: int = 1) -> list[str]:
        return [item["id"] for item in self.send(who, "POST", f"{name}/ask", {"k": k}).json()["items"]]

    def tell(self, who: str, name: str, item: str, label: bool, **more: Any) -> Any:
        return self.send(who, "POST", f"{name}/tell", {"ids": item, "labels": label, **more})

    def both(self, ann: bool, cat: bool) -> tuple[str, Any]:
        """An item that both have answered, and what cat was told."""
        (item,) = self.ask("ann", "pair")
        assert self.tell("ann", "pair", item, ann).status_code == 200
        while item not in self.ask("cat", "pair", 20):
            self.tell("cat", "pair", self.ask("cat", "pair")[0], False)
        return item, self.tell("cat", "pair", item, cat).json()["counts"]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    made = Team(tmp_path_factory.mktemp("team"))
    yield made
    made.server.stop()


@pytest.mark.parametrize("what", ["assess", "certificate"])
def test_an_adjudicator_cannot_count_the_control_rows(team: Team, what: str) -> None:
    said = set()
    for _ in range(8):
        said.add(tuple(re.findall(r"[^{}]*control[^}]*", team.send("judge", "GET", f"blind/{what}").text)))
        (item,) = team.ask("ann", "blind")
        assert team.tell("ann", "blind", item, is_positive(item)).status_code == 200
    assert len(said) == 1


def test_in_double_labelling_counts_are_the_same_whether_people_agree(team: Team) -> None:
    def by_one(before: Any, after: Any) -> dict[str, int]:
        return {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}

    changes = []
    for ann in (True, False):
        before = team.both(False, False)[1]
        changes.append(by_one(before, team.both(ann, True)[1]))
    assert {name for change in changes for name in change} <= {"positive", "negative", "leased", "skipped", "unsure"}
    assert changes[0].get("positive") == changes[1].get("positive") == 1


def test_annotators_do_not_overturn_an_adjudication(team: Team) -> None:
    item, _ = team.both(True, False)
    assert team.send("judge", "POST", "pair/adjudicate", {"id": item, "label": True}).status_code == 200
    team.tell("ann", "pair", item, False, change=True)
    team.send("ann", "POST", "pair/undo", {})
    team.send("cat", "POST", "pair/undo", {})
    assert dict(team.send("judge", "GET", "pair/labels").json()["labels"]).get(item) is True


def test_an_annotator_cannot_ask_for_pictures_to_learn_which_items_are_positive(team: Team) -> None:
    """Of what somebody else has labelled."""
    items = team.ask("cat", "mail", 30)
    for item in items:
        assert team.tell("cat", "mail", item, is_positive(item)).status_code == 200
    told = {
        positive: {
            team.send("ann", "GET", f"mail/image?id={item}&column={column}").status_code
            for item in items if is_positive(item) == positive for column in ("picture", "image")
        }
        for positive in (True, False)
    }  # fmt: skip
    assert told[True] == told[False] == {403}


# -- files, damage, and what is to be forgotten ------------------------------------------------------------


def contents(server: Served, name: str) -> dict[str, Any]:
    found = {}
    for row in range(ROWS):
        answer = server.send(server.owner, "GET", f"campaigns/{name}/item?row={row}")
        if answer.status_code == 200:
            found[answer.json()["id"]] = answer.json()["content"]["text"]
    return found


def test_files_with_other_contents_are_other_pools(home: Path, tmp_path: Path, serve: Any) -> None:
    begin(home, table(tmp_path / "f1.csv", "first {}"), "a")
    begin(home, table(tmp_path / "f2.csv", "second {}"), "b")
    begin(home, table(tmp_path / "f3.csv", "second {}"), "c")
    assert run("withdraw", "b", "m3", home=home).returncode == 0
    server = serve(home)
    assert contents(server, "a") == {f"m{row}": f"first {row}" for row in range(ROWS)}
    assert contents(server, "c") == {f"m{row}": f"second {row}" for row in range(ROWS)}
    assert contents(server, "b").get("m3") is None


def test_an_upload_of_a_campaign_that_forgets_is_not_left(home: Path, tmp_path: Path, serve: Any) -> None:
    server = serve(home)
    upload = server.upload("a.csv", table(tmp_path / "a.csv").read_bytes()).json()["upload"]
    body = {
        "name": "one", "upload": upload, "id_column": "id", "columns": ["x", "y"], "forget_negatives": True,
        "learner": "explore-commit", "explore": 0, "known": ["m0"],
    }  # fmt: skip
    assert server.send(server.owner, "POST", "campaigns", body).status_code == 201
    assert [path for path in (home / ".uploads").rglob("*") if path.is_file()] == []
    for _ in range(25):
        (item,) = server.send(server.owner, "POST", "campaigns/one/ask", {}).json()["items"]
        told = {"ids": item["id"], "labels": is_positive(item["id"])}
        assert server.send(server.owner, "POST", "campaigns/one/tell", told).status_code == 200
    server.stop()
    (home / ".uploads").mkdir(exist_ok=True)
    left = home / ".uploads" / f"{'0' * 32}.csv"
    left.write_bytes((tmp_path / "a.csv").read_bytes())
    assert run("privacy-check", "one", home=home).returncode == 1
    # The next server erases what nobody can be using.
    serve(home)
    assert not left.exists()


def test_a_label_that_was_changed_in_the_database_is_never_used(home: Path, tmp_path: Path) -> None:
    begin(home, table(tmp_path / "a.csv"))
    answers = [f"m{row}=no" for row in range(1, 10) if row % 7]
    assert run("label", "mail", *answers, home=home).returncode == 0
    with sqlite3.connect(home / "store.sqlite") as store:
        changed = """UPDATE events SET body = replace(body, '"label":0', '"label":1') WHERE body LIKE '%"told"%"m4"%'"""
        other = changed.replace('"label":', '"label": ')
        assert store.execute(changed).rowcount + store.execute(other).rowcount > 0
    for command in (["status", "mail"], ["export", "mail", str(tmp_path / "out.csv")], ["next", "mail"]):
        done = run(*command, home=home)
        assert done.returncode != 0, command
        assert len(done.stderr.strip().splitlines()) == 1


def test_an_export_has_no_formula(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(table(file).read_text().replace("m4,", "@SUM(A1),"))
    begin(home, file)
    assert run("label", "mail", "@SUM(A1)=no", "--by", "=1+1", "--note", "+1", home=home).returncode == 0
    assert run("export", "mail", str(tmp_path / "out.csv"), home=home).returncode == 0
    cells = [cell for row in csv.reader((tmp_path / "out.csv").open(newline="")) for cell in row]
    assert {"'@SUM(A1)", "'=1+1", "'+1"} <= set(cells)
    assert not [cell for cell in cells if cell[:1] in tuple("=@+\t")]


def parquet_of_6_gigabytes() -> bytes:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    same = arrow.DictionaryArray.from_arrays(arrow.array(np.zeros(6600, np.int32)), arrow.array(["x" * (1 << 20)]))
    made = io.BytesIO()
    parquet.write_table(arrow.table({"id": np.arange(6600), "text": same}), made, compression="zstd")
    return made.getvalue()


def csv_of_many_columns() -> bytes:
    names = b",".join(b"c%d" % at for at in range(200_000))
    return names + b"\n" + b",".join(b"1" for _ in range(200_000)) + b"\n"


@pytest.mark.parametrize(("name", "make"), [("a.parquet", parquet_of_6_gigabytes), ("a.csv", csv_of_many_columns)])
def test_what_a_small_file_becomes_does_not_bring_down_the_server(home: Path, serve: Any, name: str, make: Any) -> None:
    server = serve(home)
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    used = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmSize:"))
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (used + (1 << 30),) * 2)
    sent = server.upload(name, make())
    started = time.monotonic()
    if sent.status_code == 201:
        sent = server.send(server.owner, "POST", "campaigns", {"name": "bomb", "upload": sent.json()["upload"]})
    assert sent.status_code in (413, 422)
    assert time.monotonic() - started < 5


def test_a_picture_of_169_megapixels_is_not_decoded(home: Path, tmp_path: Path, serve: Any) -> None:
    side = 13_000

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packed = zlib.compressobj(9)
    rows = b"".join(packed.compress(bytes(3 * side + 1)) for _ in range(side)) + packed.flush()
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    text = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    file = tmp_path / "a.csv"
    file.write_text(table(file).read_text().replace(PNG, text, 1))
    begin(home, file)
    server = serve(home)
    started = time.monotonic()
    answer = server.send(server.owner, "GET", "campaigns/mail/image?id=m0&column=picture")
    assert (answer.status_code, time.monotonic() - started < 5) == (422, True)


def test_an_upload_without_room_on_the_disk_is_said_as_that(home: Path, serve: Any) -> None:
    little = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))  # noqa: E731
    server = serve(home, before=little)
    assert server.upload("a.csv", b"1,2\n" * (5 << 18)).status_code == 507
    assert "Traceback" not in server.stop()
