"""Pools in shards on real processes, which are killed, and on nodes that leave."""

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
from pathlib import Path

import numpy as np
import pytest
from local_ray import scene

from activecover import Campaign, ExploreCommit, Pool, load_pool, simulate_one
from activecover.errors import InputError
from activecover.frontier.ray import ShardedPool, connect

pytest.importorskip("ray", reason="ray is not installed: it comes with activecover[ray]")
pytest.importorskip("fsspec", reason="fsspec is not installed: it comes with activecover[ray]")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: it comes with activecover[ray]")
arrow = pytest.importorskip("pyarrow")


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
    expected = run(Campaign(plain, "explore-commit", explore=20, known=[first], external_positives=outside), 60)
    options = {"id_col": "name", "content_cols": ["text"]}
    log = tmp_path / "labels.jsonl"
    with (
        ShardedPool(tmp_path / "x.parquet", shards=2, **options) as pool,
        Campaign(pool, log=log, explore=20, known=[first], external_positives=outside) as campaign,
    ):
        begun = run(campaign, 40)
        kill_a_shard(pool, np.random.default_rng(0))
        assert campaign.undo() == [begun[-1][0]]
        assert run(campaign, 1)[0][0] == begun[-1][0]
    with (
        ShardedPool(tmp_path / "x.parquet", shards=1, **options) as pool,
        Campaign(pool, log=log, external_positives=outside) as campaign,
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
    assert absent.startswith("InputError Ray cluster '127.0.0.1:9': no answer")
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
