"""Section 3 of HEBO's paper over Bayesmark's tasks: are they heteroscedastic, not stationary, and do acquisition functions conflict?

As in the paper, 50 random points of each task are evaluated ten times. Both metrics of a model on a data set come from the same
evaluations. The n-th evaluation of each point splits off the n-th random fifth of the data; the paper does not say what differs
between its evaluations, but its smallest statistics are those of splits that all points share.
"""

import json
import os
import random
import subprocess
import tempfile

from . import definitions
from .space import sample

POINTS, REPEATS = 50, 10
SIGNIFICANT = 0.05

# The quickest first.
MODELS = ("DT", "linear", "kNN", "RF", "SVM", "MLP-sgd", "lasso", "ada", "MLP-adam")
DATA = ("wine", "iris", "diabetes", "boston", "breast", "digits")


def pairs(models=MODELS, data=DATA):
    """[(model, data set), ...]"""
    return [(m, d) for m in models for d in data]


def tasks(model, data):
    """The tasks of a model on a data set, one for each metric."""
    return [definitions.TASKS[f"{model}_{data}_{metric}"] for metric in definitions.METRICS[data]]


def evaluate(model, data, points=POINTS, repeats=REPEATS):
    """The points of a model on a data set with their losses, {metric: a list for each point}. The points are distinct; one where an evaluation fails is replaced."""
    from . import evaluator

    both = tasks(model, data)
    splits = [evaluator.Evaluator(both[0], split) for split in range(repeats)]
    rng, kept, replaced = random.Random(f"{model} {data}"), [], 0
    losses = {t.metric: [] for t in both}
    while len(kept) < points:
        point = sample(both[0].space, rng)
        if point in kept:
            continue
        try:
            seed = 1000 * (len(kept) + replaced)
            found = [e.losses(point, [t.metric for t in both], seed + i) for i, e in enumerate(splits)]
        except ValueError:
            replaced += 1
            if replaced > points:
                raise
            continue
        kept.append(point)
        for metric in losses:
            losses[metric].append([f[metric] for f in found])
    return {"model": model, "data": data, "points": kept, "losses": losses, "replaced": replaced}


def tests(groups):
    """The p-values of the tests of equal variances, {name: p}."""
    from scipy import stats

    return {
        "levene": stats.levene(*groups, center="mean").pvalue,
        "medians": stats.levene(*groups, center="median").pvalue,
        "fligner": stats.fligner(*groups).pvalue,
    }


def study(task, points, command):
    """A study of the points, in their order; `command` is its program."""
    made = definitions.study(task.name, "random", trials=len(points), parallelism=1)
    made["spec"] |= {"initial": points, "trial": {"command": command, "mode": "stream"}}
    return made


def examine(fantasia, task, points, losses, command):
    """What `fantasia study diagnose` says of one evaluation of each point. `command` gets a file of the losses and answers with them."""
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("losses.json", "study.yaml")]
        for path, content in zip(files, (losses, study(task, points, [*command, os.path.join(folder, "losses.json")]))):
            with open(path, "w") as file:
                json.dump(content, file)
        state = os.path.join(folder, "state")
        subprocess.run([fantasia, "run", files[1], "--state", state], check=True, capture_output=True, cwd=folder)
        told = subprocess.run([fantasia, "study", "diagnose", "--state", state, "-o", "json"], check=True, capture_output=True)
    return json.loads(told.stdout)


def replay(losses, lines, out):
    """The program of `study`: stream mode; a trial's loss is that of its number."""
    for line in lines:
        trial = json.loads(line)["fantasia"]["trial"]
        print(json.dumps({"fantasia": {"trial": trial, "metrics": {"loss": losses[trial - 1]}, "done": True}}), file=out, flush=True)


# The tasks that Levene's test finds even in the paper's Tables 5 to 10; the test of Fligner and Killeen finds lasso_breast_nll uneven.
PAPER_EVEN = frozenset(
    "DT_boston_mse DT_diabetes_mae DT_diabetes_mse MLP-adam_wine_nll RF_boston_mae RF_boston_mse RF_diabetes_mse SVM_boston_mae "
    "SVM_boston_mse SVM_breast_acc SVM_diabetes_mae SVM_diabetes_mse SVM_digits_nll SVM_wine_acc SVM_wine_nll kNN_boston_mae "
    "kNN_boston_mse kNN_breast_acc kNN_digits_acc kNN_iris_acc kNN_wine_acc lasso_boston_mae lasso_boston_mse lasso_breast_acc "
    "lasso_breast_nll lasso_digits_acc lasso_iris_acc lasso_iris_nll lasso_wine_acc linear_boston_mae linear_boston_mse "
    "linear_breast_acc linear_breast_nll linear_digits_acc linear_iris_nll linear_wine_acc".split()
)
FLIGNER_UNEVEN = frozenset(["lasso_breast_nll"])

# How many of its 108 tasks the paper's Table 1 finds better, significantly better, worse and significantly worse.
PAPER_GAINS = {"transform": (70, 58, 38, 25), "warp": (106, 79, 2, 0)}


def unevenness(evaluations):
    """{task: p-values of the tests}."""
    return {t.name: tests(pair["losses"][t.metric]) for pair in evaluations for t in tasks(pair["model"], pair["data"])}


def gains(found, part, alone=False):
    """How many tasks a part of the model makes better, significantly better, worse and significantly worse, and how many there are.

    `alone` means that the model has no other transform.
    """
    of = [f[part] for f in found if f[part]]
    mean, se = ("predictiveAlone", "seAlone") if alone else ("predictive", "se")
    means, certain = [g[mean] for g in of], [abs(g[mean]) > 1.96 * g[se] for g in of]
    up, down = [m > 0 for m in means], [m < 0 for m in means]
    return sum(up), sum(u and c for u, c in zip(up, certain)), sum(down), sum(d and c for d, c in zip(down, certain)), len(of)


def _count(names, p, test):
    return f"{sum(p[n][test] < SIGNIFICANT for n in names)} of {len(names)}"


def variances(evaluations):
    """The lines of the table of the tests of equal variances, with how often Levene's agrees with the paper's."""
    p = unevenness(evaluations)
    rows = ["| tasks | Levene | with medians | Fligner–Killeen | Levene, paper | both agree |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    groups = {"all": list(p)} | {data: [n for n in p if n.split("_")[1] == data] for data in definitions.METRICS}
    for name, of in groups.items():
        if of:
            agree = sum((p[n]["levene"] < SIGNIFICANT) == (n not in PAPER_EVEN) for n in of)
            counts = [_count(of, p, test) for test in ("levene", "medians", "fligner")]
            rows.append(f"| {name} | {' | '.join(counts)} | {sum(n not in PAPER_EVEN for n in of)} of {len(of)} | {agree} of {len(of)} |")
    return rows


# A gain in log likelihood is strong evidence beyond 3 nats (Kass and Raftery 1995, section 3.2).
LIKELIER = 3


def fits(found):
    """Return the rows of a table: on how many tasks each transform predicts better, and is likelier."""
    rows = ["| part | tasks | better | significantly | worse | significantly |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for part, title, other in (("transform", "output transform", "input warping"), ("warp", "input warping", "output transform")):
        for what, alone in ((f"{title} alone", True), (f"{title}, added to {other}", False)):
            better, surely, worse, surely_worse, n = gains(found, part, alone)
            rows.append(f"| {what} | {n} | {better} | {surely} | {worse} | {surely_worse} |")
        likelier = [f[part]["alone"] for f in found if f[part]]
        counts = [sum(g > 0 for g in likelier), sum(g > LIKELIER for g in likelier), sum(g < 0 for g in likelier), sum(g < -LIKELIER for g in likelier)]
        rows.append(f"| {title} alone, by the likelihood | {len(likelier)} | {' | '.join(map(str, counts))} |")
        rows.append(f"| in the paper | 108 | {' | '.join(map(str, PAPER_GAINS[part]))} |")
    return rows


def conflicts(found):
    """The lines of the table of acquisition functions, by pairs."""
    rows = ["| functions | tasks | share less than half of their best 5% | best points differ | mean ρ |", "| --- | ---: | ---: | ---: | ---: |"]
    compared = [f["conflict"]["pairs"] for f in found if f["conflict"]]
    for i, pair in enumerate(compared[0] if compared else ()):
        of = [pairs[i] for pairs in compared]
        rho = sum(c["spearman"] for c in of) / len(of)
        rows.append(f"| {pair['a']} and {pair['b']} | {len(of)} | {sum(c['top'] < 0.5 for c in of)} | {sum(c['rank'] > 1 for c in of)} | {rho:.2f} |")
    return rows


def tables(evaluations, found):
    """{name: lines} of the tables."""
    return {"hebo-variances": variances(evaluations), "hebo-fits": fits(found), "hebo-conflicts": conflicts(found)}
