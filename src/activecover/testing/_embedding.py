"""The contract of embeddings: rows of a table become vectors that do not depend on other rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from activecover.intake import Embedding, Table
from activecover.pool import as_csr, as_matrix


def check_embedding(make: Callable[[], Embedding], table: Table) -> None:
    """Check that an embedding satisfies its contract.

    Parameters
    ----------
    make : callable
        Builds the embedding, without fitting it.
    table : Table
        At least four rows that it can embed, in columns.

    Examples
    --------
    >>> from activecover.intake import ScaledColumns
    >>> table = Table.of({"age": ["20", "40", "?", "31"], "job": ["cook", "nurse", "cook", "cook"]})
    >>> check_embedding(ScaledColumns, table)
    """
    assert len(table) >= 4, "give a table of at least four rows"
    embedding = make().fit(table)
    vectors = _numbers(embedding, table)
    assert len(vectors) == len(table), "there is not one vector per row"
    assert np.isfinite(vectors).all(), "a vector has values that are not finite"
    assert np.array_equal(_numbers(embedding, table), vectors), (
        "transforming the same table twice gives different vectors"
    )
    assert np.array_equal(_numbers(make().fit(table), table), vectors), "fitting twice gives different vectors"
    rows = np.arange(len(table))[::-2]
    assert np.allclose(_numbers(embedding, _some(table, rows)), vectors[rows], atol=1e-6), (
        "the vector of a row depends on other rows"
    )
    names = embedding.dimension_names
    assert names is None or len(names) == vectors.shape[1], "dimension_names does not name every column exactly once"
    again = type(embedding)(**embedding.parameters())
    assert again.parameters() == embedding.parameters(), "parameters() does not recreate it"
    with tempfile.TemporaryDirectory() as folder:
        embedding.save(Path(folder))
        stored = type(embedding).load(Path(folder))
    assert np.array_equal(_numbers(stored, table), vectors), "after storing and loading, it gives different vectors"
    assert stored.used_ == embedding.used_, "after storing and loading, it uses different columns"


def _some(table: Table, rows: npt.NDArray[np.int64]) -> Table:
    columns = {name: table.column(name) for name in table.names}
    chosen = {name: [column[row] for row in rows.tolist()] for name, column in columns.items()}
    arrays = {name: np.array(values) for name, values in chosen.items() if isinstance(columns[name], np.ndarray)}
    return Table.of({**chosen, **arrays})


def _numbers(embedding: Embedding, table: Table) -> npt.NDArray[np.float64]:
    vectors = embedding.transform(table)
    return (
        as_csr(vectors).toarray().astype(np.float64)
        if sparse.issparse(vectors)
        else as_matrix(vectors).astype(np.float64)
    )
