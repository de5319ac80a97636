"""Plots of traces that are readable in colour, with colour blindness, and in grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from activecover.errors import InputError
from activecover.extras import require
from activecover.files import replacing
from activecover.stopping import Replay
from activecover.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A Matplotlib line style: a symbol, or an offset and the lengths of dashes and gaps.
LineStyle: TypeAlias = str | tuple[float, tuple[float, ...]]
#: Okabe and Ito's palette, dark to light, each with a line style of its own.
STYLES: tuple[tuple[str, LineStyle], ...] = (
    ("#000000", "-"),
    ("#D55E00", (0, (5, 1.5))),
    ("#0072B2", (0, (1.2, 1.2))),
    ("#009E73", (0, (5, 1.5, 1.2, 1.5))),
    ("#CC79A7", (0, (8, 2))),
    ("#E69F00", (0, (3, 1, 1, 1, 1, 1))),
    ("#56B4E9", (0, (2, 2))),
)
PICTURES = (".png", ".svg", ".pdf")
_POINTS = 400


def check_picture(path: Path) -> None:
    """Refuse an unsupported picture type before the work begins."""
    if path.suffix.lower() not in PICTURES:
        raise InputError(f"{path}: save pictures as {', '.join(PICTURES)}")
    require("matplotlib", extra="plot", purpose="pictures")


def pyplot() -> ModuleType:
    """Matplotlib's pyplot, drawing to files only."""
    matplotlib = require("matplotlib", extra="plot", purpose="pictures")
    matplotlib.use("Agg")
    return require("matplotlib.pyplot", extra="plot", purpose="pictures")


def draw_curves(path: str | Path, runs: Mapping[str, Sequence[Trace]], *, title: str = "") -> Path:
    """Percentage of the positives found against labels spent: mean and 95 % band over the runs."""
    path = Path(path)
    check_picture(path)
    plt = pyplot()
    traces = [trace for group in runs.values() for trace in group]
    if not traces:
        raise InputError("there is nothing to draw: no runs")
    rows = traces[0].pool_rows
    labels = np.unique(np.linspace(0, rows, _POINTS).round().astype(np.int64))
    figure, axes = plt.subplots(figsize=(7.2, 4.5), layout="constrained")
    axes.plot([0, rows], [0, 100], color="0.6", linewidth=1, linestyle=(0, (1, 3)), label="chance")
    for (name, group), (colour, style) in zip(runs.items(), styles(len(runs)), strict=True):
        curves = np.array([found_by_labels(trace, labels) for trace in group])
        mean = curves.mean(axis=0)
        axes.plot(labels, mean, color=colour, linestyle=style, linewidth=1.8, label=name)
        if len(curves) > 1:
            band = 1.96 * curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
            axes.fill_between(labels, mean - band, mean + band, color=colour, alpha=0.18, linewidth=0)
    axes.set(xlabel="labels spent", ylabel="positives found (%)", xlim=(0, rows), ylim=(0, 102), title=title)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(color="0.9", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="0.85")
    save(figure, path)
    return path


#: A marker per rule tells the stops apart in grey; hollow ones prove nothing.
_STOP_MARKERS = "osD^vP*Xdph"


def draw_stops(path: str | Path, replay: Replay, *, title: str = "") -> Path:
    """Where each rule would have ended a run: recall against labels, with the curve of the ranking alone."""
    path = Path(path)
    check_picture(path)
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7.6, 4.6), layout="constrained")
    clock = np.unique(np.linspace(0, len(replay.found) - 1, _POINTS).round().astype(np.int64))
    share = 100.0 * replay.found[clock] / max(1, replay.positives)
    axes.plot(clock, share, color="0.55", linewidth=1.6, label="ranking alone")
    axes.axhline(100 * replay.target, color="0.3", linewidth=0.9, linestyle=(0, (4, 2)), label="target")
    for place, stop in enumerate(replay.stops):
        if stop.labels is None or stop.recall is None:
            continue
        colour, _ = STYLES[1 + place % (len(STYLES) - 1)]
        name = stop.rule if stop.valid else f"{stop.rule} (heuristic)"
        axes.plot(
            stop.labels, 100 * stop.recall, linestyle="", marker=_STOP_MARKERS[place % len(_STOP_MARKERS)],
            markersize=8, color=colour, markerfacecolor=colour if stop.valid else "white", markeredgewidth=1.4,
            label=name, zorder=3,
        )  # fmt: skip
    axes.set(xlabel="labels spent", ylabel="positives found (%)", xlim=(0, replay.rows), ylim=(0, 104), title=title)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", fontsize=8, frameon=True, framealpha=0.9, edgecolor="0.85")
    save(figure, path)
    return path


def save(figure: Figure, path: Path) -> None:
    """Write a figure, all or nothing."""
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)
    pyplot().close(figure)


def found_by_labels(trace: Trace, labels: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Percentage of the positives found after each number of labels."""
    found = np.concatenate([[0], np.cumsum(trace.positive)])
    total = trace.positives or max(1, trace.found)
    return 100.0 * found[np.minimum(labels, len(found) - 1)] / total


def styles(count: int) -> list[tuple[str, LineStyle]]:
    """A colour and a line style for each of several curves."""
    return [STYLES[place % len(STYLES)] for place in range(count)]
