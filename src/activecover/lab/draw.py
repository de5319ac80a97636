"""Plots of the paper's experiments: its figure, the rates, and the size of the exploration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from activecover.draw import STYLES, LineStyle, check_picture, pyplot, save, styles
from activecover.errors import InputError
from activecover.lab.grid import Result
from activecover.lab.rates import Fit, RateCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The paper's methods: the nearest-positive ones black and purple, one hue per detector; offline ones are dotted.
METHOD_STYLES: dict[str, tuple[str, Any, float]] = {
    "EC": ("#000000", "-", 2.0),
    "O": ("#CC79A7", (0, (1.2, 1.2)), 2.0),
    "A-LS": ("#E69F00", "-", 1.2),
    "O-LS": ("#E69F00", (0, (1.2, 1.2)), 1.2),
    "A-RS": ("#0072B2", (0, (5, 1.5)), 1.2),
    "O-RS": ("#0072B2", (0, (1.2, 1.2)), 1.2),
    "A-IF": ("#D55E00", (0, (5, 1.5, 1.2, 1.5)), 1.2),
    "O-IF": ("#D55E00", (0, (1.2, 1.2)), 1.2),
    "A-RC": ("#009E73", (0, (8, 2)), 1.2),
    "O-RC": ("#009E73", (0, (1.2, 1.2)), 1.2),
}
#: One marker per detector distinguishes the methods in grey.
METHOD_MARKERS = {"LS": "s", "RS": "^", "IF": "v", "RC": "D"}
_OTHER_METHOD = ("#56B4E9", "-", 1.2)
#: With two or three runs a band means little, and ten bands hide the curves.
_RUNS_FOR_BAND = 5


def draw_grid(path: str | Path, results: Sequence[Result]) -> Path:
    """The paper's figure: one panel per task, with the mean number of positives found after each batch, by method.

    Methods with at least five runs have a 95 % band.
    """
    path = Path(path)
    check_picture(path)
    tasks = _curves_by_task(results)
    if not tasks:
        raise InputError("there is nothing to draw: none of the chosen cells is finished and has a curve")
    plt = pyplot()
    columns = min(len(tasks), 5 if len(tasks) > 12 else 4 if len(tasks) > 6 else 3)
    lines = -(-len(tasks) // columns)
    # Space for titles, axis labels and a legend below, for any number of panels.
    figure, panels = plt.subplots(
        lines,
        columns,
        figsize=(2.9 * columns + 0.6, 2.3 * lines + 1.4),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    for place, panel in enumerate(panels.flat):
        if place >= len(tasks):
            panel.set_visible(False)
            continue
        task = list(tasks)[place]
        _draw_panel(panel, tasks[task])
        panel.set_title(" ".join(task), fontsize=9)
        if place % columns == 0:
            panel.set_ylabel("positives found (%)", fontsize=8)
        if place + columns >= len(tasks):
            panel.set_xlabel("batch", fontsize=8)
    handles: dict[str, Any] = {}
    for panel in panels.flat:
        handles |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    order = [name for name in METHOD_STYLES if name in handles] + sorted(set(handles) - set(METHOD_STYLES))
    figure.legend(
        [handles[name] for name in order], order, loc="outside lower center", ncols=min(len(order), 2 * columns),
        frameon=False, fontsize=8, handlelength=3.2,
    )  # fmt: skip
    save(figure, path)
    return path


def _curves_by_task(results: Sequence[Result]) -> dict[tuple[str, str], dict[str, npt.NDArray[np.float64]]]:
    curves: dict[tuple[str, str], dict[str, list[tuple[float, ...]]]] = {}
    for result in results:
        if result.curve is not None:
            task = curves.setdefault((result.cell.dataset, result.cell.label), {})
            task.setdefault(result.cell.method, []).append(result.curve)
    return {task: {name: np.array(runs) for name, runs in methods.items()} for task, methods in curves.items()}


def _draw_panel(panel: Axes, methods: Mapping[str, npt.NDArray[np.float64]]) -> None:
    for name, runs in methods.items():
        colour, style, width = METHOD_STYLES.get(name, _OTHER_METHOD)
        mean = runs.mean(axis=0)
        batches = np.arange(1, len(mean) + 1)
        marker = METHOD_MARKERS.get(name.partition("-")[2])
        panel.plot(
            batches, mean, color=colour, linestyle=style, linewidth=width, label=name, marker=marker, markersize=3,
            markevery=(2 + list(METHOD_MARKERS.values()).index(marker) if marker else 0, max(1, len(mean) // 4)),
            markerfacecolor="white" if name.startswith("O") else colour, markeredgewidth=0.8,
        )  # fmt: skip
        if len(runs) >= _RUNS_FOR_BAND:
            band = 1.96 * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
            panel.fill_between(batches, mean - band, mean + band, color=colour, alpha=0.15, linewidth=0)
    panel.set(ylim=(0, 102), xlim=(1, len(mean)))
    panel.set_axisbelow(True)
    panel.grid(color="0.9", linewidth=0.5)
    panel.tick_params(labelsize=7)
    panel.locator_params(axis="x", integer=True)
    panel.spines[["top", "right"]].set_visible(False)


def draw_rates(path: str | Path, cells: Sequence[RateCell], fits: Sequence[Fit]) -> Path:
    """Excess query cost against pool size, log-log: one panel per dimension, measured and proved."""
    path = Path(path)
    check_picture(path)
    plt = pyplot()
    dimensions = sorted({cell.dimension for cell in cells})
    figure, panels = plt.subplots(
        1, len(dimensions), figsize=(3.6 * len(dimensions) + 0.6, 3.9), squeeze=False, sharey=True, layout="constrained"
    )
    slopes = {(fit.learner, fit.dimension): fit for fit in fits}
    for panel, dimension in zip(panels.flat, dimensions, strict=True):
        for place, learner in enumerate(sorted({cell.learner for cell in cells}, reverse=True)):
            chosen = [cell for cell in cells if cell.learner == learner and cell.dimension == dimension]
            _draw_rate(panel, chosen, STYLES[place], slopes[learner, dimension])
        panel.set(
            xscale="log", yscale="log", xlabel="rows in the pool", title=f"{dimension} dimension{'s' * (dimension > 1)}"
        )
        panel.grid(color="0.9", linewidth=0.5)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(fontsize=7, loc="upper left", frameon=True, framealpha=0.9, edgecolor="0.85")
    low, high = panels[0, 0].get_ylim()
    # Space above the curves for the legends.
    panels[0, 0].set(ylabel="excess query cost", ylim=(max(low, 0.5), high * 30))
    save(figure, path)
    return path


def _draw_rate(panel: Axes, cells: Sequence[RateCell], style: tuple[str, LineStyle], fit: Fit) -> None:
    sizes = np.array(sorted({cell.n for cell in cells}))
    means = np.array([np.mean([cell.excess for cell in cells if cell.n == n]) for n in sizes])
    errors = np.array([_standard_error([cell.excess for cell in cells if cell.n == n]) for n in sizes])
    label = f"{fit.learner}: {fit.exponent:.2f} [{fit.low:.2f}, {fit.high:.2f}], proved {fit.theory:.2f}"
    colour, line = style
    panel.errorbar(
        sizes, np.maximum(means, 0.5), yerr=1.96 * errors, color=colour, linestyle=line, linewidth=1.6, marker="o",
        markersize=3.5, capsize=2, label=label,
    )  # fmt: skip


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def draw_hits(path: str | Path, curves: Mapping[str, tuple[Sequence[int], Sequence[float]]], title: str) -> Path:
    """Probability of hitting every component against sample size: measured, exact, and the bound."""
    path = Path(path)
    check_picture(path)
    figure, axes = pyplot().subplots(figsize=(6.4, 4.2), layout="constrained")
    for (name, (sizes, values)), (colour, style) in zip(curves.items(), styles(len(curves)), strict=True):
        marker = "o" if name == "measured" else None
        axes.plot(
            sizes, values, color=colour, linestyle="" if marker else style, marker=marker, markersize=4, label=name
        )
    axes.set(
        xlabel="rows explored", ylabel="probability of a positive from every component", ylim=(0, 1.03), title=title
    )
    axes.grid(color="0.9", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="0.85")
    save(figure, path)
    return path
