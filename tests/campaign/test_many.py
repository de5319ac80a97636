"""Many people at once on one campaign: nobody gets what somebody has, and nobody sees the database at work."""

import time

import pytest
from annotators import CONTEXT, Crew, check_nothing_lost, create, events_of, open_at_once

from activecover.store import SqlStore


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    return request.getfixturevalue("postgres")()


def people(count):
    return [f"person {number}" for number in range(count)]


def label_all(url, folder, count, labels, record_property):
    """Everybody labels until the pool is through; how many labels a second it made."""
    create(url, "one", labels)
    crew, names = Crew(url, "one", folder, labels), people(count)
    try:
        crew.start(names)
        crew.join(60 + labels)
    finally:
        crew.kill()
    notes = [note for who in names for note in crew.notes(who)]
    assert [note for note in notes if note[0] in ("sorry", "wrong")] == []
    assert check_nothing_lost(url, "one", crew, names, labels) == labels
    told = [event["at"] for event in events_of(url, "one") if event["event"] == "told"]
    rate = (len(told) - 1) / (max(told) - min(told))
    record_property("labels per second", rate)
    print(f"{count} people, {labels} labels: {rate:.0f} labels per second")


def test_four_people(url, tmp_path, record_property):
    label_all(url, tmp_path, 4, 300, record_property)


@pytest.mark.deep
def test_a_crowd(url, tmp_path, record_property):
    label_all(url, tmp_path, 64 if "://" in url else 16, 20_000, record_property)


def test_leases_of_the_killed_return(url, tmp_path):
    create(url, "one", 40)
    crew = Crew(url, "one", tmp_path, 40, lease=1.0)
    try:
        crew.start(["ann", "bob"])
        crew.wait_for(["ann", "bob"], 4)
        crew.kill()
        time.sleep(1.1)
        # What they had is asked of someone else, and everything gets its label.
        crew.start(["cy"])
        crew.join(60)
    finally:
        crew.kill()
    assert check_nothing_lost(url, "one", crew, ["ann", "bob", "cy"], 40) <= 40
    assert sum(event["event"] == "told" for event in events_of(url, "one")) == 40


def test_many_open_a_new_store_at_once(url, tmp_path):
    """Making the tables, and the campaign, is something that several may want at the same moment."""
    gate, found = CONTEXT.Barrier(8), CONTEXT.Queue()
    everybody = [CONTEXT.Process(target=open_at_once, args=(url, gate, found), daemon=True) for _ in range(8)]
    for process in everybody:
        process.start()
    said = [found.get(timeout=60) for _ in everybody]
    for process in everybody:
        process.join()
    assert said.count("created") == 1
    assert sum(words.startswith("InputError") and "already" in words for words in said) == 7, said
    with SqlStore(url) as store:
        assert store.names() == ["one"]
