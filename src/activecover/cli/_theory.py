"""``activecover theory``: measure the rates that the theory proves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from activecover.cli import _options as options
from activecover.cli._show import err, meter, out, print_json, print_table
from activecover.draw import check_picture
from activecover.errors import InputError
from activecover.files import check_writable
from activecover.lab.draw import draw_hits, draw_rates
from activecover.lab.rates import (
    DISTRIBUTIONS,
    Fit,
    RateCell,
    RatePlan,
    explore_curve,
    fit,
    measure,
    sizes_between,
)
from activecover.planning import explore_lemma1, explore_union, probability_all_hit

app = typer.Typer(help="Measure what the theory proves.", no_args_is_help=True)

Runs = Annotated[int, typer.Option("--runs", min=1, help="Number of pools per size.")]
Sizes = Annotated[str, typer.Option("--n", help="Sizes: 1000..1000000 (two per decade) or 1000,5000.")]
Kept = Annotated[
    Path | None, typer.Option("--out", help="File for the finished measurements (.csv); an existing one is resumed.")
]
Picture = Annotated[Path | None, typer.Option("--plot", help="Save a picture: .png, .svg or .pdf.")]
_DELTA = 0.05


@app.command("rates")
def rates(
    dims: Annotated[str, typer.Option("--dims", help="Dimensions, comma-separated.")] = "1,2,3",
    n: Sizes = "1000..100000",
    runs: Runs = 20,
    distribution: Annotated[
        str, typer.Option("--distribution", help="See: activecover theory distributions.")
    ] = "cube",
    seed: options.Seed = 0,
    out_file: Kept = None,
    plot: Picture = None,
    json: options.Json = False,
) -> int:
    """Measure how the excess query cost of passive, offline and explore-commit grows with the pool."""
    plan = RatePlan(_whole_numbers(dims), sizes_between(n), runs, seed, distribution)
    return _measure_and_report(plan, out_file, plot, json)


@app.command("intrinsic")
def intrinsic(
    n: Sizes = "1000..100000",
    runs: Runs = 20,
    seed: options.Seed = 0,
    out_file: Kept = None,
    plot: Picture = None,
    json: options.Json = False,
) -> int:
    """Measure the same on a curved sheet of 2 dimensions in 50, where the rate is that of 2."""
    plan = RatePlan((2,), sizes_between(n), runs, seed, "manifold", ("offline", "explore-commit"))
    return _measure_and_report(plan, out_file, plot, json)


@app.command("explore")
def explore(
    distribution: Annotated[
        str, typer.Option("--distribution", help="Distribution with the components.")
    ] = "components",
    prevalence: Annotated[float, typer.Option("--prevalence", help="Share of positives.")] = 0.1,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Number of samples per size.")] = 1000,
    seed: options.Seed = 0,
    plot: Picture = None,
    json: options.Json = False,
) -> None:
    """Show how often a random sample has a positive of every component: measured, exact, and by the union bound."""
    if not 0 < prevalence < 1:
        raise InputError(f"--prevalence {prevalence:g}: give a share between 0 and 1")
    _check_picture(plot)
    law = DISTRIBUTIONS.build(distribution, share=prevalence)
    count, smallest = len(law.components), law.smallest_share
    union = explore_union(prevalence, smallest, count, _DELTA)
    sizes = np.unique(np.linspace(1, 1.5 * union, 25).round().astype(int)).tolist()
    measured = explore_curve(law, sizes, runs=runs, seed=seed)
    exact = [float(probability_all_hit(prevalence, list(law.weights), size)) for size in sizes]
    bound = [max(0.0, 1 - count * (1 - prevalence * smallest) ** size) for size in sizes]
    if plot is not None:
        curves = {
            "exact": (sizes, exact),
            "union bound": (sizes, bound),
            "measured": (sizes, [hit for _, hit in measured]),
        }
        draw_hits(plot, curves, f"{count} components, the smallest {smallest:.0%}, prevalence {prevalence:g}")
    lemma = explore_lemma1(prevalence, smallest, count, _DELTA)
    rows = [[size, hit, e, b] for (size, hit), e, b in zip(measured, exact, bound, strict=True)]
    if json:
        print_json({"rows": [dict(zip(("m", "measured", "exact", "bound"), row, strict=True)) for row in rows]})
        return
    print_table(
        f"{law.name}: a positive of each of {count} components, {runs:,} samples per size",
        ["rows explored", "measured", "exact", "union bound"],
        rows,
    )
    out().print(f"for 95 %: {union:,} by the union bound, {lemma:,} by the paper's Lemma 1", markup=False)
    _say_saved(plot, None)


@app.command("distributions")
def distributions(json: options.Json = False) -> None:
    """List the distributions, and the assumptions they break."""
    rows = [(entry.name, entry.summary, entry.build().breaks or None) for entry in DISTRIBUTIONS]
    if json:
        print_json([dict(zip(("name", "summary", "breaks"), row, strict=True)) for row in rows])
        return
    print_table("", ["distribution", "what it is", "breaks"], rows)


def _measure_and_report(plan: RatePlan, out_file: Path | None, plot: Path | None, json: bool) -> int:
    if out_file is not None:
        if out_file.suffix.lower() != ".csv":
            raise InputError(f"{out_file}: measurements are written as .csv; choose such a name")
        check_writable(out_file)
    _check_picture(plot)
    try:
        with meter("pools", quiet=json) as shown:
            cells = measure(plan, out_file, lambda done, total: shown.update("rates", done, total))
    except KeyboardInterrupt:
        kept = (
            f"finished measurements are in {out_file}; run the same command again to resume"
            if out_file
            else "nothing was saved"
        )
        err().print(f"interrupted: {kept}", markup=False)
        return 130
    fits = fit(cells)
    if plot is not None:
        draw_rates(plot, cells, fits)
    if json:
        print_json({"fits": [_plain(one) for one in fits], "seed": plan.seed, "runs": plan.runs})
        return 0
    _print_costs(plan, cells)
    print_table(
        "Exponents (explore-commit without its sample and (log n)^(1/D), offline without (log n)^(1/(D+1)))",
        ["learner", "D", "exponent", "low", "high", "proved"],
        [
            [one.learner, one.dimension, *(_two(v) for v in (one.exponent, one.low, one.high, one.theory))]
            for one in fits
        ],
    )
    _say_saved(plot, out_file)
    return 0


def _print_costs(plan: RatePlan, cells: Sequence[RateCell]) -> None:
    rows = []
    for dimension in plan.dimensions:
        for size in sorted(plan.sizes):
            means: list[float | None] = []
            for learner in plan.learners:
                found = [c.excess for c in cells if (c.dimension, c.n, c.learner) == (dimension, size, learner)]
                means.append(float(np.mean(found)) if found else None)
            rows.append([dimension, size, *means])
    title = f"Mean excess query cost over {plan.runs} pools, seed {plan.seed}, {plan.distribution}"
    print_table(title, ["D", "rows", *plan.learners], rows)


def _check_picture(plot: Path | None) -> None:
    if plot is not None:
        check_picture(plot)
        check_writable(plot)


def _whole_numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise InputError(f"{text!r}: give whole numbers separated by commas") from None


def _two(value: float) -> str | None:
    return None if math.isnan(value) else f"{value:.2f}"


def _plain(one: Fit) -> dict[str, object]:
    return {
        "learner": one.learner, "dimension": one.dimension, "exponent": one.exponent, "low": one.low,
        "high": one.high, "proved": one.theory, "growth": None if math.isnan(one.growth) else one.growth,
    }  # fmt: skip


def _say_saved(plot: Path | None, out_file: Path | None) -> None:
    for path, what in ((plot, "picture"), (out_file, "measurements")):
        if path is not None:
            out().print(f"{what}: {path}", markup=False)
