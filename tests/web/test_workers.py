"""Several processes behind one address, on PostgreSQL: one campaign, whoever answers."""

import os
import signal
import threading
import time

import psutil
from serving import Server, httpx, scene

from activecover.web import Client
from activecover.workspace import Workspace


def processes_of(server):
    """The processes that serve, by what each says of itself."""
    return [
        child for child in psutil.Process(server.process.pid).children() if "spawn_main" in " ".join(child.cmdline())
    ]


def test_several_processes_share_a_campaign_and_one_may_die(postgres, tmp_path):
    store = postgres()
    pool, truth = scene(3000, seed=5)
    with Workspace(tmp_path, store) as home:
        home.new("mail", pool, explore=8, seed=1).close()
    running = Server(tmp_path, "--store", store, "--workers", "2")
    told, done = {}, threading.Event()

    def work(who):
        while not done.is_set():
            # A connection each time: now this process answers, now that.
            with Client(running.url, retries=1000, timeout=60) as client:
                campaign = client.campaign("mail")
                for item in campaign.ask(2, by=who):
                    campaign.tell(item.id, truth[item.id], by=who)
                    told.setdefault(item.id, []).append(who)

    def until(count):
        deadline = time.monotonic() + 120
        while len(told) < count:
            assert time.monotonic() < deadline, f"{len(told)} labels only"
            time.sleep(0.05)

    people = [threading.Thread(target=work, args=(f"p{number}",)) for number in range(4)]
    try:
        for person in people:
            person.start()
        until(20)
        first, second = processes_of(running)
        for process in (first, second):
            assert sum(process.cpu_times()[:2]) > 0
        os.kill(first.pid, signal.SIGKILL)
        until(len(told) + 40)
        done.set()
        for person in people:
            person.join()
        # What died is replaced.
        assert len(processes_of(running)) == 2
        assert httpx.get(f"{running.url}/health", timeout=30).status_code == 200
    finally:
        done.set()
        code = running.stop()
    assert code == 0
    with Workspace(tmp_path, store) as home, home.open("mail") as campaign:
        assert {name: truth[name] for name in told} == {name: campaign.labels()[name] for name in told}
        events = [event["id"] for event in campaign.history() if event["event"] == "told"]
    assert len(events) == len(set(events))
    assert [name for name, who in told.items() if len(who) > 1] == []
