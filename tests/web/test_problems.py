"""What goes wrong comes as one line, with a number to look up in the log, whatever it was."""

import contextlib
import logging
import os
import resource
import socket
import subprocess

import pytest
from serving import Server, ThreadServer, httpx, make_home, scene

POOL, _ = scene()
SECRET = "what an item says"
ODD_HOSTS = [
    b"[::1", b"::1]", b"[", b"[]", b"[::1]x", b"[::1]:x", b"", b":", b"@", b"a b", b"a/b", b"a?b", b"localhost:999999",
    b"\xff\xfe", b"\xc3\xa9.example", b"[v1.x]", b"[127.0.0.1]", b"127.0.0.1, evil", b"x" * 5000,
]  # fmt: skip


def ask_raw(port, request):
    """The first line and the rest of an answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as one:
        one.sendall(request)
        answer = b""
        while part := one.recv(1 << 16):
            answer += part
    first, _, rest = answer.partition(b"\r\n")
    return first.decode(), rest.decode()


def logged(caplog):
    """What the server said in its log."""
    return [record.getMessage() for record in caplog.records if record.name.startswith(("activecover", "uvicorn"))]


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    make_home(folder, POOL)
    running = Server(folder)
    yield running
    running.stop()


def test_odd_hosts_and_origins_are_refused_in_one_line(tmp_path, caplog):
    make_home(tmp_path, POOL)
    running = ThreadServer(tmp_path)
    try:
        for host in ODD_HOSTS:
            request = b"GET /api/campaigns HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"
            first, rest = ask_raw(running.port, request)
            assert first.split()[1] in ("400", "421"), (host, first)
            assert "Traceback" not in rest
        own = f"127.0.0.1:{running.port}".encode()
        for origin in (b"http://[::1", b"http://[", b"null", b"http://", b"\xff", b"http://evil@" + own + b"/x"):
            head = b"POST /api/campaigns/mail/ask HTTP/1.1\r\nHost: " + own + b"\r\nOrigin: " + origin
            first, rest = ask_raw(running.port, head + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            assert first.split()[1] == "403", (origin, first)
        assert httpx.get(f"{running.url}/health").status_code == 200
    finally:
        running.stop()
    assert logged(caplog) == []


def test_an_unexpected_error_is_a_number_and_a_place_in_the_log(tmp_path, caplog, capfd):
    make_home(tmp_path, POOL)
    running = ThreadServer(tmp_path)

    @running.app.app.get("/surprise")
    def surprise():
        raise RuntimeError(SECRET)

    try:
        with caplog.at_level(logging.INFO):
            answer = httpx.get(f"{running.url}/surprise")
            again = httpx.get(f"{running.url}/surprise", headers={"X-Request-ID": "mine-1"})
    finally:
        running.stop()
    for one, name in ((answer, answer.headers["x-request-id"]), (again, "mine-1")):
        assert (one.status_code, one.headers["content-type"]) == (500, "application/problem+json")
        assert one.json()["request"] == name
        assert name in one.json()["detail"]
        assert SECRET not in one.text
    assert len(answer.json()["request"]) == 16
    line, other = logged(caplog)
    assert line.startswith(f"request {answer.json()['request']}: RuntimeError at {__name__}:")
    assert other.startswith("request mine-1: RuntimeError at ")
    # uvicorn has a handler of its own, which writes to the error stream.
    for everything in (caplog.text, capfd.readouterr().err):
        assert SECRET not in everything
        assert "Traceback" not in everything


def test_the_traceback_is_logged_where_it_was_asked_for(tmp_path, caplog):
    make_home(tmp_path, POOL)
    running = ThreadServer(tmp_path)

    @running.app.app.get("/surprise")
    def surprise():
        raise RuntimeError(SECRET)

    try:
        with caplog.at_level(logging.DEBUG, "activecover.web"):
            assert SECRET not in httpx.get(f"{running.url}/surprise").text
    finally:
        running.stop()
    assert SECRET in caplog.text


@pytest.fixture(params=["small files only", "small disk"])
def little_room(request, tmp_path):
    """A folder, and what to do in a process so that there is no room in it for five megabytes."""
    if request.param == "small files only":
        yield tmp_path, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
        return
    if os.geteuid() != 0:
        pytest.skip("only root can make a small disk")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a disk")
    yield place, None
    # Lazily, as the pool of a campaign may still be mapped.
    subprocess.run(["umount", "-l", place], check=True)


def test_an_upload_for_which_the_disk_has_no_room_is_refused_and_leaves_nothing(little_room):
    folder, before = little_room
    make_home(folder, POOL)
    running = Server(folder, before=before) if before else ThreadServer(folder)

    def in_parts():
        for _ in range(40):
            yield b"1,2\n" * (1 << 15)

    try:
        with httpx.Client(base_url=running.url, timeout=60) as http:
            for content in (in_parts(), b"1,2\n" * (5 << 18)):
                answer = http.post("/api/uploads", params={"name": "a.csv"}, content=content)
                assert answer.status_code == 507, answer.text
                assert answer.headers["content-type"] == "application/problem+json"
                assert "no room left on its disk" in answer.json()["detail"]
                assert "\n" not in answer.json()["detail"]
            assert not [path for path in (folder / ".uploads").rglob("*") if path.is_file()]
            assert http.post("/api/uploads", params={"name": "a.csv"}, content=b"x,y\n1,2\n").status_code == 201
            assert http.post("/api/campaigns/mail/ask", json={}).status_code == 200
    finally:
        running.stop()


@pytest.mark.parametrize("depth", [900, 100_000, 5_000_000])
def test_json_that_is_nested_deeply_is_refused(real, depth):
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth):
        for path, field in (("tell", "labels"), ("answer", "label"), ("skip", "ids")):
            body = f'{{"ids": ["m/1"], "id": "m/1", "{field}": {text}}}' if len(text) < 1 << 21 else text
            answer = httpx.post(
                f"{real.url}/api/campaigns/mail/{path}",
                content=body,
                headers={"Content-Type": "application/json"},
                timeout=30,
            )
            assert answer.status_code in (400, 413, 422), answer.text
            assert len(answer.json()["detail"]) < 1000
    assert httpx.get(f"{real.url}/health").status_code == 200


def test_bodies_that_are_read_at_once_have_a_limit_together(real):
    """Each is small enough, and all of them would fill the memory."""
    head = (
        b"POST /api/campaigns/mail/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % (15 << 20)
    )
    held = []
    try:
        for _ in range(6):
            held.append(socket.create_connection(("127.0.0.1", real.port), timeout=30))
            with contextlib.suppress(OSError):  # refused meanwhile
                held[-1].sendall(head + bytes((15 << 20) - 1))
        states = [is_refused(one) for one in held]
        assert states[:3] == [False] * 3
        assert states.count(True) >= 2
        assert httpx.get(f"{real.url}/health").status_code == 200
    finally:
        for one in held:
            one.close()


def is_refused(connection):
    """Whether the server has answered 503, or closed the connection; else it waits for the rest of the body."""
    connection.settimeout(1)
    try:
        answer = connection.recv(1 << 16)
    except TimeoutError:
        return False
    except OSError:
        return True
    assert not answer or b" 503 " in answer
    return True
