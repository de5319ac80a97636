"""Clients that never finish what they send: others are answered meanwhile, and they are let go."""

import contextlib
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from half_open import BEGUN
from serving import Server, ThreadServer, httpx, make_home, scene

from activecover.web._connections import PatientProtocol

POOL, _ = scene()
HALF_OPEN = 2000


def with_few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))


def connect(port, begun):
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
    made.sendall(begun)
    return made


def is_closed(connection):
    connection.settimeout(0)
    try:
        return connection.recv(1 << 16) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def wait_until_closed(connection, seconds=20):
    deadline = time.monotonic() + seconds
    while not is_closed(connection):
        assert time.monotonic() < deadline, f"still open after {seconds} s"
        time.sleep(0.05)


def test_2000_half_open_connections_keep_nobody_waiting(tmp_path):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < HALF_OPEN + 500:
        pytest.skip(f"a process may have {most} open files here, the test needs {HALF_OPEN + 500}")
    make_home(tmp_path, POOL)
    running = Server(tmp_path, before=with_few_files)
    attacker = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("half_open.py"), str(running.port), str(HALF_OPEN)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        took = []
        end = time.monotonic() + 8
        while time.monotonic() < end:
            started = time.monotonic()
            assert httpx.get(f"{running.url}/health", timeout=30).status_code == 200
            took.append(time.monotonic() - started)
            time.sleep(0.05)
        said, _ = attacker.communicate("stop\n", timeout=120)
        opened, refused, left = map(int, said.split())
        assert (opened, refused) == (HALF_OPEN, 0)
        assert max(took) < 2, f"the slowest of {len(took)} ordinary requests took {max(took):.1f} s"
        assert left == 0, f"{left} half-open connections are open for good"
    finally:
        attacker.kill()
        attacker.communicate()
        code = running.stop()
    assert code == 0
    assert "Traceback" not in running.last[1]
    assert "out of system resource" not in running.last[1]


class Hasty(PatientProtocol):
    head_seconds, beat, beats_unread = 0.5, 0.2, 2


@pytest.fixture
def hasty(tmp_path):
    make_home(tmp_path, POOL)
    running = ThreadServer(tmp_path, http=Hasty)
    yield running
    running.stop()


@pytest.mark.parametrize("begun", BEGUN)
def test_an_unfinished_request_is_ended(hasty, begun):
    with connect(hasty.port, BEGUN[begun]) as one:
        wait_until_closed(one)


def test_a_body_that_arrives_a_byte_at_a_time_is_ended(hasty):
    with connect(hasty.port, BEGUN["body"]) as one:
        deadline = time.monotonic() + 20
        with contextlib.suppress(OSError):
            while time.monotonic() < deadline and not is_closed(one):
                one.send(b" ")
                time.sleep(0.05)
        assert time.monotonic() < deadline


def test_an_answer_that_nobody_reads_is_ended(hasty):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", hasty.port))
        request = b"GET /static/app.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        one.setblocking(False)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                one.send(request)
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        assert time.monotonic() < deadline, "it was never closed"


def test_a_slow_but_steady_upload_goes_through(hasty):
    def slowly():
        for _ in range(20):
            yield b"1,2\n" * 250
            time.sleep(0.1)

    answer = httpx.post(f"{hasty.url}/api/uploads", params={"name": "a.csv"}, content=slowly(), timeout=60)
    assert answer.status_code == 201, answer.text
    assert answer.json()["bytes"] == 20_000


def test_a_kept_connection_serves_one_request_after_another(hasty):
    with httpx.Client(base_url=hasty.url) as http:
        for _ in range(6):
            assert http.get("/health").status_code == 200
            time.sleep(0.2)
