"""Code moves between a campaign at hand and one on a server unchanged."""

import itertools

import numpy as np
import pytest
from serving import ThreadServer, httpx, make_home, scene

from activecover import Campaign, InputError, Pool, StoreError
from activecover.web import Client
from activecover.workspace import Workspace

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A server, and a way to put campaigns there."""
    folder = tmp_path_factory.mktemp("home")
    make_home(folder, scene(20)[0], "first")
    running = ThreadServer(folder)
    client = Client(running.url, retries=1)
    yield folder, client
    client.close()
    running.stop()


@pytest.fixture(params=["at hand", "on a server"])
def begin(request, place):
    """Begins a campaign on a pool, here or there."""
    opened = []

    def make(pool, **settings):
        if request.param == "at hand":
            opened.append(Campaign(pool, **{"learner": "explore-commit", **settings}))
            return opened[-1]
        folder, client = place
        name = f"c {next(NUMBERS)}/?#".replace("/", "_")
        with Workspace(folder) as home:
            home.new(name, pool, **{"learner": "explore-commit", **settings}).close()
        return client.campaign(name)

    yield make
    for campaign in opened:
        campaign.close()


def line(rows=8):
    return Pool(np.arange(float(rows))[:, None] ** 1.5, ids=[f"i{row}" for row in range(rows)])


def test_asking_telling_and_undoing(begin):
    campaign = begin(line(), explore=0, known=["i0"])
    (item,) = campaign.ask()
    assert (item.id, item.nearest, item.source) == ("i1", "i0", "learner")
    assert item.distance == pytest.approx(1.0)
    assert item.reason == "nearest to i0 (distance 1)"
    assert [one.id for one in campaign.ask(2)] == ["i1", "i2"]
    campaign.tell(["i1", "i2"], np.array([True, False]))
    assert campaign.labels() == {"i1": True, "i2": False}
    campaign.tell("i1", True)  # the same again changes nothing
    assert campaign.undo() == ["i2"]
    assert [one.id for one in campaign.ask()] == ["i2"]
    assert [one.id for one in campaign.answer("i2", np.True_)] == ["i3"]
    assert campaign.undo(2, by="me") == ["i2", "i1"]
    assert campaign.undo(by="nobody") == []


def test_status_trace_and_history(begin):
    pool, truth = scene(30)
    campaign = begin(pool, explore=4, seed=2)
    for _ in range(6):
        ids = [item.id for item in campaign.ask(2)]
        campaign.tell(ids, [truth[name] for name in ids], note="seen")
    stands, trace = campaign.status(), campaign.trace()
    assert stands.labelled == 12 == len(trace)
    assert stands.positives == trace.found == sum(campaign.labels().values())
    assert trace.rows.dtype == np.int64
    assert trace.explored.dtype == bool
    assert trace.explored.sum() >= 4
    assert trace.pool_rows == 30
    assert trace.learner == stands.learner == "explore-commit@1"
    assert [pool.id(row) for row in trace.rows] == list(campaign.labels())
    events = campaign.history()
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert events[0]["event"] == "created"
    assert [event["event"] for event in campaign.history(ids[0])] == ["asked", "told"]


def test_putting_aside_and_giving_back(begin):
    campaign = begin(line(4), explore=0, known=["i0"])
    campaign.skip([item.id for item in campaign.ask()])
    campaign.mark_unsure([item.id for item in campaign.ask()])
    assert (campaign.status().skipped, campaign.status().unsure) == (1, 1)
    assert [item.id for item in campaign.ask()] == ["i3"]
    campaign.release()
    campaign.release("i1")
    assert [item.id for item in campaign.ask(by="bob")] == ["i1"]
    campaign.tell(["i1", "i2", "i3"], [0, 1, 0], by="bob")
    assert campaign.ask() == []
    assert campaign.status().stopped == "every item is labelled"


def test_people_who_disagree(begin):
    campaign = begin(line(4), explore=0, known=["i0"], overlap=2)
    campaign.tell("i1", True, by="ann")
    campaign.tell("i1", False, by="bob")
    campaign.tell(["i2"], [True], by="ann")
    campaign.tell(["i2"], [True], by="bob")
    ((item, said),) = campaign.conflicts()
    assert item.id == "i1"
    assert said == {"ann": True, "bob": False}
    agreement = campaign.agreement()
    assert (agreement.items, agreement.people, agreement.same) == (2, 2, 1)
    campaign.adjudicate("i1", True, by="boss")
    assert campaign.labels() == {"i1": True, "i2": True}
    assert campaign.conflicts() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda campaign: campaign.ask(0), "ask for a number of items from 1, not 0"),
        (lambda campaign: campaign.ask(by=""), "by '': give a name, a non-empty string"),
        (lambda campaign: campaign.tell("nix", True), "id 'nix' is not in the pool of 8 rows"),
        (lambda campaign: campaign.tell(["i1", "i2"], [True]), "1 labels for 2 ids"),
        (lambda campaign: campaign.tell(["i1", "i1"], [True, True]), "an id was told twice in one call"),
        (lambda campaign: campaign.tell("i1", "perhaps"), "label 'perhaps' is neither yes nor no: give True or False"),
        (lambda campaign: campaign.tell("i0", False), "id 'i0' is known to be positive: it cannot be told as negative"),
        (lambda campaign: campaign.skip("i5"), "id 'i5' was not asked for"),
        (lambda campaign: campaign.release("i5"), "id 'i5' is not leased, skipped or unsure"),
        (lambda campaign: campaign.undo(0), "undo 0: give a whole number from 1"),
        (lambda campaign: campaign.adjudicate("i5", True), "id 'i5' is not in conflict"),
    ],
)
def test_what_is_wrong_is_said_in_the_same_words(begin, call, message):
    campaign = begin(line(), explore=0, known=["i0"])
    with pytest.raises(InputError) as said:
        call(campaign)
    assert message in str(said.value)
    assert campaign.labels() == {}


def test_the_order_is_that_of_the_simulation(begin):
    from activecover.learners import make_learner
    from activecover.simulate import simulate_one

    pool, truth = scene(40)
    campaign = begin(pool, explore=6, seed=3)
    asked, items = [], campaign.ask()
    while items:
        asked.append(items[0].id)
        items = campaign.answer(items[0].id, truth[items[0].id])
    positive = np.array([truth[name] for name in pool.ids])
    trace = simulate_one(pool, positive, make_learner("explore-commit", explore=6), batch=1, seed=3, to_the_end=True)
    assert asked == [pool.id(row) for row in trace.rows]


class Lossy(httpx.BaseTransport):
    """Loses answers: the server has heard the request, and nobody knows."""

    def __init__(self, lost):
        self._inner = httpx.HTTPTransport()
        self._lost = lost

    def handle_request(self, request):
        answer = self._inner.handle_request(request)
        if self._lost and request.method == "POST":
            self._lost.pop()
            answer.read()
            raise httpx.ReadError("the answer was lost")
        return answer


def test_a_call_whose_answer_was_lost_counts_once(place):
    folder, client = place
    name = f"lossy {next(NUMBERS)}"
    with Workspace(folder) as home:
        home.new(name, line(), explore=0, known=["i0"]).close()
    client.campaign(name).tell(["i1", "i2", "i3"], [True, True, True])
    with Client(client.url, transport=Lossy([1, 2])) as lossy:
        assert lossy.campaign(name).undo() == ["i3"]
    assert client.campaign(name).labels() == {"i1": True, "i2": True}
    with Client(client.url, retries=0, transport=Lossy([1])) as lossy, pytest.raises(StoreError, match="was lost"):
        lossy.campaign(name).undo()


def test_a_server_that_is_not_there_is_said():
    with Client("http://127.0.0.1:9", retries=1) as client, pytest.raises(StoreError, match="does not answer"):
        client.names()
    with pytest.raises(InputError, match="no such file"):
        Client("http://127.0.0.1:9").new("x", "nowhere.csv")


def test_a_campaign_from_a_file(place, tmp_path):
    _, client = place
    table = tmp_path / "cars.csv"
    table.write_text("id,weight,doors\na,900,3\nb,2100,5\nc,950,3\n")
    campaign = client.new("cars", table, id_column="id", explore=0, known=["a"], learner="explore-commit")
    assert [item.id for item in campaign.ask()] == ["c"]
    assert "cars" in client.names()
    campaign.tell("c", True)
    campaign.export(tmp_path / "labels.jsonl")
    assert '"c"' in (tmp_path / "labels.jsonl").read_text()
    client.remove("cars")
    assert "cars" not in client.names()
