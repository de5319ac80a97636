"""Write the evidence in docs/learners.md from committed results, between its markers.

    python benchmarks/learners_page.py

Reads results/cells.csv.gz (explore-commit), results/learners.csv.gz (auto and auto-positives on the same samples and
embeddings), results/first-batch.csv, results/told-letters.csv.gz, results/pools.csv.gz (labels needed on real pools),
results/hindsight.csv, results/ablation.csv.gz and results/learner-cost.csv. What has not been computed is said to be missing.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from _packed import read_lines

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "learners.md"
BEGIN, END = "<!-- evidence: begin -->", "<!-- evidence: end -->"
TITLES = {"letters": "Letters", "mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}
#: Runs that a data set is to have, and what is asked of auto: points over explore-commit, or a share of the way.
RUNS = {"letters": 20, "mnist": 5, "fashion_mnist": 5}
ASKED = {
    ("AU", "letters"): "+5",
    ("AU", "mnist"): "80 %",
    ("AU", "fashion_mnist"): "45 %",
    ("AP", "letters"): "+1.5",
    ("AP", "mnist"): "70 %",
    ("AP", "fashion_mnist"): "33 %",
}
SINGLE = ("explore-commit", "density-commit", "contrast", "knn-posterior", "rocchio", "linear")
#: Pools that were looked at while the portfolio was put together.
DESIGNED_ON = {"systematic_review", "german_credit", "sms_spam", "hiv"}
#: Larger pools are taken whole, and as a sample of so many rows.
SAMPLED = 5000
PEERS = ("asreview", "ens", "activeml-likely", "activeml-uncertain")
TEXTS = {"systematic_review", "sms_spam", "hate_speech"}
NAMES = {"AU": "auto", "AP": "auto-positives"}

Curves = dict[tuple[str, str], dict[str, dict[int, list[float]]]]
Places = dict[str, dict[str, dict[int, list[int]]]]


def read_curves(*paths: Path) -> Curves:
    """Curves by task (data set, label), method and run."""
    curves: Curves = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        for line in read_lines(path):
            if line["dataset"] in RUNS and line["method"] in ("EC", "AU", "AP") and line["curve"]:
                curve = json.loads(line["curve"])
                curves[line["dataset"], line["label"]][line["method"]][int(line["run"])] = curve
    return curves


def read_places(path: Path) -> Places:
    """After how many labels each positive was found, by pool, learner and start."""
    places: Places = defaultdict(lambda: defaultdict(dict))
    for line in read_lines(path):
        name = f"{line['pool']} ({int(line['rows']):,})"
        places[name][line["learner"]][int(line["start"])] = json.loads(line["found_after"])
    return places


def best_possible(curves: Sequence[Sequence[float]], rows: int, positives: int) -> float:
    """The AUC of asking for all positives first, in as many batches."""
    batches = len(curves[0])
    batch = round(0.05 * (rows - 100))
    return float(np.mean(np.minimum(100.0, 100.0 * np.arange(1, batches + 1) * batch / positives)))


def holm(values: Mapping[str, float]) -> dict[str, float]:
    """p-values corrected for their number."""
    corrected, floor = {}, 0.0
    for place, (name, value) in enumerate(sorted(values.items(), key=lambda item: item[1])):
        floor = max(floor, min(1.0, value * (len(values) - place)))
        corrected[name] = floor
    return corrected


def against_explore_commit(curves: Curves, method: str, sizes: Mapping[tuple[str, str], tuple[int, int]]) -> list[str]:
    """One line per data set: the gain, the way to the best possible, and the tasks that lose."""
    lines = [
        f"| {NAMES[method]} on | runs × labels | explore-commit | {NAMES[method]} | gain | of the way | asked | worst task "
        "| tasks below by more than 1 | significantly below |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for dataset, title in TITLES.items():
        gains, worse, base, mine, room, runs = {}, {}, [], [], [], set()
        by_run: dict[int, list[float]] = defaultdict(list)
        for (name, label), by_method in curves.items():
            both = sorted(set(by_method.get(method, {})) & set(by_method.get("EC", {})))
            both = [run for run in both if run < RUNS[dataset]]
            if name != dataset or not both:
                continue
            runs.add(len(both))
            old = np.array([np.mean(by_method["EC"][run]) for run in both])
            new = np.array([np.mean(by_method[method][run]) for run in both])
            gains[label] = float((new - old).mean())
            for run, gain in zip(both, (new - old).tolist(), strict=True):
                by_run[run].append(gain)
            base.append(old.mean())
            mine.append(new.mean())
            room.append(best_possible([by_method["EC"][run] for run in both], *sizes[name, label]))
            if len(both) > 1:
                worse[label] = float(stats.ttest_rel(new, old, alternative="less").pvalue)
        if not gains:
            lines.append(f"| {title} | not run | | | | | {ASKED[method, dataset]} | | | |")
            continue
        way = 100 * (np.mean(mine) - np.mean(base)) / (np.mean(room) - np.mean(base))
        worst = min(gains, key=gains.__getitem__)
        below = sum(gain < -1 for gain in gains.values())
        significant = sum(value < 0.05 for value in holm(worse).values()) if worse else "-"
        # Labels of a run share its sample: their mean gain is one observation.
        whole = [float(np.mean(values)) for values in by_run.values() if len(values) == len(gains)]
        band = f" ± {1.96 * np.std(whole, ddof=1) / np.sqrt(len(whole)):.2f}" if len(whole) > 1 else ""
        counted = f"{min(runs)}" if len(runs) == 1 else f"{min(runs)} to {max(runs)}"
        lines.append(
            f"| {title} | {counted} × {len(gains)} | {np.mean(base):.2f} | {np.mean(mine):.2f} | "
            f"{np.mean(mine) - np.mean(base):+.2f}{band} | {way:.0f} % | {ASKED[method, dataset]} | {worst} {gains[worst]:+.2f} | "
            f"{below} | {significant} |"
        )
    return [*lines, ""]


def first_batch(curves: Curves, path: Path) -> list[str]:
    """How much the first batch finds on Letters by many rankings, and what the gain that is asked for would take."""
    if not path.exists():
        return []
    recalls: dict[str, list[float]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            recalls[line["ranking"]].append(float(line["recall"]))
    runs = len(next(iter(recalls.values())))
    letters = [by_method for (name, _), by_method in curves.items() if name == "letters"]
    base, mine = (
        np.mean([[by[method][run] for run in range(RUNS["letters"])] for by in letters], axis=(0, 1))
        for method in ("EC", "AU")
    )
    lost, allowed = float((100 - mine).sum()), 100 * len(base) - float(base.sum()) - 5 * len(base)
    return [
        "#### The first batch on Letters",
        "",
        f"+5 means that at most {allowed:.1f} points of recall are missing, summed over the batches. With `auto` it is {lost:.1f}: "
        f"{100 - mine[0]:.1f} in the first batch, {100 - mine[1]:.1f} in the second, {float((100 - mine[2:]).sum()):.1f} later. "
        f"If everything were found in the second batch, the first would have to find {100 - allowed:.1f} %; with the later batches "
        f"as they are, {100 - allowed + lost - (100 - mine[0]):.1f} %. What rankings by the hundred labels of the sample find "
        f"(`benchmarks/first_batch.py`, all letters, {runs} runs; `auto` spends part of the batch on looking around, without which "
        "the second finds far less):",
        "",
        "| ranking | found in the first batch, % |",
        "|---|---|",
        *(f"| {name} | {with_band(values, 1)} |" for name, values in recalls.items()),
        "",
        "*Told all letters*: knows which of the 26 letters each row of the sample is, which no learner does.",
        "",
        *told_letters(curves, ROOT / "results" / "told-letters.csv.gz"),
    ]


def told_letters(curves: Curves, path: Path) -> list[str]:
    """What a yardstick gains that is told all letters."""
    gains: dict[int, list[float]] = defaultdict(list)
    for line in read_lines(path):
        base = curves["letters", line["letter"]]["EC"].get(int(line["run"]))
        if base is not None:
            gains[int(line["run"])].append(float(line["auc"]) - float(np.mean(base)))
    if not gains:
        return []
    means = [float(np.mean(values)) for values in gains.values()]
    return [
        "Told all letters, with a network that trains itself on its own surest rows for the first batch, and with places for "
        f"looking around (`benchmarks/told_letters.py`), the gain over explore-commit is +{with_band(means, 2)} in {len(means)} runs.",
        "",
    ]


def labels_to(found: Sequence[int], share: float) -> int:
    """Labels after which a share of all positives, the known one included, was found."""
    needed = int(np.ceil(share * (len(found) + 1) - 1e-9)) - 1
    return found[needed - 1] if needed > 0 else 0


def with_band(values: Sequence[float], digits: int = 0) -> str:
    """A mean, and half the width of its 95 % interval where there are several values."""
    shown = f"{np.mean(values):,.{digits}f}"
    if len(values) > 1:
        shown += f" ± {1.96 * np.std(values, ddof=1) / np.sqrt(len(values)):,.{digits}f}"
    return shown


def geometric_mean(ratios: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def marked(pool: str) -> str:
    """The pool's name, with a star if the portfolio was made without it."""
    return pool if pool.split(" ")[0] in DESIGNED_ON else f"{pool} \\*"


def pool_tables(places: Places) -> list[str]:
    """Labels to a share of the positives, and auto against the best rule in hindsight."""
    if not places:
        return ["Pools: not run.", ""]
    learners = ("auto", *SINGLE)
    lines = []
    for share in (0.8, 0.95, 1.0):
        lines += [
            f"Labels to {percent(share)} of the positives, one question at a time from one known positive and one known "
            "negative, mean and 95 % band over the starts that all have:",
            "",
            f"| pool | starts | {' | '.join(learners)} | auto / best single rule |",
            "|---" * (len(learners) + 3) + "|",
        ]
        ratios = {}
        for pool, by_learner in places.items():
            starts = common_starts(by_learner, learners)
            if starts:
                values = {name: [labels_to(by_learner[name][start], share) for start in starts] for name in learners}
                means = {name: float(np.mean(values[name])) for name in learners}
                ratios[pool] = means["auto"] / min(means[name] for name in SINGLE)
                shown = " | ".join(with_band(values[name]) for name in learners)
                lines.append(f"| {marked(pool)} | {len(starts)} | {shown} | {ratios[pool]:.2f} |")
        missing = [pool for pool in places if pool not in ratios]
        if ratios:
            worst, sampled = max(ratios, key=ratios.__getitem__), [*filter(at_most_sampled, ratios)]
            overall = geometric_mean([ratios[pool] for pool in sampled])
            asked = (" (asked: at most 1.0)", " (asked: at most 1.25)") if share == 0.95 else ("", "")
            lines += [
                "",
                f"Geometric mean of the ratios over {len(sampled)} pools, each of at most {SAMPLED:,} rows: {overall:.2f}{asked[0]}; "
                f"with those that are larger {geometric_mean([*ratios.values()]):.2f}. Worst {ratios[worst]:.2f} on {worst}{asked[1]}.",
            ]
        if missing:
            lines += ["", f"Not all seven have run yet on {', '.join(missing)}."]
        lines.append("")
    return [*lines, "\\* not looked at while the portfolio was put together.", ""]


def at_most_sampled(pool: str) -> bool:
    """Whether these are the rows that slow learners run on too: a pool counts once."""
    return int(pool.rpartition("(")[2].rstrip(")").replace(",", "")) <= SAMPLED


def common_starts(by_learner: Mapping[str, Mapping[int, list[int]]], names: Sequence[str]) -> list[int]:
    """The starts that some learners all have."""
    return sorted(set.intersection(*(set(by_learner.get(name, {})) for name in names)))


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def peer_table(places: Places) -> list[str]:
    """Auto against what others offer, pool by pool, on the starts that both have."""
    lines = [
        "| peer | pool | starts | auto, 95 % | peer, 95 % | auto / peer | auto, 100 % | peer, 100 % | auto / peer |",
        "|---" * 9 + "|",
    ]
    texts: dict[float, list[float]] = {0.95: [], 1.0: []}
    for peer in PEERS:
        for pool, by_learner in places.items():
            starts = common_starts(by_learner, ("auto", peer))
            if not starts:
                continue
            cells = []
            for share in (0.95, 1.0):
                mine, theirs = ([labels_to(by_learner[name][s], share) for s in starts] for name in ("auto", peer))
                ratio = float(np.mean(mine) / np.mean(theirs))
                cells += [with_band(mine), with_band(theirs), f"{ratio:.2f}"]
                if peer == "asreview" and pool.split(" ")[0] in TEXTS:
                    texts[share].append(ratio)
            lines.append(f"| {peer} | {marked(pool)} | {len(starts)} | {' | '.join(cells)} |")
    if len(lines) == 2:
        return ["Peers: not run.", ""]
    if texts[0.95]:
        lines += [
            "",
            f"Against ASReview's default, geometric mean over {len(texts[0.95])} of 3 text pools: "
            f"{geometric_mean(texts[0.95]):.2f} of its labels to 95 % (asked: at most 0.85), "
            f"{geometric_mean(texts[1.0]):.2f} of its labels to 100 % (asked: at most 1).",
        ]
    return [*lines, ""]


def hindsight_table(path: Path, places: Places) -> list[str]:
    """What models that know all other labels would need, next to ASReview and auto."""
    if not path.exists():
        return []
    needed: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            pool = f"{line['pool']} ({int(line['rows']):,})"
            needed[line["model"]][pool].append((int(line["to_95"]), int(line["to_100"])))
    pools = list(next(iter(needed.values())))
    asking = {
        name: {pool: [(labels_to(f, 0.95), labels_to(f, 1.0)) for f in places[pool][name].values()] for pool in pools}
        for name in ("asreview", "auto")
    }
    lines = [
        "#### What text allows",
        "",
        "How many rows would have to be read, ranked by a model that was fitted to the true labels of all *other* rows (ten folds; "
        "`benchmarks/hindsight.py`), next to what learners need that begin with two labels. Labels to 95 % / to 100 %:",
        "",
        f"| | {' | '.join(pools)} |",
        "|---" * (len(pools) + 1) + "|",
    ]
    for name, by_pool in [*((f"{name}, asking", by) for name, by in asking.items()), *needed.items()]:
        means = [np.mean(by_pool[pool], axis=0) for pool in pools]
        lines.append(f"| {name} | {' | '.join(f'{mean[0]:,.0f} / {mean[1]:,.0f}' for mean in means)} |")
    reference = {pool: np.mean(asking["asreview"][pool], axis=0)[0] for pool in pools}
    best = [min(np.mean(by[pool], axis=0)[0] for by in needed.values()) / reference[pool] for pool in pools]
    return [
        *lines,
        "",
        f"The best of these on each pool, chosen with the truth at hand, needs {geometric_mean(best):.2f} of ASReview's labels to 95 % "
        f"({', '.join(f'{ratio:.2f}' for ratio in best)}). It is a yardstick and no bound: a learner learns from what it asks for. But "
        "0.85, which was asked for, is less than what knowing all other labels gives.",
        "",
    ]


def ablation_table(path: Path) -> list[str]:
    """What changes when a rule is left out."""
    if not path.exists():
        return ["Ablations: not run.", ""]
    values: dict[str, dict[str, dict[tuple[str, int], float]]] = defaultdict(lambda: defaultdict(dict))
    for line in read_lines(path):
        task, _, label = line["task"].partition(" ")
        values[task][line["without"]][label, int(line["run"])] = float(line["value"])
    tasks = sorted(values)
    headings = [f"{task}, AUC" if task == "letters" else f"{task}, labels to 95 %" for task in tasks]
    lines = [f"| portfolio | {' | '.join(headings)} |", "|---" * (len(tasks) + 1) + "|"]
    whole = [with_band([*values[task][""].values()], 2 if task == "letters" else 0) for task in tasks]
    lines.append(f"| all rules | {' | '.join(whole)} |")
    for gone in sorted({name for by in values.values() for name in by if name}):
        cells = []
        for task in tasks:
            both = sorted(set(values[task][gone]) & set(values[task][""]))
            changes = [values[task][gone][key] - values[task][""][key] for key in both]
            shown = with_band(changes, 2 if task == "letters" else 0) if changes else "-"
            cells.append(shown if shown.startswith("-") else f"+{shown}")
        lines.append(f"| without {gone} | {' | '.join(cells)} |")
    return [*lines, ""]


def cost_table(path: Path) -> list[str]:
    """What a batch costs under each rule."""
    if not path.exists():
        return ["Cost per batch: not measured.", ""]
    with path.open(encoding="utf-8", newline="") as file:
        ratios = {(int(line["rows"]), line["rule"]): line["ratio"] for line in csv.DictReader(file)}
    sizes = sorted({rows for rows, _ in ratios})
    rules = sorted({rule for _, rule in ratios}, key=lambda rule: (rule.startswith("auto"), rule))
    lines = [f"| rule | {' | '.join(f'{rows:,} rows' for rows in sizes)} |", "|---" * (len(sizes) + 1) + "|"]
    lines += [f"| {rule} | {' | '.join(ratios.get((rows, rule), '-') for rows in sizes)} |" for rule in rules]
    return [*lines, ""]


def sizes() -> dict[tuple[str, str], tuple[int, int]]:
    """Rows and positives of every task."""
    from activecover.lab.datasets import DATASETS

    found = {}
    for name in RUNS:
        counts = DATASETS.build(name).counts
        total = sum(counts.values())
        found.update({(name, label): (total, count) for label, count in counts.items()})
    return found


def main() -> int:
    curves = read_curves(ROOT / "results" / "cells.csv.gz", ROOT / "results" / "learners.csv.gz")
    task_sizes, places = sizes(), read_places(ROOT / "results" / "pools.csv.gz")
    lines = [
        "AUC in percent, the paper's protocol, the same samples and embeddings for all. *Of the way*: from explore-commit "
        "to asking for all positives first. *Significantly below*: tasks on which a one-sided paired t-test, corrected "
        "by Holm's method, says so at .05.",
        "",
        *against_explore_commit(curves, "AU", task_sizes),
        *against_explore_commit(curves, "AP", task_sizes),
        *first_batch(curves, ROOT / "results" / "first-batch.csv"),
        "#### Pools",
        "",
        *pool_tables(places),
        "#### Peers",
        "",
        "ASReview's default model by its own command; efficient nonmyopic search; a scikit-activeml loop with logistic "
        "regression that asks for the row most likely positive, and for the one it is least sure of. The same starts:",
        "",
        *peer_table(places),
        *hindsight_table(ROOT / "results" / "hindsight.csv", places),
        "#### Ablations",
        "",
        "The portfolio with one rule left out: the change of the mean over some letters and runs, and over some starts on pools, "
        "with its 95 % band. What is finished of it:",
        "",
        *ablation_table(ROOT / "results" / "ablation.csv.gz"),
        "#### Cost",
        "",
        "What a batch of 5 % costs as a multiple of explore-commit's, the same labels told to all "
        "(`benchmarks/learners.py`); - where the rule needs the neighbour graph and the pool is too large for one:",
        "",
        *cost_table(ROOT / "results" / "learner-cost.csv"),
    ]
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    PAGE.write_text(f"{head}{BEGIN}\n" + "\n".join(lines) + f"{END}{tail}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
