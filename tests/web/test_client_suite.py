"""The tests of a campaign at hand, unchanged, on a campaign over HTTP."""

import importlib.util
import itertools
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from serving import ThreadServer, make_home, scene

from activecover import Campaign
from activecover.web import Client, RemoteCampaign

TESTS = Path(__file__).resolve().parents[1]
NUMBERS = itertools.count()


def module_of(path):
    """A module of tests by its file: it is not on the way of imports here."""
    name = f"suite_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


CAMPAIGN = module_of(TESTS / "test_campaign.py")
MODEL = module_of(TESTS / "campaign" / "test_model.py")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    make_home(folder, scene(20)[0], "first")
    running = ThreadServer(folder)
    client = Client(running.url)
    yield running, client
    client.close()
    running.stop()


def cases():
    """Every test of the suite, with each of its parameters."""
    for name, test in vars(CAMPAIGN).items():
        if not name.startswith("test_"):
            continue
        marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
        choices = []
        for mark in marks:
            names = (
                [part.strip() for part in mark.args[0].split(",")] if isinstance(mark.args[0], str) else mark.args[0]
            )
            choices.append(
                [dict(zip(names, value if len(names) > 1 else [value], strict=True)) for value in mark.args[1]]
            )
        for chosen in itertools.product(*choices):
            given = {key: value for part in chosen for key, value in part.items()}
            yield pytest.param(test, given, id="-".join([name, *(str(value)[:20] for value in given.values())]))


@pytest.mark.parametrize(("test", "given"), list(cases()))
def test_the_suite_of_a_campaign(place, monkeypatch, test, given):
    running, client = place

    def begin(pool, learner=None, log=None, **settings):
        """A campaign on the server; where a test looks into it, it looks there."""
        campaign = Campaign(pool, learner, log=log, **settings)
        return Served(running, client, campaign)

    monkeypatch.setattr(CAMPAIGN, "Campaign", begin)
    test(**given)


def test_all_that_a_campaign_can_do():
    """The same methods, but for those of the process that has the pool and the log."""
    inside = {"forget", "learner_name", "once", "peek_next", "together"}
    public = {name for name in dir(Campaign) if not name.startswith("_")}
    assert public - set(dir(RemoteCampaign)) == inside


#: Parts of a campaign that a test looks into, and what only its own process has.
INSIDE = ("proposals", "close", "log", "pool", "journal", "guarantee", "sight", "snapshot", "together")


class Served:
    """A campaign that is used over HTTP, and looked into where it is."""

    def __init__(self, running, client, campaign):
        name = f"model {next(NUMBERS)}"
        running.desk.adopt(name, campaign)
        self._campaign, self._remote = campaign, client.campaign(name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """The server goes on with it."""

    def __getattr__(self, name):
        inside = name.startswith("_") or name in INSIDE
        return getattr(self._campaign if inside else self._remote, name)


def test_any_order_of_calls_against_the_model(place):
    class OverHttp(MODEL.SharedCampaign):
        def opened(self, **given):
            return Served(*place, super().opened(**given))

    examples = 200 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 8
    counts = settings(max_examples=examples, stateful_step_count=12, deadline=None, database=None)
    run_state_machine_as_test(OverHttp, settings=counts)
