"""NumPy files, checked by their headers: they hold what they declare, and no Python objects."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from pathlib import Path
from typing import IO

import numpy as np

from activecover.errors import InputError
from activecover.strict._zip import ZipLimits, checked_zip, copy_member

_MAGIC = b"\x93NUMPY"
#: Most bytes of the header text; NumPy writes 118.
_LONGEST_HEADER = 4096
_HEADER = re.compile(
    r"\{'descr': '([<>|=]?[?a-zA-Z]\d{0,9})', 'fortran_order': (?:True|False), "
    r"'shape': \(((?:\d{1,18},)?(?: ?\d{1,18},?)*)\), \} *\n"
)


def check_npy(file: IO[bytes], size: int) -> tuple[np.dtype[np.generic], tuple[int, ...]]:
    """Type and shape of an array, from the start of a file of ``size`` bytes that holds nothing else.

    Examples
    --------
    >>> import io
    >>> data = io.BytesIO(); np.save(data, np.zeros((3, 2), np.float32)); length = data.tell(); _ = data.seek(0)
    >>> check_npy(data, length)
    (dtype('float32'), (3, 2))
    """
    start = file.read(12)
    if start[:6] != _MAGIC or len(start) < 12 or start[6] not in (1, 2, 3):
        raise InputError("not a NumPy array")
    width = 2 if start[6] == 1 else 4
    length, begun = int.from_bytes(start[8 : 8 + width], "little"), start[8 + width :]
    if length > _LONGEST_HEADER:
        raise InputError("an array whose header is too long")
    header = begun + file.read(length - len(begun))
    told = _HEADER.fullmatch(header.decode("latin-1"))
    if told is None:
        raise InputError("an array with a header that NumPy would not write")
    try:
        dtype = np.dtype(told[1])
    except TypeError:
        raise InputError(f"an array of unknown type {told[1]!r}") from None
    if dtype.hasobject or dtype.kind not in "biufUS" or dtype.itemsize == 0:
        raise InputError(f"an array of type {told[1]!r}, which holds neither numbers nor texts")
    shape = tuple(int(part) for part in told[2].replace(" ", "").split(",") if part)
    if math.prod(shape) * dtype.itemsize != size - 8 - width - length:
        raise InputError(f"an array of declared shape {shape}, but {size:,} bytes")
    return dtype, shape


def check_npz(path: Path, limits: ZipLimits | None = None, names: Collection[str] | None = None) -> None:
    """Refuse anything but a sound ``.npz`` file within limits.

    Parameters
    ----------
    path : path
        The file.
    limits : ZipLimits, optional
        Most bytes it may unpack to.
    names : collection of str, optional
        Permitted array names; any by default.
    """
    with checked_zip(path, limits or ZipLimits(flat=True)) as packed:
        for member in packed.infolist():
            name = member.filename.removesuffix(".npy")
            if name == member.filename or (names is not None and name not in names):
                raise InputError(f"an unexpected member {member.filename!r}")
            with packed.open(member) as file:
                check_npy(file, member.file_size)
            # Read to the end, which verifies its declared length and checksum.
            for _ in copy_member(packed, member):
                pass
