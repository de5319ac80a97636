"""Coming in: links, sessions, the last one out, guessing, proxies, and what other users of the machine can see."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from serving import Server, ThreadServer, httpx, let_in, make_home, scene

from activecover import InputError
from activecover.cli import main
from activecover.web import Client
from activecover.workspace import Workspace

POOL, TRUTH = scene()
PATH = "/api/campaigns"


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def start():
    """Starts servers, in threads or in processes, and ends them."""
    running = []

    def begin(kind, folder, *given, **named):
        running.append(kind(folder, *given, **named))
        return running[-1]

    yield begin
    for server in running:
        server.stop()


# -- a token on this machine, too ---------------------------------------------------------------------------


def test_a_server_on_this_machine_alone_wants_a_token_and_prints_a_link_that_signs_in(tmp_path, start, visit):
    make_home(tmp_path, POOL)
    running = start(Server, tmp_path, token=True)
    assert httpx.get(running.url + PATH).status_code == 401
    assert running.said[0].startswith("serving ")
    assert running.said[1].startswith("sign in with this link")
    assert running.link.startswith(f"{running.url}/?token=")
    someone = visit(running.url)
    someone.page.goto(f"{running.link}#/label/mail")
    someone.shown()
    assert "token" not in someone.page.url
    assert someone.complaints == []
    with Client(running.link) as client:
        assert client.names() == ["mail"]
    # It is nowhere but on the terminal: not in a file, not in a command line.
    token = running.link.partition("token=")[2]
    assert all(token.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert token not in " ".join(psutil.Process(running.process.pid).cmdline())
    running.stop()
    again = start(Server, tmp_path, token=True)
    assert token not in again.link
    assert httpx.get(again.url + PATH, headers=bearer(token)).status_code == 401


def test_an_old_link_says_so_and_links_sign_in_with_the_server_s_own_token_alone(tmp_path, start, visit):
    make_home(tmp_path, POOL)
    mine = let_in(tmp_path, "ann")
    running = start(ThreadServer, tmp_path, token="the token of this start")
    for token in ("another token", mine):
        answer = httpx.get(running.url, params={"token": token})
        assert answer.status_code == 303
        assert "set-cookie" not in answer.headers
    someone = visit(running.url)
    someone.page.goto(f"{running.url}/?token=another")
    someone.page.wait_for_selector("dialog[open]")
    assert someone.page.locator("#token-words").inner_text().startswith("That link is no longer good.")
    answer = httpx.get(running.url, params={"token": "the token of this start"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert httpx.get(f"{running.url}/api/me", cookies=dict(answer.cookies)).json()["role"] == "owner"


def test_without_a_token_everyone_is_an_owner_until_somebody_is_let_in(tmp_path, start):
    make_home(tmp_path, POOL)
    running = start(Server, tmp_path)
    assert httpx.get(f"{running.url}/api/me").json() == {"name": None, "role": "owner", "rights": {}, "session": False}
    let_in(tmp_path, "ann")
    assert httpx.get(running.url + PATH).status_code == 401
    with Workspace(tmp_path) as home:
        home.people.remove("ann")
    assert httpx.get(running.url + PATH).status_code == 401, "the last one out does not open it"
    running.stop()
    assert "every user of this machine is an owner" in "\n".join([*running.said, *running.last])


@pytest.mark.parametrize(
    "options", [["--host", "0.0.0.0"], ["--name", "x.org"], ["--proxy", "127.0.0.1"], ["--token-file", "token"]]
)
def test_no_token_is_refused_where_others_could_come_in(tmp_path, capsys, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    Path("token").write_text("a token of some length\n")
    assert main(["serve", "--home", str(tmp_path / "home"), "--port", "0", "--no-token", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--no-token" in line


def test_no_token_is_refused_where_somebody_has_one(tmp_path, capsys):
    let_in(tmp_path, "ann")
    assert main(["serve", "--home", str(tmp_path), "--port", "0", "--no-token"]) == 2
    assert "some people have a token of their own" in capsys.readouterr().err


# -- the last one out ------------------------------------------------------------------------------------------


def test_removing_the_last_person_closes_a_running_server_and_the_next_one(tmp_path, start):
    make_home(tmp_path, POOL)
    token = let_in(tmp_path, "ann")
    options = ("--name", "labels.example.org")
    running = start(Server, tmp_path, *options, token=True)
    assert httpx.get(running.url + PATH, headers=bearer(token)).status_code == 200
    assert main(["people", "remove", "ann", "--home", str(tmp_path)]) == 0
    for headers in ({}, bearer(token), bearer("x")):
        assert httpx.get(running.url + PATH, headers=headers).status_code == 401
    running.stop()
    again = start(Server, tmp_path, *options, token=True)
    for headers in ({}, bearer(token)):
        assert httpx.get(again.url + PATH, headers=headers).status_code == 401
    assert again.said[0].startswith("nobody may use this server now; let someone in")
    with Workspace(tmp_path) as home:
        assert home.people.all() == []


def test_a_server_for_others_lets_in_a_first_owner(tmp_path, start):
    running = start(Server, tmp_path, "--name", "labels.example.org", token=True)
    words, _, token = running.said[0].rpartition(" ")
    assert words == "token of the owner, shown this once:"
    assert httpx.get(f"{running.url}/api/me", headers=bearer(token)).json()["name"] == "owner"


# -- sessions ---------------------------------------------------------------------------------------------------


def test_signing_out_ends_the_session_on_the_server_and_no_other(tmp_path, start):
    token = let_in(tmp_path, "ann")
    # Two servers on one home, as two processes of one are.
    one, other = start(ThreadServer, tmp_path), start(ThreadServer, tmp_path)

    def sign_in():
        answer = httpx.post(f"{one.url}/api/login", headers=bearer(token))
        (session,) = answer.cookies.values()
        assert token not in answer.headers["set-cookie"]
        return session

    def status(server, session):
        return httpx.get(f"{server.url}/api/me", headers={"Cookie": f"activecover_{server.port}={session}"}).status_code

    first, second = sign_in(), sign_in()
    assert first != second
    for server in (one, other):
        assert [status(server, session) for session in (first, second)] == [200, 200]
    answer = httpx.post(f"{other.url}/api/logout", headers={"Cookie": f"activecover_{other.port}={first}"})
    assert "activecover_" in answer.headers["set-cookie"]
    for server in (one, other):
        assert [status(server, session) for session in (first, second)] == [401, 200]
    with Workspace(tmp_path) as home:
        token = home.people.rotate("ann")
    assert [status(server, second) for server in (one, other)] == [401, 401]
    third = sign_in()
    with Workspace(tmp_path) as home:
        home.people.remove("ann")
    assert [status(server, third) for server in (one, other)] == [401, 401]
    # A session is no token, and a token is no session.
    assert httpx.get(f"{one.url}/api/me", headers=bearer(third)).status_code == 401
    assert status(one, token) == 401


def test_a_session_that_is_over_is_told_from_a_wrong_token_and_from_none(tmp_path, start):
    let_in(tmp_path, "ann")
    running = start(ThreadServer, tmp_path)
    cookie = {"Cookie": f"activecover_{running.port}=old"}
    said = [httpx.get(f"{running.url}/api/me", headers=headers) for headers in ({}, bearer("no"), cookie)]
    assert [answer.status_code for answer in said] == [401] * 3
    assert [answer.json()["detail"] for answer in said] == [
        "this server wants a token: sign in, or send Authorization: Bearer …",
        "this token is not valid",
        "your session has ended: sign in again with your token",
    ]
    assert "Max-Age=0" in said[2].headers["set-cookie"]


def test_the_client_tells_a_wrong_token_from_what_is_not_allowed(tmp_path, start, monkeypatch):
    monkeypatch.delenv("ACTIVECOVER_TOKEN", raising=False)
    make_home(tmp_path, POOL)
    token = let_in(tmp_path, "ann", "annotator")
    running = start(ThreadServer, tmp_path)
    with Client(running.url) as client, pytest.raises(InputError, match=r"wants a token: give token=…, or set"):
        client.names()
    with Client(running.url, token="no") as client:
        for _ in range(14):
            with pytest.raises(InputError, match="that token is wrong"):
                client.names()
    monkeypatch.setenv("ACTIVECOVER_TOKEN", token)
    with Client(running.url) as client, pytest.raises(InputError, match="this is not for an annotator"):
        client.campaign("mail").status()


# -- guessing -----------------------------------------------------------------------------------------------------


def test_wrong_tokens_lock_nobody_out_not_even_from_the_same_address(tmp_path, start):
    make_home(tmp_path, POOL)
    token = let_in(tmp_path, "ann")
    running = start(ThreadServer, tmp_path)
    with httpx.Client(base_url=running.url) as http:
        answers = [http.get(PATH, headers=bearer(f"guess {number}")).status_code for number in range(30)]
        assert answers == [401] * 10 + [429] * 20
        session = http.post("/api/login", headers=bearer(token))
        assert session.status_code == 200
        http.cookies = session.cookies
        assert http.get(PATH).status_code == 200
        assert http.get(PATH, headers=bearer(token)).status_code == 200
        assert int(http.get(PATH, headers=bearer("no")).headers["Retry-After"]) == 60


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
def test_forwarded_addresses_count_for_nothing_unless_the_proxy_was_named(tmp_path, start, header):
    let_in(tmp_path, "ann")
    running = start(ThreadServer, tmp_path)
    with httpx.Client(base_url=running.url) as http:
        codes = []
        for number in range(14):
            address = f"10.0.0.{number}"
            forwarded = {header: f"for={address}" if header == "Forwarded" else address, "X-Forwarded-Proto": "https"}
            codes.append(http.get(PATH, headers={**bearer("no"), **forwarded}).status_code)
    assert codes == [401] * 10 + [429] * 4


def test_a_named_proxy_tells_visitors_apart_and_makes_cookies_secure(tmp_path, start):
    token = let_in(tmp_path, "ann")
    running = start(ThreadServer, tmp_path, proxies=["127.0.0.1"])
    plain = start(ThreadServer, tmp_path)
    with httpx.Client(base_url=running.url) as http:
        for _ in range(14):
            http.get(PATH, headers={**bearer("no"), "X-Forwarded-For": "10.0.0.1"})
        codes = [
            http.get(PATH, headers={**bearer("no"), "X-Forwarded-For": address}).status_code
            # What a visitor invents stands before what the proxy has added.
            for address in ("10.0.0.2", "10.0.0.9, 10.0.0.1", "10.0.0.1")
        ]
    assert codes == [401, 429, 429]
    secure = [
        "Secure"
        in httpx.post(f"{server.url}/api/login", headers={**bearer(token), "X-Forwarded-Proto": "https"}).headers[
            "set-cookie"
        ]
        for server in (running, plain)
    ]
    assert secure == [True, False]


def test_a_proxy_is_an_address(tmp_path, capsys):
    assert main(["serve", "--home", str(tmp_path), "--port", "0", "--proxy", "*"]) == 2
    assert capsys.readouterr().err.strip() == "activecover: --proxy '*': give the proxy's address, as in 127.0.0.1"


# -- damage -------------------------------------------------------------------------------------------------------


def test_people_that_cannot_be_read_are_one_line_and_let_nobody_in(tmp_path, start):
    make_home(tmp_path, POOL)
    token = let_in(tmp_path, "ann")
    running = start(ThreadServer, tmp_path)
    assert httpx.get(running.url + PATH, headers=bearer(token)).status_code == 200
    with Workspace(tmp_path) as home, home.store.engine().begin() as connection:
        connection.exec_driver_sql("UPDATE people SET role = 'emperor'")
    answer = httpx.get(running.url + PATH, headers=bearer(token))
    assert answer.status_code == 503
    assert "unknown role 'emperor'" in answer.json()["detail"]
    with Workspace(tmp_path) as home, home.store.engine().begin() as connection:
        connection.exec_driver_sql("DROP TABLE rights")
    answer = httpx.get(running.url + PATH, headers=bearer(token))
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert "Traceback" not in answer.text


def test_a_damaged_list_of_an_earlier_version_put_beside_a_running_server_harms_nobody(tmp_path, start):
    make_home(tmp_path, POOL)
    token = let_in(tmp_path, "ann")
    running = start(ThreadServer, tmp_path)
    (tmp_path / "people.json").write_text("{")
    assert httpx.get(running.url + PATH, headers=bearer(token)).status_code == 200
    assert httpx.get(running.url + PATH, headers=bearer("no")).status_code == 401


def test_a_list_of_an_earlier_version_goes_on_working(tmp_path, start):
    make_home(tmp_path, POOL)
    mark = hashlib.sha256(b"an old token").hexdigest()
    (tmp_path / "people.json").write_text(json.dumps({mark: {"name": "ann", "role": "adjudicator"}}))
    running = start(Server, tmp_path, token=True)
    me = httpx.get(f"{running.url}/api/me", headers=bearer("an old token")).json()
    assert (me["name"], me["role"]) == ("ann", "adjudicator")


# -- what other users of the machine can see ---------------------------------------------------------------------


def test_no_secret_is_in_a_command_line_with_several_workers(postgres, tmp_path, start):
    store, token = postgres(), "a token of some length"
    (tmp_path / "token").write_text(token + "\n")
    options = ("--workers", "2", "--token-file", str(tmp_path / "token"), "--name", "127.0.0.1")
    running = start(Server, tmp_path / "home", *options, token=True, env={"ACTIVECOVER_STORE": store})
    assert httpx.get(f"{running.url}/api/me", headers=bearer(token)).json()["role"] == "owner"
    parent = psutil.Process(running.process.pid)
    lines = [" ".join(process.cmdline()) for process in (parent, *parent.children(recursive=True))]
    assert len(lines) >= 3
    assert not [line for line in lines if token in line or store in line]
    assert not (tmp_path / "home" / "store.sqlite").exists()


def test_a_token_on_the_command_line_is_warned_of_and_one_in_the_environment_is_not_handed_on(tmp_path):
    secret = "a token of some length"
    code = (
        "import os, sys; from activecover.cli import main; "
        "import activecover.web.server as server; "
        "server.serve = lambda home, **given: print(given['token'], os.environ.get('ACTIVECOVER_TOKEN')); "
        "sys.exit(main(['serve', '--home', sys.argv[1], *sys.argv[2:]]))"
    )

    def run(*words, **env):
        command = [sys.executable, "-c", code, str(tmp_path), *words]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, check=True)

    given = run("--token", secret)
    assert "every user of this machine can see --token: use --token-file or ACTIVECOVER_TOKEN" in given.stderr
    given = run(ACTIVECOVER_TOKEN=secret)
    assert (given.stdout.strip(), given.stderr) == (f"{secret} None", "")
    assert "may be guessed" in run(ACTIVECOVER_TOKEN="short").stderr


@pytest.mark.parametrize("text", ["", "two\nlines", None], ids=["empty", "two lines", "missing"])
def test_a_file_that_holds_no_token_is_one_line(tmp_path, capsys, text):
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    assert main(["serve", "--home", str(tmp_path / "home"), "--port", "0", "--token-file", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"activecover: {file}: ")


def test_opening_the_page_puts_the_link_in_a_private_file_and_in_no_command_line(tmp_path, start):
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}.new\ncat "${{1#file://}}" >> {seen}.new\nmv {seen}.new {seen}\n')
    browser.chmod(0o700)
    running = start(Server, tmp_path / "home", "--open", token=True, env={"BROWSER": f"{browser} %s"})
    deadline = time.monotonic() + 60
    while not seen.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    command, page = seen.read_text().split("\n", 1)
    token = running.link.partition("token=")[2]
    assert token not in command
    assert f"?token={token}" in page
    assert (tmp_path / "home" / ".sign-in.html").stat().st_mode & 0o077 == 0
    running.stop()
    assert not (tmp_path / "home" / ".sign-in.html").exists()


def test_a_unit_for_systemd_has_no_secret_in_its_command():
    unit = (Path(__file__).resolve().parents[2] / "deploy" / "activecover.service").read_text()
    (command,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    assert "STORE" not in command
    assert "TOKEN" not in command
    assert "EnvironmentFile=" in unit
