"""Sparse pools and pools of bits: the pool's contract, kind by kind, and whole runs on them."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from activecover.campaign import Campaign
from activecover.cli import main
from activecover.errors import InputError
from activecover.learners import OneClass, make_learner
from activecover.pool import PackedBits, Pool, bits_set, load_pool
from activecover.simulate import simulate, simulate_one
from activecover.testing import random_bit_pool, random_sparse_pool

ROWS = np.array([[0.0, 2, 0, 1], [3, 0, 0, 0], [0, 2, 0, 1], [0, 0, 5, 5]])
BITS = ROWS != 0
DOCS = Path(__file__).resolve().parents[2] / "docs" / "pools.md"


def of_kind(kind: str, rows: Any = ROWS, **more: Any) -> Pool:
    if kind == "bits":
        return Pool(np.asarray(rows) != 0, metric="jaccard", **more)
    return Pool(rows if kind == "dense" else sparse.csr_array(rows), **more)


def plain(kind: str, vectors: Any, dimensions: int = 4) -> Any:
    """Stored vectors as lists."""
    if kind == "bits":
        return [bits_set(row, dimensions).tolist() for row in vectors]
    return (vectors.toarray() if kind == "sparse" else vectors).tolist()


KINDS = pytest.mark.parametrize("kind", ["dense", "sparse", "bits"])


# -- the contract, for every kind --------------------------------------------------------------------


@KINDS
def test_the_kind_is_told(kind: str) -> None:
    pool = of_kind(kind)
    assert pool.kind == kind
    assert (len(pool), pool.dimensions) == (4, 4)
    assert (kind in repr(pool)) == (kind != "dense")


@KINDS
def test_encode_and_take_give_what_is_stored(kind: str) -> None:
    pool = of_kind(kind)
    stored = plain(kind, pool.vectors)
    assert plain(kind, pool.encode(ROWS if kind != "bits" else BITS)) == stored
    assert plain(kind, pool.take([2, 0, 2])) == [stored[2], stored[0], stored[2]]
    assert pool.take([]).shape[0] == 0
    with pytest.raises(InputError, match="3 columns, the pool has 4"):
        pool.encode(np.eye(3))


@KINDS
def test_what_is_stored_is_read_only_and_our_own(kind: str) -> None:
    given_rows: Any = np.array(ROWS, np.float32)
    if kind == "bits":
        given_rows = PackedBits(np.packbits(np.repeat(BITS, 16, axis=1), axis=1), 64)
        pool = Pool(given_rows, metric="jaccard")
        touch = given_rows.packed
    else:
        given_rows = sparse.csr_array(given_rows) if kind == "sparse" else given_rows
        pool, touch = Pool(given_rows), given_rows.data if kind == "sparse" else given_rows
    before = pool.fingerprint()
    touch[:] = 0
    assert pool.fingerprint() == before
    stored = pool.vectors.data if kind == "sparse" else pool.vectors
    with pytest.raises(ValueError, match="read-only"):
        stored[:1] = 1


@KINDS
def test_extend(kind: str) -> None:
    pool = of_kind(kind, ids=list("abcd"), contents={"text": list("pqrs")})
    first = pool.fingerprint()
    more = np.array([[0, 0, 0, 0], [1, 1, 0, 0]])
    assert pool.extend(more, ids=["e", "f"], contents={"text": ["t", "u"]}).tolist() == [4, 5]
    whole = of_kind(kind, np.vstack([ROWS, more]), ids=list("abcdef"))
    assert pool.fingerprint() == whole.fingerprint()
    assert pool.fingerprint(4) == first
    assert pool.content(5) == {"text": "u"}
    with pytest.raises(InputError, match="give ids"):
        pool.extend(more, contents={"text": ["t", "u"]})
    assert len(pool) == 6


@KINDS
def test_withdraw_overwrites_and_without_copies(kind: str) -> None:
    pool = of_kind(kind, contents={"text": list("pqrs")})
    before = pool.fingerprint()
    smaller = pool.without([3, 1])
    assert pool.fingerprint() == before
    assert smaller.withdrawn.tolist() == [False, True, False, True]
    assert smaller.content(3) == {"text": None}
    assert plain(kind, smaller.take([0, 2])) == plain(kind, pool.take([0, 2]))
    erased = smaller.take([1, 3])
    if kind == "bits":
        assert not erased.any()
    elif kind == "sparse":
        assert np.isnan(erased.data).all()
        assert not erased.indices.any()
    else:
        assert np.isnan(erased).all()
    smaller.extend(np.ones((1, 4)), contents={"text": ["t"]})
    assert smaller.withdrawn.tolist() == [False, True, False, True, False]
    assert smaller.id(4) == "4"


@KINDS
def test_fingerprints_tell_pools_apart(kind: str) -> None:
    prints = {of_kind(kind).fingerprint()["vectors"], of_kind(kind, ROWS[[1, 0, 2, 3]]).fingerprint()["vectors"]}
    changed = ROWS.copy()
    changed[0, 0] = 1
    prints.add(of_kind(kind, changed).fingerprint()["vectors"])
    assert len(prints) == 3


def test_fingerprints_do_not_depend_on_how_the_pool_came() -> None:
    csr = sparse.csr_array(ROWS)
    wide = sparse.csr_array((csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), shape=csr.shape)
    forms = [csr, wide, csr.astype(np.float32), sparse.csr_matrix(csr)]
    forms += [csr.asformat(name) for name in ("csc", "coo", "lil", "dok", "dia", "bsr")]
    assert len({json.dumps(Pool(form).fingerprint()) for form in forms}) == 1
    bits = [BITS, BITS.astype(np.uint8), BITS.astype(float), sparse.csr_array(BITS), csr.astype(bool).tocsc()]
    bits += [PackedBits(np.packbits(BITS, axis=1), 4)]
    assert len({json.dumps(Pool(form, metric="jaccard").fingerprint()) for form in bits}) == 1


def test_a_dense_pool_keeps_its_fingerprint() -> None:
    """Label logs in the world rest on it: it must never change."""
    pool = Pool([[0.0, 1.0], [3, 4], [6, 8]], ids=["a", "b", "c"])
    assert pool.fingerprint() == {
        "ids": "0c3860d477f2c08b1e1c0090e695a3b7",
        "vectors": "f5eddfefd385fca4173364d973b83687",
    }


# -- sparse ------------------------------------------------------------------------------------------


def test_sparse_rows_are_brought_into_one_form() -> None:
    """Columns ascending, the same column summed, zeros (and what float32 makes of 1e-60) dropped."""
    columns = [5, 1, 5, 0, 3, 3, 2]
    values = [1.0, 2.0, 0.5, 0.0, 4.0, -4.0, 1e-60]
    pool = Pool(sparse.csr_array((values, columns, [0, 3, 7]), shape=(2, 6)))
    stored = pool.vectors
    assert (stored.indices.tolist(), stored.data.tolist(), stored.indptr.tolist()) == ([1, 5], [2.0, 1.5], [0, 2, 2])
    assert (stored.data.dtype, stored.indices.dtype) == (np.float32, np.int32)
    assert not pool.origin.any()


def test_a_matrix_that_says_wrong_things_of_itself_is_not_believed() -> None:
    matrix = sparse.csr_array((np.ones(3, np.float32), [2, 0, 2], [0, 3]), shape=(1, 3))
    matrix.has_canonical_format = True
    stored = Pool(matrix).vectors
    assert (stored.indices.tolist(), stored.data.tolist()) == ([0, 2], [1, 2])


@given(st.integers(0, 2**32 - 1))
def test_cosine_scales_every_row_to_length_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    scale = 10.0 ** int(random.integers(-100, 14))
    values = random.random((20, 50)) * (random.random((20, 50)) < 0.2)
    matrix = sparse.csr_array(values) * scale
    matrix = matrix[np.diff(matrix.indptr) > 0]
    pool = Pool(matrix, metric="cosine")
    assert np.allclose(np.sqrt((pool.vectors**2).sum(axis=1)), 1, atol=1e-6)
    dense = Pool(matrix.toarray(), metric="cosine").vectors
    assert np.allclose(pool.vectors.toarray(), dense, atol=1e-7)
    for row in range(len(pool)):
        alone = pool.encode(matrix[[row]])
        assert alone.data.tolist() == pool.take([row]).data.tolist(), "a row depends on those beside it"


@pytest.mark.parametrize(
    ("matrix", "metric", "says"),
    [
        (sparse.csr_array([[1.0, 0], [0, np.nan]]), "euclidean", "row 1, column 1: nan is not a finite number"),
        (sparse.csr_array([[1.0, 0], [0, np.inf]]), "cosine", "row 1, column 1: inf is not a finite number"),
        (sparse.coo_array([[1.0, 0], [-1e16, 0]]), "euclidean", "row 1, column 0: -1e\\+16 is beyond"),
        (sparse.csr_array(([9e14, 9e14], [1, 1], [0, 2]), shape=(1, 2)), "euclidean", "row 0, column 1: 1.8e\\+15"),
        (sparse.csr_array([[1.0, 0], [0, 0]]), "cosine", "row 1 is all zeros: cosine needs a direction"),
        (sparse.csr_array(([1.0, 0.0], [0, 1], [0, 1, 2]), shape=(2, 2)), "cosine", "row 1 is all zeros"),
        (sparse.csr_array((0, 3)), "euclidean", "the pool is empty: 0 rows"),
        (sparse.csr_array((3, 0)), "euclidean", "the pool is empty: 3 rows, 0 vector columns"),
        (sparse.csr_array([[1j]]), "euclidean", "not real numbers"),
        (sparse.coo_array(np.ones(3)), "euclidean", "1 dimension"),
        (sparse.coo_array((1, 2**40)), "euclidean", "hash them to fewer"),
    ],
)
def test_bad_sparse_matrices(matrix: Any, metric: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Pool(matrix, metric=metric)


@pytest.mark.parametrize(("part", "value"), [("indices", 9), ("indices", -1), ("indptr", 7), ("indptr", -1)])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_indices_that_point_nowhere_are_refused(form: str, part: str, value: int) -> None:
    matrix = sparse.csr_array(ROWS).asformat(form)
    getattr(matrix, part)[1] = value
    with pytest.raises(InputError, match="damaged"):
        Pool(matrix)


def test_a_dense_pool_takes_no_sparse_vectors_but_a_sparse_one_takes_dense_ones() -> None:
    with pytest.raises(InputError, match="the pool holds dense vectors"):
        Pool(ROWS).encode(sparse.csr_array(ROWS))
    assert of_kind("sparse").encode(ROWS.tolist()).toarray().tolist() == ROWS.tolist()


# -- bits --------------------------------------------------------------------------------------------


@given(st.integers(1, 20), st.integers(1, 200), st.integers(0, 2**32 - 1))
def test_bits_are_kept_as_given(count: int, dimensions: int, seed: int) -> None:
    bits = np.random.default_rng(seed).random((count, dimensions)) < 0.3
    for given_bits in (bits, PackedBits(np.packbits(bits, axis=1), dimensions), sparse.csc_array(bits)):
        pool = Pool(given_bits, metric="jaccard")
        assert plain("bits", pool.vectors, dimensions) == [np.flatnonzero(row).tolist() for row in bits]
        assert pool.vectors.shape == (count, -(-dimensions // 64))


@pytest.mark.parametrize(
    ("bits", "says"),
    [
        ([[0, 1], [1, 2]], "row 1, column 1: 2 is neither 0 nor 1"),
        ([[0, -1]], "row 0, column 1: -1 is neither"),
        ([[0.5, 0]], "row 0, column 0: 0.5 is neither"),
        ([[0, np.nan]], "row 0, column 1: nan is neither"),
        (sparse.csr_array([[0, 3]]), "row 0, column 1: 3 is neither"),
        (PackedBits(np.zeros((2, 3), np.uint8), 16), "16 bits take 2 bytes a row, not 3"),
        (PackedBits(np.zeros((2, 2), np.int64), 16), "packed bits of type int64"),
        (PackedBits(np.array([[0], [1]], np.uint8), 7), "row 1 has bits beyond the 7 stated"),
        (PackedBits(np.zeros((2, 1), np.uint8), 0), "0 bits per row"),
        (PackedBits(np.zeros((2, 1), np.uint8), 2.5), "2.5 bits per row"),  # type: ignore[arg-type]
        (PackedBits(np.zeros((0, 1), np.uint8), 8), "the pool is empty"),
        (np.zeros((2, 0), bool), "the pool is empty|0 bits"),
        ([["a"]], "not real numbers"),
        (5, "0 dimension"),
    ],
)
def test_bad_bits(bits: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Pool(bits, metric="jaccard")


def test_bits_have_a_metric_of_their_own() -> None:
    with pytest.raises(InputError, match="packed bits need the metric 'jaccard', not 'euclidean'"):
        Pool(PackedBits(np.zeros((1, 1), np.uint8), 8))
    assert Pool(BITS).kind == "dense"


def test_a_memory_map_of_packed_bits_is_used_as_it_is(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).random((50, 128)) < 0.2
    np.save(tmp_path / "p.npy", np.packbits(bits, axis=1))
    before = (tmp_path / "p.npy").read_bytes()
    pool = load_pool(tmp_path / "p.npy", metric="jaccard", bits=128).pool
    assert np.shares_memory(pool.vectors, pool._matrix._words)  # type: ignore[attr-defined]
    assert isinstance(pool._matrix._words, np.memmap)  # type: ignore[attr-defined]
    assert pool.fingerprint() == Pool(bits, metric="jaccard").fingerprint()
    pool.withdraw([3])
    assert not pool.vectors[3].any()
    assert (tmp_path / "p.npy").read_bytes() == before


# -- files and the command line ----------------------------------------------------------------------


def test_a_sparse_file_gives_a_sparse_pool(tmp_path: Path) -> None:
    for form in ("csr", "csc", "coo"):
        sparse.save_npz(tmp_path / "x.npz", sparse.csr_array(ROWS).asformat(form))
        pool = load_pool(tmp_path / "x.npz").pool
        assert pool.fingerprint() == of_kind("sparse").fingerprint()
    (tmp_path / "t.csv").write_text("name,text\na,x\nb,y\nc,z\nd,w\n")
    pool = load_pool(tmp_path / "t.csv", id_col="name", vectors=tmp_path / "x.npz", metric="cosine").pool
    assert (pool.kind, pool.metric, pool.ids, pool.content(1)["text"]) == ("sparse", "cosine", list("abcd"), "y")


def test_files_of_bits(tmp_path: Path) -> None:
    expected = of_kind("bits").fingerprint()
    np.save(tmp_path / "b.npy", BITS)
    np.savez(tmp_path / "p.npz", X=np.packbits(BITS, axis=1))
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_array(BITS))
    assert load_pool(tmp_path / "b.npy", metric="jaccard").pool.fingerprint() == expected
    assert load_pool(tmp_path / "p.npz", metric="jaccard", bits=4).pool.fingerprint() == expected
    assert load_pool(tmp_path / "s.npz", metric="jaccard").pool.fingerprint() == expected
    with pytest.raises(InputError, match=r"p\.npz: row 0, column 0: 80 is neither 0 nor 1; for packed bits .*--bits"):
        load_pool(tmp_path / "p.npz", metric="jaccard")
    with pytest.raises(InputError, match=r"p\.npz: packed bits need the metric 'jaccard'"):
        load_pool(tmp_path / "p.npz", bits=4)
    with pytest.raises(InputError, match=r"s\.npz: packed bits of type"):
        load_pool(tmp_path / "s.npz", metric="jaccard", bits=4)


def test_a_damaged_sparse_file_is_named(tmp_path: Path) -> None:
    csr = sparse.csr_array(ROWS)
    np.savez(tmp_path / "x.npz", data=csr.data, indices=csr.indices + 3, indptr=csr.indptr, format=b"csr", shape=(4, 4))
    with pytest.raises(InputError, match=r"x\.npz"):
        load_pool(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", data=csr.data, format=b"csr", shape=(4, 4))
    with pytest.raises(InputError, match=r"x\.npz: cannot be read"):
        load_pool(tmp_path / "x.npz")


def test_the_command_line_simulates_on_every_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix, truth = messages(300)
    sparse.save_npz(tmp_path / "x.npz", matrix)
    np.save(tmp_path / "b.npy", np.packbits(matrix.toarray() > 0, axis=1))
    np.save(tmp_path / "y.npy", truth)
    for pool, more in (("x.npz", ["--metric", "cosine"]), ("b.npy", ["--metric", "jaccard", "--bits", str(WORDS)])):
        arguments = ["simulate", "--pool", str(tmp_path / pool), "--labels", str(tmp_path / "y.npy"), "--label", "True"]
        assert main([*arguments, "--explore", "20", "--json", *more]) == 0
        assert json.loads(capsys.readouterr().out)
    assert main([*arguments, "--metric", "jaccard"]) == 2
    assert "--bits" in capsys.readouterr().err
    assert main([*arguments, "--bits", str(WORDS)]) == 2
    assert "'jaccard', not 'euclidean'" in capsys.readouterr().err
    assert main([*arguments, *more, "--learner", "A-IF"]) == 2
    assert "needs dense vectors" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["sparse", "bits"])
def test_find_shows_what_there_is_and_no_zeros(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix, _ = messages(30)
    sparse.save_npz(tmp_path / "x.npz", matrix > 0 if kind == "bits" else matrix)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\nn\nq\n"))
    metric = "jaccard" if kind == "bits" else "cosine"
    assert main(["find", "--pool", str(tmp_path / "x.npz"), "--metric", metric, "--explore", "5"]) == 0
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) < 150
    assert (f"of {WORDS} bits" in shown) == (kind == "bits")


# -- whole runs --------------------------------------------------------------------------------------

WORDS = 240


def messages(count: int, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Short texts as TF-IDF: most chat, some in the words of advertising, which are rare elsewhere."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    random = np.random.default_rng(seed)
    chat, offers = [f"w{i:03}" for i in range(200)], [f"z{i:02}" for i in range(40)]
    spam = random.random(count) < 0.15
    texts = []
    for is_spam in spam:
        common = random.choice(chat, random.integers(3, 12))
        texts.append(" ".join([*common, *random.choice(offers, random.integers(3, 8) * is_spam)]))
    vectorizer = TfidfVectorizer(vocabulary=chat + offers)
    return sparse.csr_array(vectorizer.fit_transform(texts)), spam


def molecules(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sparse random bits; the active ones share most of a scaffold's."""
    random = np.random.default_rng(seed)
    bits = random.random((count, 512)) < 0.04
    active = random.random(count) < 0.1
    scaffold = random.choice(512, 25, replace=False)
    bits[np.ix_(active, scaffold)] |= random.random((active.sum(), 25)) < 0.7
    return bits, active


def task(kind: str, count: int = 400) -> tuple[Pool, np.ndarray, Any]:
    if kind == "sparse":
        matrix, truth = messages(count)
        return Pool(matrix, metric="cosine", ids=[f"m{i}" for i in range(count)]), truth, matrix
    bits, truth = molecules(count)
    return Pool(bits, metric="jaccard", ids=[f"m{i}" for i in range(count)]), truth, bits


RUNS = pytest.mark.parametrize("kind", ["sparse", "bits"])


@RUNS
def test_simulations_find_everything_and_beat_chance(kind: str) -> None:
    pool, truth, _ = task(kind)
    needed = {}
    for learner in ("explore-commit", "offline", "passive", "optimal"):
        trace = simulate(pool, truth, learner, batch=5, explore=40).traces[0]
        assert trace.found == truth.sum()
        needed[learner] = len(trace.rows)
    assert needed["optimal"] <= needed["explore-commit"] < needed["passive"]


@RUNS
def test_a_run_from_outside_seeds_and_one_row_at_a_time_is_the_definition(kind: str) -> None:
    """Every row asked is the nearest to a known positive, by a loop that knows only the definition."""
    from activecover.testing import BruteForce

    pool, truth, given_rows = task(kind, 120)
    outside = pool.encode(given_rows[np.flatnonzero(truth)[:1]])
    trace = simulate_one(pool, truth, make_learner("explore-commit", explore=0), outside=outside, batch=1)
    model = BruteForce(pool)
    model.add([-1], outside)
    for row in trace.rows.tolist():
        assert model.nearest(1, set())[0][1] == row
        model.open.remove(row)
        if truth[row]:
            model.add([row], pool.take([row]))


@RUNS
def test_a_campaign_and_its_log(kind: str, tmp_path: Path) -> None:
    pool, truth, given_rows = task(kind)
    seed = given_rows[np.flatnonzero(truth)[:1]]

    def answer(campaign: Campaign, batches: int) -> None:
        for _ in range(batches):
            items = campaign.ask(4)
            names = [item.id for item in items]
            campaign.tell(names, truth[pool.rows(names)])

    with Campaign(pool, "explore-commit", log=tmp_path / "log.jsonl", explore=8, external_positives=seed) as campaign:
        answer(campaign, 20)
        campaign.undo(2)
        expected = [item.id for item in campaign.ask(10)]
        assert "known positive" in campaign.ask(10)[-1].reason or "nearest to m" in campaign.ask(10)[-1].reason
    with Campaign(pool, log=tmp_path / "log.jsonl", external_positives=seed) as again:
        assert [item.id for item in again.ask(10)] == expected
        answer(again, 3)
        new = pool.extend(given_rows[:3], ids=["x", "y", "z"])
        assert new.tolist() == [400, 401, 402]
        again.ask(4)
    with pytest.raises(InputError, match="other known positives"):
        Campaign(pool, log=tmp_path / "log.jsonl", external_positives=given_rows[:2])
    other, _, _ = task(kind, 401)
    with pytest.raises(InputError):
        Campaign(other, log=tmp_path / "log.jsonl", external_positives=seed)


@RUNS
def test_erased_negatives_change_nothing(kind: str) -> None:
    """A learner that reads no negatives goes the same way when they are gone."""
    pool, truth, _ = task(kind)
    learner = make_learner("explore-commit", explore=30).begin(pool, seed=3)
    other = task(kind)[0]
    twin = make_learner("explore-commit", explore=30).begin(other, seed=3)
    from activecover.learners import Labels

    for step in range(12):
        rows = learner.propose(10).rows
        assert twin.propose(10).rows.tolist() == rows.tolist()
        labels = Labels.of(np.arange(10) + 10 * step, rows, truth[rows], step < 3)
        learner.tell(labels)
        twin.tell(labels)
        other.withdraw(rows[~truth[rows]])


@pytest.mark.parametrize("kind", ["sparse", "bits"])
def test_a_learner_that_needs_dense_vectors_says_so(kind: str) -> None:
    from sklearn.ensemble import IsolationForest

    pool, truth, _ = task(kind)
    with pytest.raises(InputError, match=f"one-class learner needs dense vectors, .*kind '{kind}': reduce it first"):
        OneClass(IsolationForest()).begin(pool)
    with pytest.raises(InputError, match="needs dense vectors"):
        simulate(pool, truth, "A-LS")


@pytest.mark.parametrize("make", [random_sparse_pool, random_bit_pool])
def test_the_suites_pools_are_what_they_say(make: Any) -> None:
    """Among them are duplicates, rows with nothing in them, and every metric of the kind."""
    pools = [make(np.random.default_rng(seed)) for seed in range(60)]
    assert {pool.metric for pool in pools} == ({"jaccard"} if make is random_bit_pool else {"euclidean", "cosine"})
    lengths = [pool.vectors.any(axis=1) if pool.kind == "bits" else np.diff(pool.vectors.indptr) for pool in pools]
    assert any((length == 0).any() for length in lengths)


def test_the_page_on_pools_works_as_shown() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
