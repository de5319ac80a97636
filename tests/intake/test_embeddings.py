"""Embeddings: deterministic, stored without pickle, and the same for a row whatever lies beside it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from activecover.errors import InputError, MissingExtraError
from activecover.intake import (
    EMBEDDINGS,
    Embedding,
    ImageEmbedding,
    Recipe,
    ScaledColumns,
    SentenceEmbedding,
    SmilesEmbedding,
    Table,
    TextEmbedding,
    TfidfEmbedding,
    choose_embedding,
    load_embedding,
    make_embedding,
    make_pool,
)
from activecover.intake import _catalogue as catalogue
from activecover.pool import PackedBits, Pool

WORDS = [
    "river",
    "stone",
    "cloud",
    "maple",
    "amber",
    "quiet",
    "signal",
    "copper",
    "velvet",
    "harbor",
    "ember",
    "lantern",
]
MOLECULES = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCCCCCC", "O=C1O[Al]23(OC1=O)(OC(=O)C(=O)O2)OC(=O)C(=O)O3"]


def texts(count: int, seed: int = 0) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, size=12)) for _ in range(count)]


def example(rows: int = 60, seed: int = 0) -> Table:
    random = np.random.default_rng(seed)
    return Table.of(
        {
            "x0": random.normal(size=rows),
            "x1": [f"{value:.3f}" for value in random.normal(5, 2, size=rows)],
            "kind": random.choice(["red", "green"], size=rows).tolist(),
            "story": texts(rows, seed),
            "smiles": random.choice(MOLECULES, size=rows).tolist(),
        }
    )


def plain(vectors: Any) -> np.ndarray:
    if isinstance(vectors, PackedBits):
        return vectors.packed
    return vectors.toarray() if sparse.issparse(vectors) else np.asarray(vectors)


CASES = pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("vectors", {"columns": ["x*"]}),
        ("columns", {"columns": ["x0", "x1", "kind"]}),
        ("text", {"dimensions": 8, "seed": 3}),
        ("tfidf", {}),
        ("smiles", {}),
    ],
)


def build(name: str, settings: dict[str, Any]) -> Embedding:
    if name == "smiles":
        pytest.importorskip("rdkit", reason="rdkit is not installed")
    return EMBEDDINGS.build(name, **settings)


@CASES
def test_stored_and_taken_up_again(tmp_path: Path, name: str, settings: dict[str, Any]) -> None:
    embedding = build(name, settings).fit(example())
    later = example(20, seed=9)
    expected = plain(embedding.transform(later))
    embedding.save(tmp_path / "kept")
    for again in (load_embedding(tmp_path / "kept"), type(embedding).load(tmp_path / "kept")):
        assert type(again) is type(embedding)
        assert again.parameters() == embedding.parameters()
        assert again.used_ == embedding.used_
        assert np.array_equal(plain(again.transform(later)), expected)
    assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == ["embedding.json", "embedding.npz"]
    json.loads((tmp_path / "kept" / "embedding.json").read_bytes())


@CASES
def test_the_same_again_and_row_by_row(name: str, settings: dict[str, Any]) -> None:
    table, embedding = example(), build(name, settings).fit(example())
    whole = plain(embedding.transform(table))
    assert np.array_equal(plain(build(name, settings).fit(table).transform(table)), whole)
    for row in (0, 17, 59):
        one = Table.of({column: table.columns[column][row : row + 1] for column in table.names})
        assert np.array_equal(plain(embedding.transform(one))[0], whole[row])


def test_damage_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no embedding is stored here"):
        load_embedding(tmp_path)
    TfidfEmbedding().fit(example()).save(tmp_path)
    with pytest.raises(InputError, match="holds an embedding 'tfidf', not 'text'"):
        TextEmbedding.load(tmp_path)
    settings = tmp_path / "embedding.json"
    kept = settings.read_bytes()
    settings.write_bytes(kept.replace(b'"format": 1', b'"format": 9'))
    with pytest.raises(InputError, match=r"stored by a newer version \(format 9\)"):
        load_embedding(tmp_path)
    settings.write_bytes(kept[: len(kept) // 2])
    with pytest.raises(InputError, match="the stored embedding is damaged"):
        load_embedding(tmp_path)
    settings.write_bytes(kept)
    arrays = (tmp_path / "embedding.npz").read_bytes()
    (tmp_path / "embedding.npz").write_bytes(arrays[:-1] + b"x")
    with pytest.raises(InputError, match="arrays are damaged"):
        load_embedding(tmp_path)


# -- columns ------------------------------------------------------------------------------------------


def test_columns_are_brought_to_one_scale() -> None:
    table = Table.of(
        {
            "wide": ["1000", "3000", "?", "2000"],
            "kind": ["a", "b", "a", ""],
            "same": ["7", "7", "7", "7"],
            "row": ["5", "6", "7", "8"],
            "label": ["1", "0", "0", "1"],
        }
    )
    embedding = ScaledColumns().fit(table, skip=["label"])
    assert embedding.dimension_names == ["wide", "wide is missing", "kind = ", "kind = a", "kind = b"]
    expected = np.array([[-1.5, 0, 0, 1, 0], [1.5, 0, 0, 0, 1], [0, 1, 0, 1, 0], [0, 0, 1, 0, 0]]) / [1.5, 1, 1, 1, 1]
    expected[:, 0] *= np.sqrt(1.5)
    assert np.allclose(embedding.transform(table), expected)
    assert embedding.notes_ == [
        "column 'same' is left out: it has only one value",
        "column 'row' is left out: it counts the rows",
    ]
    later = Table.of({"wide": ["", "5000"], "kind": ["new", "b"]})
    assert embedding.transform(later)[0].tolist() == [0, 1, 0, 0, 0]


def test_free_text_is_no_category() -> None:
    names = [f"name {row}" for row in range(200)]
    table = Table.of({"n": list(np.arange(200) ** 2), "name": names})
    embedding = ScaledColumns().fit(table)
    assert embedding.used_ == ["n"]
    assert embedding.notes_ == ["column 'name' is left out: 200 distinct words are too many for categories"]
    with pytest.raises(InputError, match="no column has numbers or categories that differ"):
        ScaledColumns(["name"]).fit(table)


@given(st.lists(st.floats(-(2.0**40), 2.0**40, width=32) | st.none(), min_size=2, max_size=30))
def test_any_numbers_are_standardised(values: list[float | None]) -> None:
    table = Table.of({"x": values, "kind": [str(row % 2) + "!" for row in range(len(values))]})
    embedding = ScaledColumns().fit(table)
    vectors = embedding.transform(table)
    assert np.isfinite(vectors).all()
    if "x" in embedding.used_ and None not in values:
        assert abs(vectors[:, 0].astype(np.float64).mean()) < 1e-3
        assert abs(vectors[:, 0].astype(np.float64).std() - 1) < 1e-3


@pytest.mark.parametrize("value", ["1e16", "inf"])
def test_numbers_out_of_range_are_named(value: str) -> None:
    with pytest.raises(InputError, match=r"table: row 1, column 'x': .* is beyond ±1e\+15; rescale the column"):
        ScaledColumns().fit(Table.of({"x": ["1", value]}))


def test_a_word_where_numbers_were_is_named() -> None:
    embedding = ScaledColumns().fit(Table.of({"x": ["1", "2", "4"]}))
    with pytest.raises(InputError, match=r"table: row 1, column 'x': 'many' is not a number"):
        embedding.transform(Table.of({"x": ["3", "many"]}))
    with pytest.raises(InputError, match=r"no column 'x'"):
        embedding.transform(Table.of({"y": ["3"]}))


# -- text ---------------------------------------------------------------------------------------------


def test_weights_are_those_of_scikit_learn() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    stories = texts(80)
    table = Table.of({"story": stories})
    ours = TfidfEmbedding().fit(table).transform(table)
    theirs = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, strip_accents="unicode")
    assert np.allclose(ours[:, :-1].toarray(), theirs.fit_transform(stories).toarray())


@pytest.mark.parametrize("name", ["text", "tfidf"])
def test_texts_without_a_known_word_are_alike_and_far_from_all_others(name: str) -> None:
    table = Table.of({"story": [*texts(60), "", "???"]})
    made = make_pool(table, embed=f"{name}:story")
    later = made.recipe.extend(made.pool, Table.of({"story": ["Zzyzx qwfp", "river stone"]}))
    assert later.vectors.shape[0] == 2
    stored = plain(made.pool.vectors)
    assert np.array_equal(stored[60], stored[61])
    assert np.array_equal(stored[60], stored[62])
    assert np.allclose(stored[:60] @ stored[60], 0)
    assert stored[63] @ stored[60] == 0


def test_the_decomposition_is_the_best_one() -> None:
    table = Table.of({"story": texts(70)})
    sparse_rows = TfidfEmbedding().fit(table).transform(table)[:, :-1].toarray()
    reduced = TextEmbedding(dimensions=10).fit(table).transform(table)[:, :-1]
    best = np.linalg.svd(sparse_rows, compute_uv=False)[:10]
    assert np.allclose(np.linalg.svd(reduced, compute_uv=False), best, rtol=1e-4)


def test_few_texts_are_enough() -> None:
    for stories in (["one text"], ["one text", "one text"], ["cat", "dog", "bird"]):
        made = make_pool(Table.of({"story": stories}), embed="text:story")
        assert len(made.pool) == len(stories)


def test_no_words() -> None:
    with pytest.raises(InputError, match="no words in story that distinguish rows"):
        make_pool(Table.of({"story": ["?", "!"]}), embed="text:story")
    with pytest.raises(InputError, match="no column holds long texts"):
        make_pool(Table.of({"n": ["1", "2"]}), embed="text")


# -- molecules, sentences, images ---------------------------------------------------------------------


def test_fingerprints_are_those_of_rdkit() -> None:
    chemistry = pytest.importorskip("rdkit.Chem", reason="rdkit is not installed")
    structs = pytest.importorskip("rdkit.DataStructs")
    generators = pytest.importorskip("rdkit.Chem.rdFingerprintGenerator")
    generator = generators.GetMorganGenerator(radius=2, fpSize=2048)
    made = make_pool(Table.of({"smiles": MOLECULES[:5]}))
    assert (made.pool.kind, made.pool.metric, made.pool.dimensions) == ("bits", "jaccard", 2048)
    prints = [generator.GetFingerprint(chemistry.MolFromSmiles(text)) for text in MOLECULES[:5]]
    ones = np.unpackbits(made.pool.vectors.view(np.uint8), axis=1).astype(bool)
    for a in range(5):
        for b in range(5):
            share = (ones[a] & ones[b]).sum() / (ones[a] | ones[b]).sum()
            assert share == pytest.approx(structs.TanimotoSimilarity(prints[a], prints[b]))


def test_molecules_that_cannot_be_read_are_named_by_row() -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    with pytest.raises(InputError, match=r"2 rows \(1, 3\), column 'smiles': no molecule can be read from 'C\(C' and"):
        make_pool(Table.of({"smiles": ["C", "C(C", "CC", ""]}))
    with pytest.raises(InputError, match=r"table: row 0, column 'smiles': no molecule can be read from 'hello'"):
        make_pool(Table.of({"smiles": ["hello"]}))
    made = make_pool(Table.of({"smiles": MOLECULES}))
    assert made.notes[1:] == ["unusual valences, read without checking them: row 5"]


@pytest.mark.parametrize(
    ("module", "embedding", "message"),
    [
        ("rdkit", SmilesEmbedding(), r"fingerprints of molecules need rdkit: pip install 'activecover\[chemistry\]'"),
        (
            "sentence_transformers",
            SentenceEmbedding(["story"], model="some/model"),
            r"sentence models need sentence_transformers: pip install 'activecover\[sentences\]'",
        ),
    ],
)
def test_missing_extras(monkeypatch: pytest.MonkeyPatch, module: str, embedding: Embedding, message: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=message):
        embedding.fit(example())


class Encoder:
    """What sentence-transformers offers, as far as it is used."""

    def __init__(self, name: str) -> None:
        if name != "some/model":
            raise OSError(f"{name} is not a model\nmore lines")

    def get_sentence_embedding_dimension(self) -> int:
        return 3

    def encode(self, texts: list[str], normalize_embeddings: bool, show_progress_bar: bool) -> np.ndarray:
        assert normalize_embeddings
        rows = np.array([[len(text), text.count(" "), 1] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_sentence_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = type(sys)("sentence_transformers")
    package.SentenceTransformer = Encoder  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    table = example(150)
    made = make_pool(table, embed="sentence:some/model", columns=["story"])
    assert (made.pool.metric, made.pool.dimensions) == ("cosine", 3)
    made.recipe.save(tmp_path)
    again = load_embedding(tmp_path)
    assert np.array_equal(again.transform(table), made.embedding.transform(table))
    with pytest.raises(InputError, match=r"model 'other' cannot be loaded \(other is not a model\)"):
        make_pool(table, embed="sentence:other", columns=["story"])
    with pytest.raises(InputError, match="needs a model"):
        make_pool(table, embed="sentence")


def test_images_by_components_and_by_network(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    from activecover.intake import read_table

    random = np.random.default_rng(0)
    (tmp_path / "pictures").mkdir()
    for name in range(12):
        image.fromarray(random.integers(0, 256, (9, 9, 3), np.uint8)).save(tmp_path / "pictures" / f"{name:02}.png")
    table = read_table(tmp_path / "pictures")
    fitted = ImageEmbedding(dimensions=5).fit(table)
    fitted.save(tmp_path / "kept")
    assert fitted.transform(table).shape == (12, 5)
    assert np.array_equal(load_embedding(tmp_path / "kept").transform(table), fitted.transform(table))

    torch = pytest.importorskip("torch", reason="torch is not installed")
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten())
    file = tmp_path / "network.pt"
    torch.jit.script(network).save(str(file))
    made = make_pool(table, embed=f"images:{file}", side=16)
    assert made.pool.dimensions == 12
    made.recipe.save(tmp_path / "kept")
    file.write_bytes(b"another")
    with pytest.raises(InputError, match="it has changed since the first rows were embedded"):
        load_embedding(tmp_path / "kept").transform(table)
    with pytest.raises(InputError, match="not a TorchScript file"):
        make_pool(table, embed=f"images:{file}")
    with pytest.raises(InputError, match="no images"):
        make_pool(example(), embed="images")


# -- the choice, and the way into a pool --------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "chosen", "reason"),
    [
        ({"Canonical SMILES": ["CC", "CO"], "x": [1, 2]}, "smiles", "smiles: there is a column 'Canonical SMILES'"),
        ({"v": np.eye(3), "story": texts(3)}, "vectors", "vectors: column 'v' of lists of numbers"),
        ({"id": ["a", "b"], "story": texts(2)}, "tfidf", "tfidf: column 'story' of long texts"),
        (
            {"Title": ["A", "B"], "Abstract": ["C", "D"], "notes": texts(2)},
            "tfidf",
            "tfidf: columns 'Title', 'Abstract'",
        ),
        (
            {"age": ["1", "2"], "job": ["cook", "nurse"]},
            "columns",
            "columns: numbers and categories, as there are no vectors",
        ),
        ({"job": ["a rather long name of one and the same job"] * 9, "age": range(9)}, "columns", "columns: "),
    ],
)
def test_the_choice_and_its_reason(columns: dict[str, Any], chosen: str, reason: str) -> None:
    choice = choose_embedding(Table.of(columns))
    assert choice.name == chosen
    assert choice.reason.startswith(reason)


def test_texts_are_reduced_where_words_are_too_many_or_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table.of({"story": texts(60)})
    assert make_pool(table).pool.kind == "sparse"
    assert make_pool(table, embed="auto:dense").pool.kind == "dense"
    assert make_pool(table, dimensions=8).pool.dimensions == 9
    monkeypatch.setattr(catalogue, "MOST_AS_WORDS", 59)
    made = make_pool(table)
    assert made.pool.kind == "dense"
    assert made.notes[0].startswith("text: column 'story' of long texts")
    with pytest.raises(InputError, match="'auto:sparse': only auto and auto:dense are possible"):
        make_pool(table, embed="auto:sparse")


def test_a_label_is_never_part_of_the_vectors() -> None:
    table = Table.of({"id": ["7", "8", "9"], "x": ["1", "2", "4"], "y": ["0", "1", "0"]})
    for embed in ("auto", "columns", "vectors"):
        made = make_pool(table, embed=embed, id_column="id", label_column="y")
        assert made.embedding.used_ == ["x"]
        assert "y" not in made.pool.contents
        assert made.pool.ids == ["7", "8", "9"]


def test_rows_that_come_later(tmp_path: Path) -> None:
    first, later = example(50), example(10, seed=4)
    for embed in ("columns:x0,x1,kind", "text:story", "tfidf:story", "vectors:x*"):
        made = make_pool(first, embed=embed, show=["story"])
        made.recipe.save(tmp_path)
        recipe = Recipe.load(tmp_path)
        recipe.extend(made.pool, later)
        assert len(made.pool) == 60
        assert made.pool.contents["story"] == [*first.texts("story"), *later.texts("story")]
        # The first rows again land on themselves.
        again = recipe.read(first)
        assert np.array_equal(plain(made.pool.encode(again.vectors)), plain(made.pool.vectors)[:50])
    with pytest.raises(InputError, match="no column 'story'"):
        Recipe.load(tmp_path).extend(made.pool, Table.of({"x0": [1], "x1": [2]}))
    assert len(made.pool) == 60


def test_vectors_can_stay_in_a_file(tmp_path: Path) -> None:
    table = Table.of({"v": np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)})
    made = make_pool(table, vectors_file=tmp_path / "v.npy")
    base: Any = made.pool.vectors
    while not isinstance(base, np.memmap) and base is not None:
        base = base.base
    assert isinstance(base, np.memmap)
    assert made.pool.fingerprint() == Pool(table.columns["v"]).fingerprint()
    made.pool.withdraw([0])
    assert np.load(tmp_path / "v.npy").shape == (30, 4)
    with pytest.raises(InputError, match="cannot be written"):
        make_pool(table, vectors_file=tmp_path / "no" / "v.npy")


def test_packed_bits_brought_along() -> None:
    ones = np.random.default_rng(0).random((6, 20)) < 0.4
    table = Table("here", 6, {}, vectors=np.packbits(ones, axis=1))
    made = make_pool(table, metric="jaccard", bits=20)
    assert made.pool.fingerprint() == Pool(ones, metric="jaccard").fingerprint()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"embed": "txt"}, "unknown embedding 'txt': did you mean 'text'"),
        ({"embed": "columns:x0,,x1"}, "an empty name between the commas"),
        ({"embed": "columns:y*"}, r"no column 'y\*'"),
        ({"embed": "text", "size": 3}, "embedding 'text': .*unexpected keyword argument 'size'"),
        ({"id_column": "nr"}, "no column 'nr'"),
        ({"show": ["nr"]}, "no column 'nr'"),
        ({"id_column": "kind", "embed": "columns:x0"}, "appears twice"),
        ({"embed": "vectors:story"}, "is not a number"),
        ({"embed": "columns:x0", "metric": "manhattan"}, "table: unknown metric 'manhattan'"),
    ],
)
def test_bad_settings_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make_pool(example(), **settings)
    assert "\n" not in str(caught.value)


def test_an_embedding_of_your_own() -> None:
    table = example()
    mine = TextEmbedding(["story"], dimensions=4)
    embedding, reason = make_embedding(mine, table)
    assert embedding is mine
    assert reason == "text: as given"
    assert make_pool(table, embed=mine).pool.dimensions == 5
