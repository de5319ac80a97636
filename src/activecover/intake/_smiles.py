"""Molecules as fingerprints of the neighbourhoods of their atoms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from activecover.errors import InputError
from activecover.extras import require
from activecover.intake._base import Allocate, Embedding
from activecover.intake._table import Table
from activecover.pool import PackedBits, VectorsLike

#: Usual names of a SMILES column, in lower case.
NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "mol", "molecule")


def smiles_column(free: Sequence[str]) -> str | None:
    """The column with a usual name for SMILES, if there is one."""
    by_name = {name.lower().replace(" ", "_"): name for name in reversed(free)}
    return next((by_name[name] for name in NAMES[:3] if name in by_name), None)


class SmilesEmbedding(Embedding):
    """RDKit's Morgan fingerprints of a column of SMILES, for the Jaccard (Tanimoto) metric.

    A molecule that only violates RDKit's valence rules, as metal complexes often do, is read without that check and
    listed in ``notes_``. Text that is not SMILES is refused, with its row.

    Parameters
    ----------
    columns : sequence of str, optional
        The SMILES column; by default the one with a usual name.
    bits, radius : int
        Parameters of the fingerprints.
    seed : int
        Not used.

    References
    ----------
    Rogers, Hahn (2010). Extended-connectivity fingerprints.
    """

    name = "smiles"
    metric = "jaccard"

    def __init__(
        self, columns: Sequence[str] | None = None, *, bits: int = 2048, radius: int = 2, seed: int = 0
    ) -> None:
        super().__init__(columns, seed=seed)
        self.bits = bits
        self.radius = radius

    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {**super().parameters(), "bits": self.bits, "radius": self.radius}

    def transform(self, table: Table, allocate: Allocate = np.empty) -> VectorsLike:
        """The fingerprints of a table's rows, packed."""
        generators = _rdkit("rdkit.Chem.rdFingerprintGenerator")
        generator = generators.GetMorganGenerator(radius=self.radius, fpSize=self.bits)
        packed = np.zeros((len(table), -(-self.bits // 8)), np.uint8)
        odd: list[int] = []
        unreadable: list[int] = []
        for row, (molecule, is_odd) in enumerate(_molecules(table.texts(self.used_[0]))):
            if molecule is None:
                unreadable.append(row)
                continue
            if is_odd:
                odd.append(row)
            packed[row] = np.packbits(generator.GetFingerprintAsNumPy(molecule))
        if unreadable:
            raise InputError(_complaint(table, self.used_[0], unreadable))
        self.notes_ = [f"unusual valences, read without checking them: {_rows(odd)}"] if odd else []
        return PackedBits(packed, self.bits)

    def _default_columns(self, table: Table, free: Sequence[str]) -> list[str]:
        column = smiles_column(free)
        if column is None:
            raise InputError(f"{table.source}: no column is named smiles; name the one that holds SMILES")
        return [column]

    def _fit(self, table: Table) -> None:
        _rdkit("rdkit")
        if len(self.used_) != 1:
            raise InputError(f"{table.source}: {len(self.used_)} columns given for SMILES; name one")


def _rdkit(module: str) -> ModuleType:
    return require(module, extra="chemistry", purpose="fingerprints of molecules")


def _molecules(texts: Sequence[str]) -> Iterator[tuple[object | None, bool]]:
    """Each molecule (None for text that is not SMILES), and whether its valences are unusual."""
    chemistry = _rdkit("rdkit.Chem")
    # RDKit would print its own message for each.
    with _rdkit("rdkit.rdBase").BlockLogs():
        for text in texts:
            strict = chemistry.MolFromSmiles(text) if text.strip() else None
            odd = strict is None and bool(text.strip())
            yield (_lenient(chemistry, text) if odd else strict), odd


def _lenient(chemistry: ModuleType, text: str) -> object | None:
    """A molecule read without the valence check, or None."""
    molecule: object | None = chemistry.MolFromSmiles(text, sanitize=False)
    if molecule is None:
        return None
    try:
        checks = chemistry.SanitizeFlags
        chemistry.SanitizeMol(molecule, checks.SANITIZE_ALL ^ checks.SANITIZE_PROPERTIES)
    except ValueError:
        return None
    return molecule


def _complaint(table: Table, column: str, rows: Sequence[int]) -> str:
    first = table.texts(column)[rows[0]][:40]
    read = f"no molecule can be read from {first!r}" + (" and others" if len(rows) > 1 else "")
    return f"{table.source}: {_rows(rows)}, column {column!r}: {read}; correct the text or drop the row"


def _rows(rows: Sequence[int]) -> str:
    shown = ", ".join(map(str, rows[:8])) + (", …" if len(rows) > 8 else "")
    return f"row {shown}" if len(rows) == 1 else f"{len(rows)} rows ({shown})"
