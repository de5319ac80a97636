"""The compiled half of the scan over bits: how many are set, and how many of them in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from activecover.compiling import compiled


def _population_count(typing_context: Any, word: Any) -> Any:
    """How many bits of a word are set: one instruction where the processor has it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_ones: Any = intrinsic(_population_count)


@compiled()
def count_ones(words: Any, first: int, result: Any) -> None:
    """How many bits are set in each of the rows from ``first`` on."""
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
    """Compare rows with positives and keep what is nearer.

    Every distance is one division of two whole numbers, rounded once: equal shares are equal numbers.
    Division never turns an order round, so that a bound on the share bounds the number too.
    """
    for row in rows:
        best, source, mine = distances[row], sources[row], ones[row]
        for j in range(keys.shape[0]):
            other = positive_ones[j]
            fewer, more = min(mine, other), max(mine, other)
            if more == 0:
                distance = 0.0
            else:
                # At best all bits of the one are among those of the other.
                if (more - fewer) / more > best:
                    continue
                common = _common(words, row, positives, j)
                union = mine + other - common
                distance = (union - common) / union
            if distance < best or (distance == best and keys[j] < source):
                best, source = distance, keys[j]
        distances[row], sources[row] = best, source
