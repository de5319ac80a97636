"""Tables and arrays from files, and records to files: one reader per kind, and one-line errors."""

from activecover.tables._arrays import NpyHeader, npy_header, npz_arrays, read_array, sparse_in, vectors_in
from activecover.tables._parquet import ParquetColumns
from activecover.tables._reading import check_columns, readable, reading
from activecover.tables._records import check_records, json_lines, read_records, write_records
from activecover.tables._text import TextTable
from activecover.tables._values import as_numbers, as_text, number, plain_number

__all__ = [
    "NpyHeader",
    "ParquetColumns",
    "TextTable",
    "as_numbers",
    "as_text",
    "check_columns",
    "check_records",
    "json_lines",
    "npy_header",
    "npz_arrays",
    "number",
    "plain_number",
    "read_array",
    "read_records",
    "readable",
    "reading",
    "sparse_in",
    "vectors_in",
    "write_records",
]
