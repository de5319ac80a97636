"""Pools in shards: the order of one process, whatever happens to the processes of the shards."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest

from activecover import Campaign, ExploreCommit, Offline, Pool, load_pool, simulate_one
from activecover.errors import ActiveCoverError, InputError, MissingExtraError
from activecover.frontier import ExactFrontier, choose_frontier
from activecover.frontier.ray import RayFrontier, ShardedPool, _actors, _pool, connect, disconnect
from activecover.frontier.ray._frontier import _merge as merge
from activecover.frontier.ray._shard import Answer
from activecover.learners import OneClass
from activecover.testing import check_frontier, random_pool

pytest.importorskip("ray", reason="ray is not installed: it comes with activecover[ray]")
pytest.importorskip("fsspec", reason="fsspec is not installed: it comes with activecover[ray]")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: it comes with activecover[ray]")
arrow = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def cluster():
    """A cluster of our own on this machine; sockets need a short path."""
    folder = tempfile.mkdtemp(prefix="acray", dir="/tmp")
    connect("local", cpus=2, temp_dir=folder)
    yield
    disconnect()
    shutil.rmtree(folder, ignore_errors=True)


# -- shards without processes: quick, and lost at will --------------------------------------------


class Lost(Exception):
    pass


class LocalRay:
    """What is used of Ray, in this process: actors are objects, and every call may lose one."""

    def __init__(self, chance=0.0, seed=0):
        class RayTaskError(Exception):
            def __init__(self, cause):
                self.cause = cause

        class GetTimeoutError(Exception):
            pass

        self.exceptions = types.SimpleNamespace(
            RayError=Lost, RayTaskError=RayTaskError, GetTimeoutError=GetTimeoutError
        )
        self.chance, self.random, self.lost = chance, np.random.default_rng(seed), 0

    def cluster_resources(self):
        return {"CPU": 2.0}

    def remote(self, kind):
        ray = self

        class Handle:
            def __init__(self, *arguments):
                self.inside, self.dead = kind(*arguments), False

            def __getattr__(self, name):
                return types.SimpleNamespace(remote=lambda *arguments: (self, name, arguments))

        return types.SimpleNamespace(options=lambda **_: types.SimpleNamespace(remote=Handle), ray=ray)

    def get(self, reference, timeout):
        actor, name, arguments = reference
        before, after = self.random.random(2) < self.chance / 2
        if before:
            actor.dead = True
        if actor.dead:
            self.lost += 1
            raise Lost("the actor died")
        try:
            answer = getattr(actor.inside, name)(*arguments)
        except Exception as wrong:
            raise self.exceptions.RayTaskError(wrong) from wrong
        if after:  # done, but nobody heard of it
            actor.dead = True
            self.lost += 1
            raise Lost("the actor died")
        return answer

    def kill(self, actor):
        actor.dead = True


@pytest.fixture
def local_ray(monkeypatch):
    ray = LocalRay()
    monkeypatch.setattr(_actors, "import_ray", lambda: ray)
    monkeypatch.setattr(_pool, "import_ray", lambda: ray)
    monkeypatch.setattr(_pool, "connect", lambda address: None)
    return ray


class Mirrored(Pool):
    """A pool, and the same rows in shards: what happens to one happens to the other."""

    def __init__(self, points, *, metric, folder, shards):
        super().__init__(points, metric=metric)
        path = Path(folder) / f"{len(list(Path(folder).iterdir()))}.npy"
        np.save(path, points)
        self.twin = ShardedPool(path, metric=metric, shards=shards)

    def extend(self, vectors, **more):
        self.twin.extend(vectors)
        return super().extend(vectors, **more)

    def withdraw(self, rows):
        self.twin.withdraw(rows)
        super().withdraw(rows)


def mirrored(random, folder, monkeypatch, shards):
    """A random pool as the check suite draws it, with a twin in shards."""
    made = {}
    with monkeypatch.context() as patch:
        patch.setattr(
            "activecover.testing._frontier.Pool",
            lambda points, metric: made.setdefault(
                "pool", Mirrored(points, metric=metric, folder=folder, shards=shards)
            ),
        )
        random_pool(random)
    pool = made["pool"]
    assert pool.twin.take(np.arange(len(pool))).tobytes() == pool.vectors.tobytes(), "stored values differ"
    return pool


@pytest.mark.parametrize(
    ("backend", "shards", "rounds"),
    [
        ("auto", 5, 30),
        ("pruned", 2, 10),
        pytest.param("auto", 5, 300, marks=pytest.mark.deep),
        pytest.param("exact", 9, 100, marks=pytest.mark.deep),
    ],
)
def test_contract_with_shards_lost_at_every_turn(tmp_path, monkeypatch, local_ray, backend, shards, rounds):
    opened = ShardedPool.__init__
    monkeypatch.setattr(ShardedPool, "__init__", lambda self, *a, **k: opened(self, *a, backend=backend, **k))
    monkeypatch.setattr(_actors, "ATTEMPTS", 20)
    local_ray.chance = 0.1

    def pools(random):
        return mirrored(random, tmp_path, monkeypatch, int(random.integers(1, shards + 1)))

    check_frontier(lambda pool: RayFrontier(pool.twin), rounds=rounds, steps=20, pools=pools)
    assert local_ray.lost > rounds


def test_contract_with_real_processes(cluster, tmp_path, monkeypatch):
    check_frontier(
        lambda pool: RayFrontier(pool.twin),
        rounds=1,
        steps=40,
        seed=3,
        pools=lambda random: mirrored(random, tmp_path, monkeypatch, 2),
    )


def test_a_shard_that_is_lost_again_and_again_is_given_up_in_one_line(tmp_path, local_ray):
    np.save(tmp_path / "x.npy", np.eye(9, dtype=np.float32))
    pool = ShardedPool(tmp_path / "x.npy", shards=3)
    frontier = RayFrontier(pool)
    frontier.add([0], pool.take([0]))
    before = frontier.nearest(9)
    frontier.retire([0, 4])
    local_ray.chance = 2.0
    with pytest.raises(ActiveCoverError, match=r"shard \d of 3 was lost 4 times in a row \(the actor died\)") as raised:
        frontier.nearest(1)
    assert "\n" not in str(raised.value)
    # Once there is a place to run again, everything is as it was.
    local_ray.chance = 0.0
    frontier.restore([0, 4])
    after = frontier.nearest(9)
    assert (before.rows.tolist(), before.sources.tolist()) == (after.rows.tolist(), after.sources.tolist())


def test_rows_added_before_a_frontier_hears_of_them_are_not_proposed(tmp_path, local_ray):
    np.save(tmp_path / "x.npy", np.arange(6.0, dtype=np.float32)[:, None])
    pool = ShardedPool(tmp_path / "x.npy", shards=2)
    frontier = RayFrontier(pool)
    frontier.add([0], pool.take([0]))
    assert frontier.nearest(9).rows.tolist() == [0, 1, 2, 3, 4, 5]
    pool.extend([[0.5]])
    assert frontier.nearest(9).rows.tolist() == [0, 1, 2, 3, 4, 5]
    pool.shards.close()
    assert frontier.nearest(9).rows.tolist() == [0, 1, 2, 3, 4, 5], "a shard that was read anew proposes them"
    frontier.extend()
    assert frontier.nearest(9).rows.tolist() == [0, 6, 1, 2, 3, 4, 5]
    with pytest.raises(InputError, match="extend it first"):
        frontier.retire([7])


def test_different_squares_with_one_root_keep_their_order(tmp_path, local_ray):
    # The farther one, by a hair, comes first in the pool; both have the same distance.
    root = np.float32(1.0000001)
    points = np.array([[1.0, root * 2.0**-27], [1.0, 0.0], [0.0, 0.0]], np.float32)
    plain, path = Pool(points), tmp_path / "x.npy"
    np.save(path, points)
    squares = ((points[:2].astype(float)) ** 2).sum(axis=1)
    pool = ShardedPool(path, shards=3)
    orders = []
    for frontier, owner in ((ExactFrontier(plain), plain), (RayFrontier(pool), pool)):
        frontier.add([2], owner.take([2]))
        frontier.retire([2])
        orders.append(frontier.nearest(2).rows.tolist())
    assert squares[0] >= squares[1]
    assert orders[0] == orders[1]


def test_a_step_is_one_call_to_every_shard(tmp_path, local_ray, monkeypatch):
    random = np.random.default_rng(0)
    points = random.normal(size=(300, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", points)
    pool = ShardedPool(tmp_path / "x.npy", shards=4)
    calls = []
    plain = pool.shards.call
    monkeypatch.setattr(pool.shards, "call", lambda method, arguments: calls.append(method) or plain(method, arguments))
    truth = points[:, 0] > 0.8
    trace = simulate_one(pool, truth, ExploreCommit(10), batch=1)
    steps = int((~trace.explored).sum())
    assert calls.count("step") == steps
    # Only the positives of the first sample were never proposed by a shard.
    assert calls.count("take") <= 1
    assert len(calls) <= steps + 1


def test_shards_let_go_of_frontiers_that_are_gone(tmp_path, local_ray):
    np.save(tmp_path / "x.npy", np.eye(8, dtype=np.float32))
    pool = ShardedPool(tmp_path / "x.npy", shards=2)
    for _ in range(5):
        frontier = RayFrontier(pool)
        frontier.add([0], pool.take([0]))
        frontier.nearest(1)
    del frontier
    last = RayFrontier(pool)
    last.add([0], pool.take([0]))
    last.nearest(1)
    assert [len(actor.inside._frontiers) for actor in pool.shards._actors] == [1, 1]


def test_a_pool_in_shards_says_what_it_cannot_do(tmp_path, local_ray):
    np.save(tmp_path / "x.npy", np.eye(8, dtype=np.float32))
    pool = ShardedPool(tmp_path / "x.npy", shards=2)
    assert repr(pool) == "<ShardedPool: 8 rows x 8, euclidean, 2 shards>"
    with pytest.raises(InputError, match="not here"):
        _ = pool.vectors
    with pytest.raises(InputError, match="no copies"):
        pool.without([1])
    with pytest.raises(InputError, match="this one is 'sharded'"):
        choose_frontier(pool, "exact")
    with pytest.raises(InputError, match="lies in shards"):
        OneClass("linear-svm").begin(pool)
    with pytest.raises(InputError, match="frontier 'ray' serves"):
        choose_frontier(Pool(np.eye(3)), "ray")
    with pytest.raises(InputError, match="knows euclidean and cosine"):
        ShardedPool(tmp_path / "x.npy", metric="jaccard")
    with pytest.raises(InputError, match="shards 0"):
        ShardedPool(tmp_path / "x.npy", shards=0)
    approximate = ShardedPool(tmp_path / "x.npy", shards=2, backend="faiss-ivf")
    frontier = RayFrontier(approximate)
    frontier.add([0], approximate.take([0]))
    with pytest.raises((InputError, MissingExtraError), match=r"approximate|faiss"):
        frontier.nearest(1)


# -- files ----------------------------------------------------------------------------------------


def same_values(sharded, plain):
    rows = np.arange(len(plain))
    return sharded.origin.tolist() == plain.origin.tolist() and (
        sharded.take(rows).tobytes() == np.ascontiguousarray(plain.take(rows)).tobytes()
    )


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", "<f2", "i8", "u1"])
def test_npy_files_wherever_they_are(tmp_path, local_ray, metric, dtype):
    random = np.random.default_rng(1)
    points = (random.normal(size=(103, 5)) * 3 + [0, 100, 0, 50, 1]).clip(1, 200).astype(dtype)
    whole = Pool(points, metric=metric)
    np.save(tmp_path / "whole.npy", points)
    for name, part in (("b-1.npy", points[:40]), ("b-2.npy", points[40:41]), ("b-3.npy", points[41:])):
        np.save(tmp_path / name, part)
    with zipfile.ZipFile(tmp_path / "far.zip", "w") as archive:
        archive.write(tmp_path / "whole.npy", "deep/whole.npy")
    sources = [
        tmp_path / "whole.npy",
        f"file://{tmp_path}/whole.npy",
        f"zip://deep/whole.npy::file://{tmp_path}/far.zip",  # not local: read by ranges of bytes
        f"{tmp_path}/b-*.npy",
        [tmp_path / "b-1.npy", f"file://{tmp_path}/b-2.npy", tmp_path / "b-3.npy"],
    ]
    pools = [ShardedPool(source, metric=metric, shards=4) for source in sources]
    assert [same_values(pool, whole) for pool in pools] == [True] * len(sources)
    prints = {json.dumps(pool.fingerprint()) for pool in [*pools, ShardedPool(sources[0], metric=metric, shards=7)]}
    assert len(prints) == 1
    assert json.dumps(pools[0].fingerprint(100)) not in prints


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("as_lists", [False, True])
def test_parquet_files(tmp_path, local_ray, metric, as_lists):
    random = np.random.default_rng(2)
    points = random.normal(size=(500, 3)).astype(np.float32) + np.float32([0, 90, 5])
    names = [f"item {row}" for row in range(500)]
    columns = {"v": list(points)} if as_lists else {f"c{i}": points[:, i] for i in range(3)}
    table = arrow.table({"name": names, **columns, "label": random.integers(0, 2, 500), "text": names[::-1]})
    parquet.write_table(table.slice(0, 200), tmp_path / "p-1.parquet", row_group_size=30)
    parquet.write_table(table.slice(200), tmp_path / "p-2.parquet", row_group_size=70)
    parquet.write_table(table, tmp_path / "all.parquet")
    plain = load_pool(tmp_path / "all.parquet", id_col="name", label_col="label", metric=metric).pool
    pool = ShardedPool(
        f"file://{tmp_path}/p-*.parquet",
        id_col="name",
        label_col="label",
        content_cols=["text"],
        metric=metric,
        shards=3,
    )
    assert same_values(pool, plain)
    assert pool.ids == plain.ids == names
    assert pool.rows(["item 499", "item 0"]).tolist() == [499, 0]
    assert pool.content(3) == {"text": "item 496"}
    (row,) = pool.extend(points[:1], ids=["new"], contents={"text": ["added"]})
    assert (pool.id(row), pool.content(row)) == ("new", {"text": "added"})
    pool.withdraw([3, row])
    assert pool.content(3) == pool.content(row) == {"text": None}
    assert np.isnan(pool.take([3, row])).all()
    with pytest.raises(InputError, match="content columns"):
        pool.extend(points[:1], ids=["other"])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda p: None, r"x.npy: no such file"),
        (lambda p: p.write_bytes(b"no table"), r"x.npy: not a .npy file"),
        (lambda p: np.save(p, np.array(["a"])), r"not real numbers"),
        (lambda p: np.save(p, np.zeros(5)), r"1 dimension"),
        (lambda p: np.save(p, np.zeros((0, 3))), r"no rows"),
        (lambda p: np.save(p, np.asfortranarray(np.eye(4))), r"column by column"),
        (lambda p: np.save(p, np.where(np.arange(40) == 33, np.nan, 1.0)[:, None]), r"row 33, column 0: nan is not"),
        (lambda p: np.save(p, np.full((9, 2), 1e30)), r"row 0, column 0: 1e\+30 is beyond"),
        (lambda p: (np.save(p, np.eye(99)), os.truncate(p, 900)), r"x.npy: cannot be read"),
    ],
)
def test_bad_files_are_named_in_one_line(tmp_path, local_ray, write, message):
    write(tmp_path / "x.npy")
    with pytest.raises(InputError, match=message) as raised:
        ShardedPool(tmp_path / "x.npy", shards=4)
    assert "\n" not in str(raised.value)


def test_more_that_is_wrong_with_files(tmp_path, local_ray):
    np.save(tmp_path / "a.npy", np.ones((4, 2)))
    np.save(tmp_path / "b.npy", np.ones((4, 3)))
    np.save(tmp_path / "zero.npy", np.eye(6)[[0, 1, 2, 5, 3]] * [1, 1, 1, 1, 1, 0])
    parquet.write_table(arrow.table({"x": [1.0, None]}), tmp_path / "gap.parquet")
    for sources, message, more in [
        ([tmp_path / "a.npy", tmp_path / "b.npy"], "number of", {}),
        (tmp_path / "zero.npy", "row 3 is all zeros", {"metric": "cosine"}),
        (tmp_path / "c.csv", "read from .npy and Parquet", {}),
        (tmp_path / "*.pq", "no such files", {}),
        ([], "no files given", {}),
        (tmp_path / "a.npy", "has no columns with names", {"id_col": "name"}),
        (tmp_path / "gap.parquet", "row 1, column 'x': empty", {}),
        (tmp_path / "gap.parquet", "no column 'y'", {"columns": ["y"]}),
    ]:
        with pytest.raises(InputError, match=message):
            ShardedPool(sources, shards=2, **more)


def test_a_file_that_has_changed_is_not_mixed_with_the_old_one(tmp_path, local_ray):
    path = tmp_path / "x.npy"
    np.save(path, np.eye(6, dtype=np.float32))
    os.utime(path, (1, 1))
    pool = ShardedPool(path, shards=2)
    np.save(path, 2 * np.eye(6, dtype=np.float32))
    pool.shards.close()
    with pytest.raises(InputError, match="has changed since the pool was opened"):
        pool.take([4])


# -- real processes -------------------------------------------------------------------------------


def scene(folder, rows, dimensions):
    """Positives in a few clusters, some columns far from zero, many duplicates."""
    random = np.random.default_rng([rows, dimensions])
    points = random.normal(size=(rows, dimensions)).astype(np.float32)
    centres = random.normal(size=(5, dimensions))
    positive = random.random(rows) < 0.02
    points[positive] = centres[random.integers(0, 5, positive.sum())] + 0.3 * points[positive]
    copies = random.integers(0, rows, rows // 10)
    points[copies], positive[copies] = points[copies[::-1]], positive[copies[::-1]]
    points[:, :2] += 1000
    np.save(folder / "x.npy", points)
    return points, positive


def kill_a_shard(pool, random):
    shard = int(random.integers(len(pool.shards)))
    os.kill(pool.shards.call("process", {shard: ()})[shard], signal.SIGKILL)


@pytest.mark.parametrize(
    ("rows", "dimensions", "budget", "batch", "kills"),
    [
        (20_000, 16, 450, 1, 2),
        pytest.param(20_000, 16, 20_000, 100, 5, marks=pytest.mark.deep),
        pytest.param(500_000, 64, 1_200, 1, 10, marks=pytest.mark.deep),
    ],
)
def test_order_of_one_process_though_shards_are_killed(cluster, tmp_path, rows, dimensions, budget, batch, kills):
    points, positive = scene(tmp_path, rows, dimensions)
    expected = simulate_one(Pool(points), positive, ExploreCommit(200), batch=batch, budget=budget)
    random = np.random.default_rng(5)
    told = np.flatnonzero(np.diff(expected.batch))[:-1] + 1  # how many labels there are after each batch
    moments = set(random.choice(told, kills, replace=False).tolist())
    with ShardedPool(tmp_path / "x.npy", shards=4) as pool:

        def watch(_, asked, found):
            if asked in moments:
                kill_a_shard(pool, random)

        trace = simulate_one(pool, positive, ExploreCommit(200, "ray"), batch=batch, budget=budget, watch=watch)
        assert trace.rows.tolist() == expected.rows.tolist()
        assert len(set(trace.rows.tolist())) == len(trace)
        assert pool.shards.replaced == kills


def test_a_campaign_goes_on_where_it_was(cluster, tmp_path):
    points, positive = scene(tmp_path, 400, 5)
    names = [f"item-{row}" for row in range(400)]
    table = arrow.table({"name": names, "v": list(points), "text": names})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=64)
    truth = dict(zip(names, positive.tolist(), strict=True))
    plain = load_pool(tmp_path / "x.parquet", id_col="name", content_cols=["text"]).pool

    def run(campaign, count):
        asked = []
        for _ in range(count):
            (item,) = campaign.ask()
            campaign.tell(item.id, truth[item.id])
            asked.append((item.id, item.content, item.distance, item.nearest))
        return asked

    first = next(name for name in names if truth[name])
    outside = points[:1] + 1
    expected = run(Campaign(plain, "explore-commit", explore=20, known=[first], outside=outside), 60)
    options = {"id_col": "name", "content_cols": ["text"]}
    log = tmp_path / "labels.jsonl"
    with (
        ShardedPool(tmp_path / "x.parquet", shards=2, **options) as pool,
        Campaign(pool, log=log, explore=20, known=[first], outside=outside) as campaign,
    ):
        begun = run(campaign, 40)
        kill_a_shard(pool, np.random.default_rng(0))
        assert campaign.undo() == [begun[-1][0]]
        assert run(campaign, 1)[0][0] == begun[-1][0]
    with (
        ShardedPool(tmp_path / "x.parquet", shards=1, **options) as pool,
        Campaign(pool, log=log, outside=outside) as campaign,
    ):
        assert begun + run(campaign, 20) == expected
        assert campaign.status().labelled == 60
        labelled = [json.loads(line)["id"] for line in log.read_text().splitlines() if '"told"' in line]
        assert len(labelled) == 61, "a label was asked for twice (one was undone)"


#: Ray waits for half a minute by default before it takes a silent node for lost.
QUICK_TO_NOTICE = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "4",
}
DOCS = Path(__file__).resolve().parents[2] / "docs" / "scale.md"


def test_what_the_page_shows(cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n([^`]*vectors\.npy[^`]*shards=2[^`]*)```", DOCS.read_text(encoding="utf-8"))
    exec(compile(block, str(DOCS), "exec"), {})
    assert capsys.readouterr().out.startswith("nearest to 17 (distance ")


NODE_LEAVES = """
    import contextlib, json, os, signal, sys
    import numpy as np
    import ray
    from ray.cluster_utils import Cluster
    from activecover import ExploreCommit, Pool, simulate_one
    from activecover.frontier.ray import ShardedPool, connect

    folder = sys.argv[1]
    points, positive = np.load(f"{folder}/x.npy"), np.load(f"{folder}/y.npy")
    small = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=small)
    nodes = [cluster.add_node(**small) for _ in range(2)]
    connect(cluster.address)
    cluster.wait_for_nodes()
    # Two on a node at most: before a node leaves there is room for six, and afterwards for four.
    pool = ShardedPool(f"{folder}/x.npy", shards=4, actor_options={"num_cpus": 0.5})
    everyone = {shard: () for shard in range(4)}
    node_of, process_of = (pool.shards.call(what, everyone) for what in ("node", "process"))
    places = node_of.values()
    (leaving, *_) = [node for node in nodes if node.node_id in places]

    def watch(_, asked, found):
        if asked == 300:
            cluster.remove_node(leaving, allow_graceful=False)
            # A machine that leaves takes all its processes along; here they would go on answering for a while.
            for shard, node in node_of.items():
                if node == leaving.node_id:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process_of[shard], signal.SIGKILL)

    trace = simulate_one(pool, positive, ExploreCommit(100), batch=1, budget=400, watch=watch)
    later = pool.shards.call("node", everyone).values()
    with open(f"{folder}/answer.json", "w") as file:
        json.dump([trace.rows.tolist(), pool.shards.replaced, [leaving.node_id in there for there in (places, later)]], file)
    ray.shutdown()
    cluster.shutdown()
"""


def test_a_node_that_leaves_changes_nothing(tmp_path):
    folder = Path(tempfile.mkdtemp(prefix="acray", dir="/tmp"))
    try:
        points, positive = scene(folder, 3_000, 8)
        np.save(folder / "y.npy", positive)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(NODE_LEAVES), str(folder)],
            env={**os.environ, **QUICK_TO_NOTICE, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": str(folder)},
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert done.returncode == 0, done.stderr
        rows, replaced, there = json.loads((folder / "answer.json").read_text())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    expected = simulate_one(Pool(points), positive, ExploreCommit(100), batch=1, budget=400)
    assert rows == expected.rows.tolist()
    assert there == [True, False]
    assert replaced >= 1


@pytest.mark.parametrize("learner", [ExploreCommit, Offline])
def test_learners_in_batches_agree_with_one_process(local_ray, tmp_path, learner):
    points, positive = scene(tmp_path, 3_000, 7)
    pool = ShardedPool(tmp_path / "x.npy", shards=5)
    runs = [
        simulate_one(p, positive, learner(50), batch=90, to_the_end=True).rows.tolist() for p in (Pool(points), pool)
    ]
    assert runs[0] == runs[1]


# -- joining --------------------------------------------------------------------------------------


SAY = """
from activecover.frontier.ray import connect
import os, sys

def say(address):
    try:
        connect(address)
    except Exception as wrong:
        print(type(wrong).__name__, wrong)

print("ray" in sys.modules, "fsspec" in sys.modules, "pyarrow" in sys.modules)
say("127.0.0.1:9")
say("here")
os.environ["RAY_ADDRESS"] = "127.0.0.1:9"
say(None)
sys.modules["ray"] = None
say(None)
"""


def test_what_stands_in_the_way_is_said_in_one_line():
    # In a process of its own: this one has joined a cluster already.
    done = subprocess.run([sys.executable, "-c", SAY], capture_output=True, text=True, timeout=120)
    imported, absent, unclear, absent_too, missing = done.stdout.splitlines()
    assert imported == "False False False"
    assert absent.startswith("InputError Ray cluster '127.0.0.1:9': nobody answers there")
    assert absent_too == absent
    assert "write host:port" in unclear
    assert missing.startswith("MissingExtraError")
    assert missing.endswith("pip install 'activecover[ray]'")


def test_a_process_is_part_of_one_cluster(cluster):
    import ray

    assert connect(ray.get_runtime_context().gcs_address) is False
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(InputError, match=r"has joined .* already; disconnect first"):
            connect(f"127.0.0.1:{port}")


def test_rows_at_the_same_distance_are_ordered_by_the_square_that_it_was_rounded_from() -> None:
    above = 1 + 2.0**-52
    assert np.sqrt(above) == np.sqrt(1.0)
    shards = [
        Answer(np.array([row]), np.array([square]), np.sqrt([square]), np.array([0]), None)
        for row, square in ((3, above), (7, 1.0), (5, 1.0))
    ]
    assert merge(shards, 3).rows.tolist() == [5, 7, 3]
    assert merge(shards, 2).rows.tolist() == [5, 7]
