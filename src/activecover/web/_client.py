"""Campaigns on a server, used like campaigns at hand."""

from __future__ import annotations

import json
import math
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, quote

import numpy as np

from activecover.campaign import Agreement, Certificate, Item, Status, Suspicion
from activecover.errors import ActiveCoverError, InputError, MissingExtraError, StoreError, check_count
from activecover.extras import require
from activecover.stopping import Assessment
from activecover.store import JSON, Line
from activecover.trace import Trace

_PAGE = 1000
#: Answers that say no more than that it may work later.
_LATER = (429, 502, 503, 504)
_KINDS: dict[str, type[ActiveCoverError]] = {"store": StoreError, "error": StoreError, "extra": MissingExtraError}


class _Answer(Protocol):
    """What httpx gives back."""

    status_code: int
    content: bytes

    @property
    def url(self) -> _Address: ...

    def json(self) -> Any: ...


class _Address(Protocol):
    @property
    def host(self) -> str: ...


class Client:
    """A server's campaigns.

    Parameters
    ----------
    url : str
        Where the server is: ``http://127.0.0.1:8321``, or the link that it printed.
    token : str, optional
        Your token; that of the link, or ``ACTIVECOVER_TOKEN``, where not given.
    retries : int
        How often a request is made again, under the same name, when the server does not answer.
    timeout : float
        Seconds to wait for an answer.
    transport : optional
        Of httpx, for tests.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8321", retries=0)
    >>> client.campaign("reviews").name
    'reviews'
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        retries: int = 6,
        timeout: float = 120.0,
        transport: object = None,
    ) -> None:
        self._httpx = require("httpx", extra="web", purpose="clients")
        url, inside = _without_token(url)
        token = token or inside or os.environ.get("ACTIVECOVER_TOKEN")
        headers = {} if not token else {"Authorization": f"Bearer {token}"}
        try:
            self._http = self._httpx.Client(base_url=url, headers=headers, timeout=timeout, transport=transport)
        except Exception as wrong:
            raise InputError(f"{url!r} is no address of a server: give http://host:port") from wrong
        self.url = url
        self.retries = retries
        self._has_token = bool(token)

    def names(self) -> list[str]:
        """The campaigns there are."""
        return [one["name"] for one in self.get("/api/campaigns")["campaigns"]]

    def campaign(self, name: str) -> RemoteCampaign:
        """A campaign by name."""
        return RemoteCampaign(self, name)

    def new(self, name: str, source: str | Path, **how: JSON) -> RemoteCampaign:
        """Begin a campaign on a file; ``how`` is as for :meth:`activecover.workspace.Home.new`."""
        path = Path(source)
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        kept = self.request("POST", "/api/uploads", params={"name": path.name}, content=path.read_bytes())
        self.request("POST", "/api/campaigns", json={"name": name, "upload": kept.json()["upload"], **how})
        return RemoteCampaign(self, name)

    def remove(self, name: str) -> None:
        """Remove a campaign for good."""
        self.request("DELETE", f"/api/campaigns/{quote(name, safe='')}", params={"confirm": name})

    def get(self, path: str, **params: object) -> Any:
        """A JSON answer."""
        given = {key: value for key, value in params.items() if value is not None}
        return self.request("GET", path, params=given).json()

    def request(self, method: str, path: str, **rest: object) -> _Answer:
        """Make a request, again if there is no answer; what the server refuses is raised in its words."""
        headers = {"Idempotency-Key": uuid.uuid4().hex} if method == "POST" else {}
        if "content" in rest:
            headers["Content-Type"] = "application/octet-stream"
        wait = 0.05
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            try:
                answer: _Answer = self._http.request(method, path, headers=headers, **rest)
            except self._httpx.TransportError as wrong:
                if last:
                    reason = str(wrong) or type(wrong).__name__
                    raise StoreError(f"{self.url}: the server does not answer ({reason})") from wrong
            except (TypeError, ValueError, self._httpx.InvalidURL) as wrong:
                raise InputError(f"this cannot be sent ({wrong})") from wrong
            else:
                self._check_known(answer)
                if answer.status_code not in _LATER or last:
                    return _checked(answer)
            time.sleep(wait)
            wait = min(2 * wait, 2.0)
        raise AssertionError

    def _check_known(self, answer: _Answer) -> None:
        """Raise an error if the server does not accept the token: trying again changes nothing."""
        if answer.status_code not in (401, 429) or _kind_of(answer) != "token":
            return
        if self._has_token:
            raise InputError(f"{self.url}: that token is wrong; ask an owner of the server for yours")
        raise InputError(f"{self.url}: the server wants a token: give token=…, or set ACTIVECOVER_TOKEN")

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RemoteCampaign:
    """A campaign on a server: the same methods as :class:`activecover.Campaign`, and what they return.

    A call that gets no answer is made again under the same name, so that it counts once whatever happened
    to the first one.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name
        self._path = f"/api/campaigns/{quote(name, safe='')}"

    def ask(self, k: int = 1, by: str = "me", *, shown: str | None = None) -> list[Item]:
        """Lease up to ``k`` items to someone, first one that ``ahead`` has ``shown`` them already."""
        if not isinstance(k, int | np.integer) or k < 1:
            raise InputError(f"ask for a number of items from 1, not {k!r}")
        return _items(self._post("ask", k=int(k), by=by, shown=shown)["items"])

    def answer(self, id: str, label: object, by: str = "me", k: int = 1, *, shown: str | None = None) -> list[Item]:
        """Tell what an item is and ask for the next, in one go."""
        return _items(self._post("answer", id=id, label=_plain(label), by=by, k=k, shown=shown)["items"])

    def tell(
        self, ids: str | Sequence[str], labels: object, by: str = "me", *, change: bool = False, note: str | None = None
    ) -> None:
        """Label items; several at once are taken whole or not at all."""
        self._post("tell", ids=_names(ids), labels=_plain(labels), by=by, change=change, note=note)

    def skip(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Put items aside; they come back when nothing else is left."""
        self._post("skip", ids=_names(ids), by=by)

    def mark_unsure(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Say that an item cannot be decided on now."""
        self._post("unsure", ids=_names(ids), by=by)

    def release(self, ids: str | Sequence[str] | None = None, by: str = "me") -> None:
        """Give back items that were asked for, skipped or unsure."""
        self._post("release", ids=None if ids is None else _names(ids), by=by)

    def undo(self, count: int = 1, *, by: str | None = None) -> list[str]:
        """Take back the last decisions (of one person, if given)."""
        check_count("undo", count)
        return list(self._post("undo", count=_plain(count), by=by)["ids"])

    def adjudicate(self, id: str, label: object, by: str = "me") -> None:
        """Decide on an item on which people disagree."""
        self._post("adjudicate", id=id, label=_plain(label), by=by)

    def suspects(self) -> list[Suspicion]:
        """Positives that deserve a second look."""
        found = self._get("suspicious")["suspicious"]
        return [Suspicion(_items([one["item"]])[0], one["reason"]) for one in found]

    def confirm(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Confirm that suspicious positives are positive."""
        self._post("confirm", ids=_names(ids), by=by)

    def ungroup(self, ids: str | Sequence[str], by: str = "me") -> None:
        """Take items out of their groups of duplicates."""
        self._post("ungroup", ids=_names(ids), by=by)

    def change_learner(self, learner: str, **parameters: JSON) -> None:
        """Let another learner propose from now on; all labels are kept."""
        self._post("learner", learner=learner, parameters=parameters)

    def assess(self) -> Assessment:
        """What is proved of recall by now, and the price of the target."""
        said = self._get("assess")
        return Assessment(**{**said, "assumptions": tuple(said["assumptions"])})

    def certificate(self) -> Certificate:
        """The statement to keep."""
        return Certificate(self._get("certificate"))

    def status(self) -> Status:
        """How the campaign stands."""
        return Status(**self._get("status"))

    def trace(self) -> Trace:
        """What was asked and found so far."""
        found = self._get("trace")
        types = {"rows": np.int64, "positive": np.bool_, "batch": np.int64, "explored": np.bool_}
        return Trace(**{**found, **{name: np.array(found[name], kind) for name, kind in types.items()}})

    def labels(self) -> dict[str, bool]:
        """The labels so far, by id, in the order asked."""
        return dict(self._pages("labels", "labels", 100_000))

    def records(self) -> list[dict[str, Any]]:
        """One record per item that was asked for: its label, who gave it, when, and why it was asked."""
        return list(self._pages("records", "records", _PAGE))

    def history(self, id: str | None = None) -> list[Line]:
        """All events, or those of one item, in order."""
        return list(self._pages("history", "events", _PAGE, id=id))

    def conflicts(self) -> list[tuple[Item, dict[str, bool]]]:
        """Items on which people disagree, with who said what."""
        return [(_items([one["item"]])[0], one["opinions"]) for one in self._get("conflicts")["conflicts"]]

    def agreement(self) -> Agreement:
        """The agreement of people who labelled the same items."""
        return Agreement(**self._get("agreement"))

    def export(self, path: str | Path, which: str = "labelled", *, raw: bool = False) -> None:
        """Write the labels to a file by its ending (.csv, .jsonl, .parquet); CSV for programs is ``raw``."""
        path = Path(path)
        found = self._client.request(
            "GET",
            f"{self._path}/export",
            params={"format": path.suffix.lower().lstrip("."), "which": which, "raw": raw},
        )
        path.write_bytes(found.content)

    def archive(self, path: str | Path) -> None:
        """Write the campaign, with its pool, to one portable file."""
        Path(path).write_bytes(self._client.request("GET", f"{self._path}/archive").content)

    def close(self) -> None:
        """Nothing to let go of: the campaign stays open on the server."""

    def __enter__(self) -> RemoteCampaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _post(self, what: str, **body: object) -> Any:
        return self._client.request("POST", f"{self._path}/{what}", json=body).json()

    def _get(self, what: str, **params: object) -> Any:
        return self._client.get(f"{self._path}/{what}", **params)

    def _pages(self, what: str, inside: str, size: int, **params: object) -> Iterator[Any]:
        offset = 0
        while True:
            page = self._get(what, offset=offset, limit=size, **params)
            yield from page[inside]
            offset += size
            if offset >= page["total"]:
                return


def _without_token(url: str) -> tuple[str, str | None]:
    """An address and the token in it, if it is a link to sign in.

    Examples
    --------
    >>> _without_token("http://127.0.0.1:8321/?token=abc"), _without_token("http://127.0.0.1:8321")
    (('http://127.0.0.1:8321/', 'abc'), ('http://127.0.0.1:8321', None))
    """
    address, _, query = str(url).partition("?")
    found = parse_qs(query).get("token")
    return (address, found[0]) if found else (str(url), None)


def _kind_of(answer: _Answer) -> str | None:
    """The kind of problem that an answer reports, if the server is ours."""
    try:
        return str(json.loads(answer.content)["type"]).rpartition(":")[2]
    except (ValueError, KeyError, TypeError):
        return None


def _checked(answer: _Answer) -> _Answer:
    if answer.status_code < 400:
        return answer
    try:
        problem: Mapping[str, Any] = json.loads(answer.content)
        kind = str(problem["type"]).rpartition(":")[2]
        raise _KINDS.get(kind, InputError)(str(problem["detail"]))
    except (ValueError, KeyError, TypeError) as wrong:
        if isinstance(wrong, ActiveCoverError):
            raise
        raise StoreError(f"{answer.url.host}: this is no activecover server (status {answer.status_code})") from wrong


def _items(views: Sequence[Mapping[str, Any]]) -> list[Item]:
    names = ("id", "content", "source", "distance", "because")
    return [
        Item(
            **{name: view[name] for name in names},
            nearest=view["nearest"] if view.get("outside") is None else view["outside"],
            duplicates=tuple(view.get("duplicates", ())),
        )
        for view in views
    ]


def _names(ids: str | Iterable[str]) -> str | list[str]:
    if isinstance(ids, str):
        return ids
    names = list(ids)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"id {name!r} is not a string")
    return names


def _plain(value: object) -> object:
    """What JSON can hold of a label, or of several."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    # What JSON has no word for is no label either: the campaign says so.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
