"""Two servers with twin campaigns that differ in one thing alone, and the same requests to both.

The twins serve the same rows in the same order, whatever is answered: the order of the pool. Chance would choose other
rows as control rows and thereby another order, so here it is dictated: ``dictate`` says which rows of which twin are the
control sample, and a row is asked as a control row when its turn comes. The learner never looks at labels, and leaves
control rows to the sample; once they were asked it comes by them, as any learner does, so that the twins write that
down at different times. All the rest is the real thing: the log, the rules, the bounds, the server.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from activecover import Pool
from activecover.campaign import _mixer
from activecover.errors import InputError
from activecover.learners import LEARNERS, Learner, ranked
from activecover.registry import Entry
from activecover.web._app import make_app
from activecover.workspace import Workspace

PEOPLE = {"ann": "annotator", "cat": "annotator", "ray": "reader", "judge": "adjudicator"}
PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
#: Which ids are the control sample, and which campaign it is, by the seed.
SAMPLES: dict[int, frozenset[str]] = {}
CAMPAIGNS: dict[int, Any] = {}
_seeds = itertools.count(1000)
_TIME = re.compile(rb"\b1[6-9]\d{8}(\.\d+)?\b")
_MARK = re.compile(r'^"[0-9a-f]+-')


class PoolOrder(Learner):
    """Asks in the order of the pool, whatever it is told."""

    def __init__(self, explore: Any = 0) -> None:
        self.explore = explore

    def score(self, state: Any, rows: Any) -> Any:
        return -rows.astype(float)

    def ready(self, state: Any) -> bool:
        return True

    def rank(self, state: Any, k: int, free: Any) -> Any:
        seed = self.exploration_.seed
        sample = SAMPLES.get(seed, frozenset())
        asked = CAMPAIGNS[seed].journal.ledger.asks if seed in CAMPAIGNS else {}
        names = ((row, self.pool_.id(row)) for row in free.all().tolist())
        mine = [row for row, name in names if name not in sample or (name in asked and asked[name].state != "open")]
        return ranked(mine[:k])


def register() -> None:
    try:
        LEARNERS.add(Entry("pool-order", PoolOrder, "the order of the pool", negatives="none"))
    except InputError:
        return  # by another module of tests


def dictate(patch: pytest.MonkeyPatch) -> None:
    """The chance of control rows: the sample is what SAMPLES says, and a row is asked as one when its turn comes."""

    def order(ids: Any, seed: int) -> Any:
        return np.array(sorted(range(len(ids)), key=lambda row: (ids[row] not in SAMPLES[seed], row)), np.int64)

    def sources(self: Any, k: int, ledger: Any, explore: int) -> list[str]:
        names = (name for name in self._pool.ids if ledger.groups.first(name) == name)
        free = (name for name in names if name not in ledger.asks or ledger.asks[name].state == "open")
        return ["control" if name in SAMPLES[self._seed] else "learner" for name in itertools.islice(free, k)]

    patch.setattr(_mixer, "control_order", order)
    patch.setattr(_mixer.Mixer, "sources", sources)


def make_pool(rows: int = 60) -> Pool:
    points = np.random.default_rng(5).normal(size=(rows, 3))
    points[rows // 2] = points[rows // 2 + 1]
    contents = {"text": [f"message {row}" for row in range(rows)], "image": [PNG] * rows}
    return Pool(points, ids=[f"m/{row}" for row in range(rows)], contents=contents)


class Twin:
    """A server with one campaign, asked within the process."""

    def __init__(self, folder: Path, sample: Iterable[str] = (), **settings: Any) -> None:
        self.seed = next(_seeds)
        SAMPLES[self.seed] = frozenset(sample)
        (folder / "keys").mkdir(parents=True, mode=0o700)
        # What the home marks addresses with must not make the difference.
        (folder / "keys" / "secret").write_bytes(b"s" * 32)
        (folder / "keys" / "secret").chmod(0o600)
        home = Workspace(folder)
        home.new("one", make_pool(), learner="pool-order", explore=0, seed=self.seed, **settings).close()
        self.tokens = {name: home.people.add(name, role, {}) for name, role in PEOPLE.items()}
        app = make_app(home)
        self.desk = app.app.state.desk
        self.desk.set_template("one", "<b>{{ text }}</b>")
        CAMPAIGNS[self.seed] = self.campaign = self.desk.get("one").campaign
        self._loop = asyncio.new_event_loop()
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://twin")
        self._tags: dict[tuple[str, str], str] = {}

    def send(self, who: str, method: str, path: str, body: Any = None, *, again: bool = False) -> httpx.Response:
        """A request below the campaign, or elsewhere; ``again``: only if something is new since the last one."""
        address = path if path.startswith("/") else f"/api/campaigns/one/{path}"
        headers = {"Authorization": f"Bearer {self.tokens[who]}", "X-Request-ID": "one"}
        if again:
            headers["If-None-Match"] = self._tags.get((who, path), '"nothing"')
        answer = self._loop.run_until_complete(self._http.request(method, address, headers=headers, json=body))
        if "etag" in answer.headers:
            self._tags[who, path] = answer.headers["etag"]
        return answer

    def close(self) -> None:
        del CAMPAIGNS[self.seed], SAMPLES[self.seed]
        self._loop.run_until_complete(self._http.aclose())
        self._loop.close()
        self.desk.close()


def bytes_of(answer: httpx.Response) -> tuple[Any, ...]:
    """All of an answer, with times masked, and in the tag the time at which the campaign began."""
    headers = dict(answer.headers)
    if "content-length" in headers:
        # A time may have a digit more.
        assert headers.pop("content-length") == str(len(answer.content))
    if "etag" in headers:
        headers["etag"] = _MARK.sub('"', headers["etag"])
    if "last-modified" in headers:
        # Of a file that was made to be sent.
        assert "content-disposition" in headers
        del headers["last-modified"], headers["etag"]
    return answer.status_code, headers, _TIME.sub(b"TIME", answer.content)
