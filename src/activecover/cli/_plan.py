"""``activecover plan``: plan how much to label before labelling begins."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from activecover.cli import _options as options
from activecover.cli._show import out, print_json, print_table
from activecover.errors import InputError
from activecover.planning import ExplorePlan, SampleEstimate, estimate_from_sample, plan_explore, plan_from_sample
from activecover.pool import as_positive, dense_vectors, load_pool
from activecover.stopping import CertificatePlan, draws_to_exclude, labels_to_hit, plan_certificate

app = typer.Typer(help="Plan how much to label.", no_args_is_help=True)


@app.callback()
def _plan() -> None:
    """Plan how much to label."""


@app.command("explore")
def explore(
    prevalence: Annotated[float | None, typer.Option("--prevalence", help="Share of positives in the pool.")] = None,
    components: Annotated[
        int | None, typer.Option("--components", help="Groups of positives that are far from each other.")
    ] = None,
    smallest: Annotated[
        float | None, typer.Option("--smallest", help="Smallest group's share of the positives; default: equal shares.")
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", help="Required probability that no group is missed.")
    ] = 0.95,
    rows: Annotated[int | None, typer.Option("--rows", help="Rows of the pool.")] = None,
    from_sample: Annotated[
        Path | None,
        typer.Option("--from-sample", help="Estimate what is not given from this labelled random sample."),
    ] = None,
    label_col: options.LabelColumn = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="File with the sample's labels: .npy, or text, one per line.")
    ] = None,
    positive: Annotated[str | None, typer.Option("--positive", help="The label that counts as positive.")] = None,
    vectors: options.VectorFile = None,
    columns: options.Columns = None,
    id_col: options.IdColumn = None,
    metric: options.MetricName = "euclidean",
    no_header: options.NoHeader = False,
    json: options.Json = False,
) -> None:
    """Say how many random rows to label so that every group of positives is hit."""
    if from_sample is None:
        _refuse_sample_options(
            {"--label-col": label_col, "--labels": labels, "--positive": positive, "--vectors": vectors,
             "--columns": columns, "--id-col": id_col}
        )  # fmt: skip
        show_plan(_stated_plan(prevalence, components, smallest, confidence, rows), json=json)
        return
    loaded = load_pool(
        from_sample, columns=options.split_names(columns), id_col=id_col, label_col=label_col,
        content_cols=[], vectors=vectors, metric=metric, header=not no_header,
    )  # fmt: skip
    loaded.pool.check_dense("plan explore --from-sample")
    words = options.read_labels(labels, len(loaded.pool)) if labels is not None else loaded.labels
    if words is None:
        raise InputError("the sample has no labels: give their column with --label-col, or their file with --labels")
    try:
        estimate = estimate_from_sample(dense_vectors(loaded.pool.vectors), as_positive(words, positive))
    except InputError as error:
        raise InputError(f"{from_sample if labels is None else labels}: {error}") from error
    likely, careful = plan_from_sample(
        estimate, confidence, rows, prevalence=prevalence, components=components, smallest=smallest
    )
    show_estimate(estimate, likely, careful, json=json)


@app.command("certify")
def certify(
    rows: Annotated[int, typer.Option("--rows", help="Rows of the pool.")],
    prevalence: Annotated[float, typer.Option("--prevalence", help="Expected share of positives in the pool.")],
    target: Annotated[float, typer.Option("--target", help="Recall to certify.")] = 0.95,
    confidence: Annotated[float, typer.Option("--confidence", help="Confidence of the certificate.")] = 0.95,
    reached: Annotated[
        float | None,
        typer.Option("--reached", help="True recall when the learner rests; default: halfway from the target to 1."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Estimate how many labels a certificate itself will cost under each stopping rule."""
    show_costs(plan_certificate(target, confidence, rows=rows, prevalence=prevalence, reached=reached), json=json)


@app.command("insure")
def insure(
    rows: Annotated[int, typer.Option("--rows", help="Rows of the pool.")],
    component: Annotated[int, typer.Option("--component", help="Size of a group that must not be missed, in rows.")],
    share: Annotated[float, typer.Option("--share", help="Share of the labels that are random draws.")] = 0.1,
    confidence: Annotated[float, typer.Option("--confidence", help="Confidence that no such group is left.")] = 0.95,
    json: options.Json = False,
) -> None:
    """Estimate when random draws will find a group that the learner never reaches."""
    found = labels_to_hit(component, rows, share)
    draws = draws_to_exclude(component, rows, confidence)
    if json:
        print_json({"labels_to_hit": found, "draws_to_exclude": draws, "labels_to_exclude": draws / share})
        return
    out().print(
        f"If a share of {share:g} of the labels is drawn at random, a group of {component:,} rows among {rows:,} that the "
        f"learner never reaches is found after {found:,.0f} labels on average.",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    out().print(
        f"If {draws:,} random draws (about {draws / share:,.0f} labels) hit no such group, there is none, with confidence "
        f"{confidence:g}.",
        markup=False, soft_wrap=True,
    )  # fmt: skip


def show_costs(plan: CertificatePlan, *, json: bool) -> None:
    """Print a line per rule, and the assumptions behind the figures."""
    if json:
        print_json(plan.as_dict())
        return
    rows = [
        (cost.rule, "yes" if cost.valid else "no", cost.labels, _share_of(cost.share), cost.detail)
        for cost in plan.costs
    ]
    print_table("", ["rule", "valid", "labels", "of the pool", "what for"], rows)
    for sentence in plan.sentences():
        out().print(sentence, markup=False, soft_wrap=True)


def _share_of(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.3g} %"


def show_plan(plan: ExplorePlan, *, json: bool) -> None:
    """Print the three sizes, and what they mean."""
    if json:
        print_json(plan.as_dict())
        return
    _print_sizes(plan)
    for sentence in plan.sentences():
        out().print(sentence, markup=False, soft_wrap=True)


def show_estimate(estimate: SampleEstimate, likely: ExplorePlan, careful: ExplorePlan, *, json: bool) -> None:
    """Print the estimate, the plan based on it, and the size of the cautious plan."""
    if json:
        print_json(
            {
                "estimate": {**asdict(estimate), "sentences": estimate.sentences()},
                "plan": likely.as_dict(),
                "careful_plan": careful.as_dict(),
            }
        )
        return
    for sentence in estimate.sentences():
        out().print(sentence, markup=False, soft_wrap=True)
    out().print()
    show_plan(likely, json=False)
    out().print(f"At the low ends of the intervals, it takes {careful.size:,} rows.", markup=False, soft_wrap=True)


def _print_sizes(plan: ExplorePlan) -> None:
    sizes = [
        ("union bound (take this)", plan.size),
        ("the paper's Lemma 1", plan.lemma1),
        ("the paper's Theorem 4", plan.theorem4),
    ]
    columns = ["rule", "rows to label"]
    rows: list[tuple[str | int, ...]] = [*sizes]
    if plan.pool is not None:
        columns.append("of the pool")
        rows = [(name, size, _share(size, plan.pool.rows)) for name, size in sizes]
    print_table("", columns, rows)


def _share(size: int, rows: int) -> str:
    return f"{100 * size / rows:.3g} %" if size <= rows else "more than all"


def _stated_plan(
    prevalence: float | None, components: int | None, smallest: float | None, confidence: float, rows: int | None
) -> ExplorePlan:
    if prevalence is None or components is None:
        raise InputError("give --prevalence and --components, or a labelled random sample with --from-sample")
    if smallest is None:
        smallest = 1 / max(components, 1)
    return plan_explore(prevalence, components, smallest, confidence, rows)


def _refuse_sample_options(given: dict[str, object]) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} describes a sample: give its file with --from-sample")
