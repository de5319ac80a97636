"""Pools in shards from .npy and Parquet files, local and remote."""

import json
import os
import zipfile

import numpy as np
import pytest

from activecover import Pool, load_pool
from activecover.errors import InputError
from activecover.frontier.ray import ShardedPool

pytest.importorskip("ray", reason="ray is not installed: it comes with activecover[ray]")
pytest.importorskip("fsspec", reason="fsspec is not installed: it comes with activecover[ray]")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: it comes with activecover[ray]")
arrow = pytest.importorskip("pyarrow")


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
        (lambda p: np.save(p, np.asfortranarray(np.eye(4))), r"in column order"),
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
