"""``activecover demo``: find all positives in the bundled Letters data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from activecover.cli import _options as options
from activecover.cli._show import err, meter
from activecover.cli._simulate import check_outputs, dataset_task, report, run_learners
from activecover.errors import MissingExtraError
from activecover.extras import require

LEARNERS_SHOWN = ("explore-commit", "offline", "active-rbf-svm", "passive")


def demo(
    label: Annotated[str, typer.Option("--label", help="The letter to find.")] = "A",
    batch: Annotated[str, typer.Option("--batch", help="Rows per batch: a number, or a percentage.")] = "1%",
    explore: options.Explore = 100,
    seed: options.Seed = 0,
    plot: Annotated[Path, typer.Option("--plot", help="Where to save the picture.")] = Path("demo.png"),
    json: options.Json = False,
) -> int:
    """Find every "A" among 20,000 letters, four ways."""
    picture: Path | None = plot
    try:
        require("matplotlib", extra="plot", purpose="pictures")
    except MissingExtraError as missing:
        err().print(f"no picture: {missing}", markup=False)
        picture = None
    check_outputs(None, picture)
    task = dataset_task("letters", label.upper())
    with meter("labels", quiet=json) as shown:
        results, finished = run_learners(task, LEARNERS_SHOWN, shown, batch=batch, runs=1, explore=explore, seed=seed)
    report(task, results, out_file=None, plot=picture, json=json)
    return 0 if finished else 130
