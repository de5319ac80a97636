"""Compiled part of the scan over bits: counts of set bits and of common bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from activecover.compiling import compiled


def _population_count(typing_context: Any, word: Any) -> Any:
    """Number of bits set in a word: one instruction if the processor has it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_ones: Any = intrinsic(_population_count)


@compiled()
def count_ones(words: Any, first: int, result: Any) -> None:
    """Number of bits set in each row from ``first`` on."""
    for place in range(result.shape[0]):
        total = np.uint64(0)
        for t in range(words.shape[1]):
            total += _ones(words[first + place, t])
        result[place] = total


@compiled()
def _common(words: Any, row: int, positives: Any, j: int) -> Any:
    total = np.uint64(0)
    for t in range(words.shape[1]):
        total += _ones(words[row, t] & positives[j, t])
    return np.int64(total)


@compiled()
def refine(
    words: Any, rows: Any, ones: Any, positives: Any, positive_ones: Any, keys: Any, distances: Any, sources: Any
) -> None:
    """Compare rows with positives and keep the nearest.

    Every distance is one division of two integers, rounded once, so equal fractions give equal numbers. Rounded
    division preserves order, so a bound on the fraction also bounds the number.
    """
    for row in rows:
        best, source, mine = distances[row], sources[row], ones[row]
        for j in range(keys.shape[0]):
            other = positive_ones[j]
            fewer, more = min(mine, other), max(mine, other)
            if more == 0:
                distance = 0.0
            else:
                # In the best case all bits of one row are also in the other.
                if (more - fewer) / more > best:
                    continue
                common = _common(words, row, positives, j)
                union = mine + other - common
                distance = (union - common) / union
            if distance < best or (distance == best and keys[j] < source):
                best, source = distance, keys[j]
        distances[row], sources[row] = best, source
