"""Pools in shards: the order of one process, whatever happens to the processes of the shards."""

import numpy as np
import pytest
from local_ray import mirrored, scene

from activecover import ExploreCommit, Offline, Pool, simulate_one
from activecover.errors import ActiveCoverError, InputError, MissingExtraError
from activecover.frontier import ExactFrontier, choose_frontier
from activecover.frontier.ray import RayFrontier, ShardedPool, _actors
from activecover.frontier.ray._frontier import _merge as merge
from activecover.frontier.ray._shard import Answer
from activecover.learners import OneClass
from activecover.testing import check_frontier

pytest.importorskip("ray", reason="ray is not installed: it comes with activecover[ray]")
pytest.importorskip("fsspec", reason="fsspec is not installed: it comes with activecover[ray]")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: it comes with activecover[ray]")
arrow = pytest.importorskip("pyarrow")


# -- shards without processes: quick, and lost at will --------------------------------------------


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
    with pytest.raises(InputError, match="not in this process"):
        _ = pool.vectors
    with pytest.raises(InputError, match="cannot be copied"):
        pool.without([1])
    with pytest.raises(InputError, match="this one is 'sharded'"):
        choose_frontier(pool, "exact")
    with pytest.raises(InputError, match="is in shards"):
        OneClass("linear-svm").begin(pool)
    with pytest.raises(InputError, match="frontier 'ray' needs a pool of kind"):
        choose_frontier(Pool(np.eye(3)), "ray")
    with pytest.raises(InputError, match="supports euclidean and cosine"):
        ShardedPool(tmp_path / "x.npy", metric="jaccard")
    with pytest.raises(InputError, match="shards 0"):
        ShardedPool(tmp_path / "x.npy", shards=0)
    approximate = ShardedPool(tmp_path / "x.npy", shards=2, backend="faiss-ivf")
    frontier = RayFrontier(approximate)
    frontier.add([0], approximate.take([0]))
    with pytest.raises((InputError, MissingExtraError), match=r"approximate|faiss"):
        frontier.nearest(1)


@pytest.mark.parametrize("learner", [ExploreCommit, Offline])
def test_learners_in_batches_agree_with_one_process(local_ray, tmp_path, learner):
    points, positive = scene(tmp_path, 3_000, 7)
    pool = ShardedPool(tmp_path / "x.npy", shards=5)
    runs = [
        simulate_one(p, positive, learner(50), batch=90, to_the_end=True).rows.tolist() for p in (Pool(points), pool)
    ]
    assert runs[0] == runs[1]


# -- joining --------------------------------------------------------------------------------------


def test_rows_at_the_same_distance_are_ordered_by_the_square_that_it_was_rounded_from() -> None:
    above = 1 + 2.0**-52
    assert np.sqrt(above) == np.sqrt(1.0)
    shards = [
        Answer(np.array([row]), np.array([square]), np.sqrt([square]), np.array([0]), None)
        for row, square in ((3, above), (7, 1.0), (5, 1.0))
    ]
    assert merge(shards, 3).rows.tolist() == [5, 7, 3]
    assert merge(shards, 2).rows.tolist() == [5, 7]
