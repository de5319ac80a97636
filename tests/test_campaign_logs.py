"""The log of a campaign: where it is kept, how it is taken up, and what happens when a process dies."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from activecover import Campaign, ExploreCommit, InputError, Pool, StoreError
from activecover.store import JsonlLog, MemoryLog
from test_campaign import drive, scene


@pytest.mark.parametrize("settings", [{"budget": 0}, {"target": -1}, {"lease": 0}, {"explore": -1}, {"learner": "x"}])
def test_bad_settings_are_refused_and_leave_no_file(tmp_path, settings):
    pool, _ = scene()
    with pytest.raises(InputError):
        Campaign(pool, **{"log": tmp_path / "log.jsonl", **settings})
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_taken_up_where_it_ended(tmp_path):
    pool, positive = scene()
    path = tmp_path / "log.jsonl"
    with Campaign(pool, seed=4, explore=10) as uninterrupted:
        expected = drive(uninterrupted, positive, 1)
    asked = []
    while True:
        with Campaign(pool, log=path, **({} if asked else {"seed": 4, "explore": 10})) as campaign:
            part = drive(campaign, positive, 1, most=9)
        asked += part
        if not part:
            break
    assert asked == expected
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["seq"] for event in events] == list(range(len(events)))
    first = next(event for event in events if event["event"] == "asked")
    assert {"source", "rule", "probability", "open", "position", "number"} <= set(first)
    assert first["probability"] == pytest.approx(1 / 60)


def test_another_pool_or_other_settings_are_refused(tmp_path):
    pool, _ = scene()
    path = tmp_path / "log.jsonl"
    Campaign(pool, "explore-commit", log=path, external_positives=np.ones((1, 3))).close()
    others = {
        "vectors differ": {"pool": Pool(pool.vectors + 1, ids=pool.ids), "external_positives": np.ones((1, 3))},
        "ids differ": {"pool": Pool(pool.vectors), "external_positives": np.ones((1, 3))},
        "60 rows, this one has 5": {"pool": scene(5)[0], "external_positives": np.ones((1, 3))},
        "from outside": {"pool": pool},
        "seed 0, not 9": {"pool": pool, "external_positives": np.ones((1, 3)), "seed": 9},
        "not 'offline@1'": {"pool": pool, "external_positives": np.ones((1, 3)), "learner": "offline"},
        "other known positives": {"pool": pool, "external_positives": np.ones((1, 3)), "known": ["item 3"]},
    }
    before = path.read_bytes()
    for message, changed in others.items():
        with pytest.raises(InputError, match=message):
            Campaign(**{"log": path, **changed})
    assert path.read_bytes() == before
    Campaign(pool, log=path, external_positives=np.ones((1, 3)), seed=0, learner="EC").close()


def test_a_learner_of_ones_own_must_be_given_again(tmp_path):
    pool, positive = scene()
    path = tmp_path / "log.jsonl"
    with Campaign(pool, ExploreCommit(explore=7), log=path) as campaign:
        drive(campaign, positive, 3, most=12)
        expected = campaign.ask()[0].id
    with pytest.raises(InputError, match="of your own"):
        Campaign(pool, log=path)
    with Campaign(pool, ExploreCommit(explore=7), log=path) as campaign:
        assert campaign.ask()[0].id == expected


def test_a_write_that_fails_changes_nothing():
    class Full(MemoryLog):
        full = False

        def append(self, events):
            if self.full:
                raise StoreError("disk full")
            return super().append(events)

    pool, positive = scene()
    log = Full()
    campaign = Campaign(pool, explore=5, log=log)
    drive(campaign, positive, 1, most=20)
    item = campaign.ask()[0]
    before = campaign.status()
    log.full = True
    for action in (lambda: campaign.tell(item.id, True), lambda: campaign.skip(item.id), campaign.undo):
        with pytest.raises(StoreError):
            action()
        assert campaign.status() == before
    log.full = False
    campaign.tell(item.id, True)
    assert campaign.status().labelled == before.labelled + 1


WORKER = """
    import sys, numpy as np
    from activecover import Campaign, Pool
    points = np.random.default_rng(0).normal(size=(400, 4))
    with Campaign(Pool(points), log=sys.argv[1]) as campaign:
        while items := campaign.ask(2):
            names = [item.id for item in items]
            campaign.tell(names, [points[int(name), 0] > 0.8 for name in names])
            print(*names, flush=True)
"""


def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path):
    path, script = tmp_path / "log.jsonl", tmp_path / "worker.py"
    script.write_text(textwrap.dedent(WORKER))
    acknowledged = []
    for turn in range(4):
        worker = subprocess.Popen([sys.executable, script, path], stdout=subprocess.PIPE, text=True)
        for _ in range(5 + 3 * turn):
            acknowledged += worker.stdout.readline().split()
        os.kill(worker.pid, signal.SIGKILL)
        acknowledged += worker.stdout.read().split()
        worker.wait()
    done = subprocess.run([sys.executable, script, path], capture_output=True, text=True, check=True)
    acknowledged += done.stdout.split()
    points = np.random.default_rng(0).normal(size=(400, 4))
    with Campaign(Pool(points), log=path) as campaign:
        labels = campaign.labels()
    # What was written but not yet acknowledged when the process died is there too: a label is never undone.
    assert set(acknowledged) <= set(labels)
    assert len(acknowledged) == len(set(acknowledged))
    assert len(labels) == 400
    with Campaign(Pool(points)) as fresh:
        order = drive(fresh, points[:, 0] > 0.8, 2)
    assert list(labels) == order


def test_the_log_of_a_file_and_of_memory_are_the_same(tmp_path):
    pool, positive = scene()
    kept = []
    for log in (MemoryLog(), JsonlLog(tmp_path / "log.jsonl")):
        with Campaign(pool, log=log, explore=5, clock=lambda: 0.0) as campaign:
            drive(campaign, positive, 4)
            kept.append(list(log.read()))
    assert kept[0] == kept[1]


@pytest.mark.parametrize("by", [7, None, ""])
def test_a_person_without_a_name_is_refused_before_anything_is_written(tmp_path, by):
    pool, _ = scene(10)
    path = tmp_path / "log.jsonl"
    with Campaign(pool, log=path) as campaign:
        name = campaign.ask()[0].id
        for action in (
            lambda: campaign.ask(1, by=by),
            lambda: campaign.tell(name, True, by=by),
            lambda: campaign.skip(name, by=by),
            lambda: campaign.release(by=by),
        ):
            with pytest.raises(InputError, match="non-empty string"):
                action()
    Campaign(pool, log=path).close()


@pytest.mark.parametrize("frontier", ["exact", "tree", "pruned"])
def test_a_positive_that_is_erased_no_longer_shows_the_way(tmp_path, frontier):
    pool = Pool(np.arange(20.0)[:, None])
    path = tmp_path / "log.jsonl"
    learner = ExploreCommit(0, frontier)
    with Campaign(pool, learner, known=["3", "17"], log=path) as campaign:
        assert campaign.ask(1)[0].id == "2"
        pool.withdraw([3])
        campaign.release()
        first = [item.id for item in campaign.ask(3)]
        assert first == ["16", "18", "15"]
        with pytest.raises(InputError, match="erased"):
            campaign.tell("3", True)
    with Campaign(pool, ExploreCommit(0, frontier), log=path) as again:
        assert [item.id for item in again.ask(3)] == first
        pool.withdraw([17])
        again.release()
        assert len(again.ask(3)) == 3  # nothing to be near to: at random
        assert again.status().phase == "explore"
