"""The pool: what is stored, what is refused, and what centring must not change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from activecover.errors import InputError
from activecover.pool import Pool, blocks

POINTS = [[0.0, 1.0], [3.0, 4.0], [6.0, 8.0]]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8, np.uint64, np.longdouble, ">f4", bool])
def test_any_real_type(kind: Any) -> None:
    given_values = np.array([[0, 1], [1, 0], [1, 1]], kind)
    pool = Pool(given_values)
    assert pool.vectors.dtype == np.float32
    assert np.array_equal(pool.vectors, given_values.astype(np.float32))


def test_the_pool_has_a_copy_of_its_own() -> None:
    matrix = np.array(POINTS, np.float32)
    pool = Pool(matrix)
    matrix[:] = 9
    assert np.array_equal(pool.vectors, POINTS)
    with pytest.raises(ValueError):
        pool.vectors[0, 0] = 1


def test_ids_and_rows() -> None:
    pool = Pool(POINTS)
    assert pool.ids == ["0", "1", "2"]
    assert pool.id(2) == "2"
    assert pool.rows(["2", "0"]).tolist() == [2, 0]
    named = Pool(POINTS, ids=["x", "y", "z"])
    assert named.rows(["z"]).tolist() == [2]
    assert named.rows([]).tolist() == []


@pytest.mark.parametrize("name", ["3", "-1", "00", "01", " 1", "1.0", "１", "x", "", "9" * 5000])
def test_an_unknown_id_is_named(name: str) -> None:
    for pool in (Pool(POINTS), Pool(POINTS, ids=["p", "q", "r"])):
        with pytest.raises(InputError, match="is not in the pool of 3 rows"):
            pool.rows([name])


@pytest.mark.parametrize("name", [1, None, np.int64(1), b"1"])
def test_an_id_is_a_string(name: Any) -> None:
    with pytest.raises(InputError, match="not a string"):
        Pool(POINTS).rows([name])


@pytest.mark.parametrize(
    ("vectors", "says"),
    [
        ([], "dimension"),
        ([[]], "empty"),
        (np.zeros((0, 3)), "empty: 0 rows"),
        (np.zeros((3, 0)), "0 vector columns"),
        (5, "0 dimension"),
        ([1.0, 2.0], "1 dimension"),
        (np.zeros((2, 2, 2)), "3 dimension"),
        ([[1.0], [1.0, 2.0]], "different lengths"),
        ([["a"]], "not real numbers"),
        ([[1j]], "not real numbers"),
        ([[None]], "not real numbers"),
        (np.array([["2020-01-01"]], "datetime64[D]"), "not real numbers"),
        ([[0.0, np.nan]], "row 0, column 1: nan is not a finite number"),
        ([[0.0, 1.0], [np.inf, 1.0]], "row 1, column 0: inf is not a finite number"),
        ([[0.0, -1e300]], "row 0, column 1: -1e\\+300 is beyond"),
        (np.array([[1e38]], np.float32), "beyond"),
        ([[2**60]], "beyond"),
        (np.array([["1e400"]], np.longdouble), "row 0, column 0"),
    ],
)
def test_bad_vectors(vectors: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Pool(vectors)


def test_a_bad_value_far_down_is_found_and_its_column_named() -> None:
    matrix = np.zeros((300_000, 16), np.float32)
    matrix[287_654, 3] = np.nan
    with pytest.raises(InputError, match="row 287654, column 'c3'"):
        Pool(matrix, columns=[f"c{i}" for i in range(16)])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"metric": "manhattan"}, "unknown metric 'manhattan'"),
        ({"ids": ["a", "b"]}, "2 ids for 3 rows"),
        ({"ids": ["a", "b", "a"]}, "'a' appears twice, in rows 0 and 2"),
        ({"ids": ["a", "", "c"]}, "row 1: id ''"),
        ({"ids": ["a", 1, "c"]}, "row 1: id 1"),
        ({"ids": ["a", None, "c"]}, "row 1: id None"),
        ({"ids": ["a", "\ud800", "c"]}, "row 1"),
        ({"ids": ["a", "b\0", "c"]}, "row 1"),
        ({"contents": {"text": ["p", "q"]}}, "'text' has 2 values for 3 rows"),
        ({"contents": {"text": iter(["p", "q"])}}, "'text' has 2 values for 3 rows"),
    ],
)
def test_bad_settings(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Pool(POINTS, **settings)


# -- what is stored ----------------------------------------------------------------------------------


def test_cosine_scales_every_row_to_length_one() -> None:
    pool = Pool([[3.0, 4.0], [1e-200, 0.0], [-1e15, 1e15], [0.0, 2.0]], metric="cosine")
    assert np.allclose(np.linalg.norm(pool.vectors, axis=1), 1, atol=1e-6)
    assert np.allclose(pool.vectors[0], [0.6, 0.8])
    assert np.array_equal(pool.vectors[1], [1, 0])


def test_cosine_refuses_a_row_of_zeros() -> None:
    with pytest.raises(InputError, match="row 1 is all zeros"):
        Pool([[1.0, 0.0], [0.0, -0.0]], metric="cosine")
    assert len(Pool([[1.0, 0.0], [0.0, 0.0]])) == 2


@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 8), st.integers(1, 3)),
        elements=st.floats(-(2.0**20), 2.0**20, width=32),
    ),
    st.sampled_from([0.0, 1.0, -3.0, 1e4, 2.0**24, -1e7, 123456.789, 1e12]),
)
def test_centring_changes_no_difference(small: np.ndarray, offset: float) -> None:
    """Float32 values minus the origin are exact, so that every difference (and every tie) stays as it was."""
    values = (small.astype(np.float64) + offset).astype(np.float32)
    pool = Pool(values)
    stored, exact = pool.vectors.astype(np.float64), values.astype(np.float64)
    assert np.array_equal(stored + pool.origin, exact)
    assert np.array_equal(stored[:, None] - stored[None], exact[:, None] - exact[None])


def test_columns_far_from_zero_come_close_to_it() -> None:
    pool = Pool(np.array([[1e6 + 1, 0.0], [1e6 + 2, 5.0]]))
    assert np.abs(pool.vectors[:, 0]).max() < 2
    assert pool.origin[1] == 0
    assert np.array_equal(pool.encode([[1e6 + 1, 0.0]])[0], pool.vectors[0])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_encode_gives_what_is_stored(metric: str) -> None:
    pool = Pool(POINTS, metric=metric)
    assert np.array_equal(pool.encode(POINTS), pool.vectors)
    with pytest.raises(InputError, match="3 columns, the pool has 2"):
        pool.encode([[1.0, 2.0, 3.0]])
    with pytest.raises(InputError, match="row 0, column 0"):
        pool.encode([[np.nan, 1.0]])


# -- growing and shrinking ---------------------------------------------------------------------------


def test_extend() -> None:
    pool = Pool(POINTS, ids=["a", "b", "c"], contents={"text": ["p", "q", "r"]})
    assert pool.extend([[9.0, 9.0]], ids=["d"], contents={"text": ["s"]}).tolist() == [3]
    assert pool.ids == ["a", "b", "c", "d"]
    assert pool.content(3) == {"text": "s"}
    assert pool.rows(["d"]).tolist() == [3]
    assert np.array_equal(pool.vectors[3], [9, 9])


@pytest.mark.parametrize(
    ("vectors", "more", "says"),
    [
        ([[1.0]], {"ids": ["d"], "contents": {"text": ["s"]}}, "1 columns, the pool has 2"),
        ([[1.0, np.nan]], {"ids": ["d"], "contents": {"text": ["s"]}}, "row 0, column 1"),
        ([[1.0, 1.0]], {"contents": {"text": ["s"]}}, "give ids"),
        ([[1.0, 1.0]], {"ids": ["a"], "contents": {"text": ["s"]}}, "'a' appears twice"),
        ([[1.0, 1.0]], {"ids": ["d", "e"], "contents": {"text": ["s"]}}, "2 ids for 1 rows"),
        ([[1.0, 1.0]], {"ids": ["d"]}, "content columns"),
        ([[1.0, 1.0]], {"ids": ["d"], "contents": {"text": []}}, "content columns"),
        ([[1.0, 1.0]], {"ids": ["d"], "contents": {"other": ["s"]}}, "content columns"),
    ],
)
def test_a_refused_extension_changes_nothing(vectors: Any, more: dict[str, Any], says: str) -> None:
    pool = Pool(POINTS, ids=["a", "b", "c"], contents={"text": ["p", "q", "r"]})
    before = pool.fingerprint()
    with pytest.raises(InputError, match=says):
        pool.extend(vectors, **more)
    assert (len(pool), pool.ids, pool.contents) == (3, ["a", "b", "c"], {"text": ["p", "q", "r"]})
    assert pool.fingerprint() == before


def test_withdraw_and_without() -> None:
    pool = Pool(POINTS, ids=["a", "b", "c"], contents={"text": ["p", "q", "r"]})
    smaller = pool.without([1])
    assert np.isnan(smaller.vectors[1]).all()
    assert smaller.withdrawn.tolist() == [False, True, False]
    assert smaller.content(1) == {"text": None}
    assert smaller.ids == pool.ids
    assert not pool.withdrawn.any()
    assert pool.content(1) == {"text": "q"}
    pool.withdraw([0, 2])
    assert pool.withdrawn.tolist() == [True, False, True]
    assert smaller.withdrawn.tolist() == [False, True, False]


@pytest.mark.parametrize("rows", [[3], [-1], [0.5], ["a"], [10**30], [[0]]])
def test_rows_to_withdraw_are_rows_of_the_pool(rows: Any) -> None:
    pool = Pool(POINTS, contents={"text": ["p", "q", "r"]})
    with pytest.raises(InputError, match="row"):
        pool.withdraw(rows)
    assert not pool.withdrawn.any()
    assert pool.contents == {"text": ["p", "q", "r"]}


def test_nothing_to_withdraw() -> None:
    pool = Pool(POINTS)
    pool.withdraw([])
    assert not pool.withdrawn.any()


def test_withdrawing_leaves_the_file_alone(tmp_path: Any) -> None:
    np.save(tmp_path / "p.npy", np.array(POINTS, np.float32))
    before = (tmp_path / "p.npy").read_bytes()
    for mode in ("r", "r+"):
        Pool(np.load(tmp_path / "p.npy", mmap_mode=mode)).withdraw([1])
    assert (tmp_path / "p.npy").read_bytes() == before


def test_fingerprint() -> None:
    pool = Pool(POINTS, ids=["a", "b", "c"])
    assert pool.fingerprint() == Pool(np.array(POINTS, np.float64), ids=["a", "b", "c"]).fingerprint()
    renamed = Pool(POINTS, ids=["a", "b", "d"]).fingerprint()
    assert renamed["ids"] != pool.fingerprint()["ids"]
    assert renamed["vectors"] == pool.fingerprint()["vectors"]
    moved = Pool([[0.0, 1.0], [3.0, 4.0], [6.0, 8.5]], ids=["a", "b", "c"]).fingerprint()
    assert moved["ids"] == pool.fingerprint()["ids"]
    assert moved["vectors"] != pool.fingerprint()["vectors"]
    assert Pool(POINTS, ids=["a", "b", "c"], metric="cosine").fingerprint() != pool.fingerprint()
    before = pool.fingerprint()
    pool.extend([[9.0, 9.0]], ids=["d"])
    assert pool.fingerprint(3) == before
    assert pool.fingerprint() != before


@given(st.integers(0, 1000), st.integers(0, 5000), st.integers(1, 10_000))
def test_blocks_cover_every_row_once(count: int, row_bytes: int, block_bytes: int) -> None:
    rows = [row for block in blocks(count, row_bytes, block_bytes) for row in range(count)[block]]
    assert rows == list(range(count))
