"""Numbers in words: shares, probabilities, rows."""

from __future__ import annotations


def percent(share: float) -> str:
    """A share in percent."""
    # Four digits, but more where 99.9999 % would be rounded to certainty.
    return f"{100 * share:.{4 if share < 0.9999 or share == 1 else 13}g} %"


def chance(probability: float) -> str:
    """A probability in percent, never rounded to certain or impossible."""
    if probability > 0.9999:
        return "over 99.99 %"
    return "under 0.01 %" if 0 < probability < 0.0001 else f"{100 * probability:.2f} %"


def rows_text(number: int, kind: str = "") -> str:
    """A number of rows, with the noun."""
    return f"{number:,} {kind}row{'s' if number != 1 else ''}"


def count_text(number: float) -> str:
    """An expected count, with two digits if it is small."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def dimension_text(value: float | None) -> str:
    """An estimated dimension, or that it is unknown."""
    return "unknown" if value is None else f"{value:.1f}"
