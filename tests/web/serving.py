"""A real server on loopback, for tests of the API, the client and the page."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from activecover import Pool
from activecover.workspace import Workspace
from interrupts import interruptible

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

WORDS = ["free", "prize", "call", "now", "win", "cash", "claim", "text", "urgent", "mobile"]
OTHERS = ["home", "dinner", "later", "see", "you", "train", "meeting", "friend", "love", "tomorrow"]


def scene(rows: int = 120, seed: int = 0) -> tuple[Pool, dict[str, bool]]:
    """Short messages, a quarter of them of the kind that is looked for, and which those are."""
    random = np.random.default_rng(seed)
    positive = random.random(rows) < 0.25
    points = random.normal(size=(rows, 3)) + 2.5 * positive[:, None]
    texts = [" ".join(random.choice(WORDS if yes and place % 2 else OTHERS) for place in range(14)) for yes in positive]
    names = [f"m/{row}" for row in range(rows)]
    pool = Pool(points, ids=names, contents={"text": texts, "size": [str(len(text)) for text in texts]})
    return pool, dict(zip(names, positive.tolist(), strict=True))


def make_home(folder: Path, pool: Pool, name: str = "mail", **settings: Any) -> None:
    with Workspace(folder) as home:
        home.new(name, pool, **{"explore": 8, "seed": 1, **settings}).close()


def let_in(folder: Path, name: str, role: str | None = "owner", **inside: str) -> str:
    """Add a person to a home; their token."""
    with Workspace(folder) as home:
        return home.people.add(name, role, inside)


class ThreadServer:
    """The server in a thread of the tests' own process: real sockets, and no time lost with starting it.

    Without a token, and with nobody in the home who has one, it asks for none, as with ``--no-token``.
    """

    def __init__(
        self,
        folder: Path,
        token: str | None = None,
        lease: float | None = None,
        proxies: Sequence[str] = (),
        **config: Any,
    ) -> None:
        import uvicorn

        from activecover.web._access import Door
        from activecover.web._app import make_app
        from activecover.web.server import PROTOCOL, forwarding, listen

        self.folder = folder
        self._listener = listen("127.0.0.1", 0)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        home = Workspace(folder)
        anyone = token is None and not len(home.people)
        door = Door(None if token is None else home.people.mark(token), time.time() if anyone else None)
        self.app = make_app(home, door=door, hosts={"127.0.0.1"}, lease=lease)
        self.desk = self.app.app.state.desk
        settings = uvicorn.Config(self.app, **{**PROTOCOL, **forwarding(proxies), **config})
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True)
        self._thread.start()
        wait_for(self.url)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(30)
        self._listener.close()


def wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the server does not answer")


class Server:
    """``activecover serve`` in a process of its own; the port stays the same when it is started again.

    Without ``token`` it is started with ``--no-token``; with it, what a person has to type is in :attr:`link`.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        env: dict[str, str] | None = None,
        token: bool = False,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.env = env or {}
        if not token:
            options = (*options, "--no-token")
        self.folder = folder
        self.options = options
        self.before = before  # called in the process before the server begins
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.said: list[str] = []
        self.process = interruptible(
            [
                sys.executable,
                "-m",
                "activecover",
                "serve",
                "--home",
                str(self.folder),
                "--port",
                str(self.port),
                *list(self.options),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=self.before,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **self.env},
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.strip())
            if line.startswith("serving "):
                self.port = int(line.partition("http://")[2].partition(":")[2].partition("/")[0])
                break
        else:
            raise AssertionError(self.process.stderr.read() if self.process.stderr else "no server")
        wait_for(self.url)
        self.link = ""
        if "--no-token" not in self.options and "--name" not in self.options:
            line = self.process.stdout.readline().strip()
            self.said.append(line)
            self.link = line.rpartition(" ")[2]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def stop(self) -> int:
        """End it as Ctrl-C does; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.last = self.process.communicate(timeout=60)
        return self.process.returncode
