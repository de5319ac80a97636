"""Several people at several browsers, and no waiting between items."""

import os
import signal
import statistics
import subprocess
import time

import pytest
from browsing import FLAGS, chromium_path
from serving import ThreadServer, make_home, scene

from activecover.web import Client

POOL, TRUTH = scene(400, seed=3)
#: What a person needs to read and decide, and by how much answers are late, in milliseconds.
READING, DELAY = 2000, 300
#: How many items are looked at with and without the delay.
STRICT = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
LOOKS = 40 if STRICT else 8


@pytest.fixture
def serve(tmp_path):
    servers = []

    def start(**settings):
        make_home(tmp_path, POOL, explore=8)
        servers.append(ThreadServer(tmp_path, **settings))
        return servers[-1].url

    yield start
    for server in servers:
        server.stop()


def label(someone, count, seen):
    item = seen[-1] if seen else None
    for _ in range(count):
        item = someone.shown(item)
        seen.append(item)
        someone.press("y" if TRUTH[item] else "n")


def test_two_browsers_never_show_the_same_item(visit, serve):
    url = serve()
    people = {}
    for name in ("ann", "bob"):
        people[name] = visit(url)
        people[name].context.add_init_script(f"if (location.host) localStorage.setItem('who', '{name}')")
        people[name].go("label")
    seen = {name: [] for name in people}
    for _ in range(6):
        for name, someone in people.items():
            label(someone, 4, seen[name])
    assert not set(seen["ann"]) & set(seen["bob"])
    with Client(url) as client:
        campaign = client.campaign("mail")
        people["ann"].until(lambda: len(campaign.labels()) == 48, "not all labels arrived")
        assert campaign.labels() == {item: TRUTH[item] for item in [*seen["ann"], *seen["bob"]]}
        told = {event["id"]: event["by"] for event in campaign.history() if event["event"] == "told"}
    assert {item for item, by in told.items() if by == "ann"} == set(seen["ann"])
    assert {name: someone.complaints for name, someone in people.items()} == {"ann": [], "bob": []}


def test_what_a_page_may_show_next_is_not_even_lent_to_others(serve):
    """Else the answer to it, which may come in that moment, would be to an item that somebody else has."""
    with Client(serve()) as client:
        campaign = client.campaign("mail")
        (item,) = campaign.ask(by="ann")
        shown = {view["id"] for view in client.get("/api/campaigns/mail/ahead", id=item.id).values() if view}
        assert shown
        assert not shown & {one.id for one in campaign.ask(4, by="bob")}
        assert {event["event"] for event in campaign.history()} == {"created", "asked"}


def test_a_browser_that_is_killed_gives_its_item_back(driver, serve, tmp_path):
    url = serve(lease=2)
    profile = tmp_path / "profile"
    victim = subprocess.Popen(
        [chromium_path(), "--headless=new", *FLAGS, "--remote-debugging-port=0", f"--user-data-dir={profile}",
         f"{url}/#/label/mail"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        with Client(url) as client:
            campaign = client.campaign("mail")
            patiently(lambda: campaign.status().leased >= 1, "the browser did not ask for an item")
            os.killpg(victim.pid, signal.SIGKILL)
            victim.wait()
            held = {event["id"] for event in campaign.history() if event["event"] == "asked"}
            # All that can be had: what the killed browser held is not among it until its time is over.
            patiently(lambda: held <= {item.id for item in campaign.ask(400, by="bob")}, "the item did not come back")
            released = {event["id"]: event.get("why") for event in campaign.history() if event["event"] == "released"}
            assert {released[item] for item in held} == {"expired"}
    finally:
        if victim.poll() is None:
            os.killpg(victim.pid, signal.SIGKILL)


def patiently(condition, what):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


#: Presses a key at the beginning of a frame, and says how much later the frame begins that finds the next item.
MEASURE = """(key) => new Promise((done) => requestAnimationFrame((started) => {
    const shown = () => document.querySelector('article.item')?.dataset.id, before = shown();
    document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    const look = (now) => shown() && shown() !== before ? done(now - started) : requestAnimationFrame(look);
    requestAnimationFrame(look);
}))"""


@pytest.mark.parametrize("people", [1, 2], ids=["alone", "with someone else"])
def test_no_request_stands_between_a_key_and_the_next_item(visit, serve, people):
    """With every answer late, the next item is there as soon as without."""
    url = serve()
    with Client(url) as client:
        for other in range(people - 1):
            client.campaign("mail").ask(by=f"other {other}")
    someone = visit(url)
    someone.go("label")
    network = someone.context.new_cdp_session(someone.page)
    network.send("Network.enable")
    took = {0: [], DELAY: []}
    item = None
    for look in range(2 * LOOKS + 2):
        late = (0, DELAY)[look % 2]
        network.send("Network.emulateNetworkConditions",
                     {"offline": False, "latency": late, "downloadThroughput": -1, "uploadThroughput": -1})  # fmt: skip
        item = someone.shown(item)
        someone.page.wait_for_timeout(READING)
        if not STRICT:
            # On a machine that runs other tests beside this one a person would be slower, too.
            someone.until(lambda: someone.page.locator(".desk[hidden]").count(), "what comes next was not fetched")
        waited = someone.page.evaluate(MEASURE, "y" if TRUTH[item] else "n")
        if look >= 2:  # the first ones find a server that has not begun yet
            took[late].append(waited)
    assert len(someone.script("window.activecoverLatency")) == 2 * LOOKS + 2, "an item was shown after its answer"
    usual, late = map(statistics.median, took.values())
    print(f"the next item is there after {usual:.1f} ms, with late answers after {late / usual:.2f} times that")
    assert late / usual <= 1.2, took
