"""What the table of claims in research/results/papers.md rests on: each verdict is recomputed from the kept runs.

A row is *yes* or *no* only by at least five paired seeds and an interval, or by an exact count:

- *yes*: the whole interval is on the side that the paper claims, or within a margin where it claims no difference;
- *no*: the whole interval is on the other side, or beyond the margin;
- *inconclusive*: the interval leaves it open, there are fewer than five seeds, or the runs were not kept;
- *conditional*: it holds under one of several conditions and not under all.

A row that stands for several comparisons is *yes* if all hold, and *no* if one is against the claim.
"""

import dataclasses
import json
import lzma
import math
import os
import statistics

from . import diagnoses, equation, report, results, score

RUNS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "runs")
LEAST_SEEDS = 5
WORDS = ("yes", "no", "inconclusive", "conditional", "not played", "not tested", "not empirical")


@dataclasses.dataclass
class Found:
    """What a check found.

    `holds` is True, False, or None if it leaves the claim open. `nearest` is the end of the interval that fits the claim least, larger if worse.
    """

    holds: bool | None
    figure: str
    nearest: float = 0.0


def number(value, digits):
    return f"{value:+.{digits}f}".replace("-", "−")


def student(values):
    """The 95% interval of a mean by Student's t."""
    from scipy import stats

    half = stats.t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values) - half, statistics.fmean(values) + half


def paired(a, b, side, interval=student, margin=None, digits=3):
    """Compares two columns of figures, {(task, seed): figure}, in the pairs that both have. `side` is −1 where the paper claims that a is less.

    With a margin the claim is that both are level: as far apart as the margin at most.
    """
    both = sorted(set(a) & set(b))
    differences, seeds = [a[k] - b[k] for k in both], len({seed for _, seed in both})
    if len(differences) < 2:
        return Found(None, f"{seeds} seed" if seeds else "no runs")
    low, high = interval(differences)
    near, far = (low, high) if side > 0 else (-high, -low)
    holds = True if near > 0 else False if far < 0 else None
    if margin is not None:
        holds = True if -margin < low and high < margin else False if low > margin or high < -margin else None
    shown = f"{number(statistics.fmean(differences), digits)} ({number(low, digits)} to {number(high, digits)})"
    worst = -near if margin is None else max(high, -low)
    return Found(holds if seeds >= LEAST_SEEDS else None, f"{shown}, {seeds} seed{'s' if seeds > 1 else ''}", worst)


def counted(found, of, holds=None):
    """An exact count. The claim holds for most unless `holds` says otherwise."""
    return Found(bool(found > of / 2 if holds is None else holds), f"{found} of {of}")


def together(named):
    """One row for several comparisons, {name: Found}: what each holds, and the figure of the one that is furthest from the claim."""
    order = {False: 0, None: 1, True: 2}
    name = min(named, key=lambda n: (order[named[n].holds], -named[n].nearest))
    holds = [f.holds for f in named.values()]
    return Found(False if False in holds else None if None in holds else True, f"less `{name}` {named[name].figure}")


def word(found):
    """The verdict of a row by its checks."""
    holds = [f.holds for f in found]
    return "yes" if all(h is True for h in holds) else "no" if False in holds else "inconclusive"


class Kept:
    """The kept runs, read when they are asked for."""

    def __init__(self, folder=RUNS):
        self.folder, self._read = folder, {}

    def lines(self, name):
        path = os.path.join(self.folder, f"{name}.jsonl.xz")
        if name not in self._read:
            with lzma.open(path, "rt") as file:
                self._read[name] = [json.loads(line) for line in file]
        return self._read[name]

    def tables(self, tuner, after="128"):
        """The regrets of a tuner on the eight tables."""
        return {(r["task"], r["seed"]): r["regret"][after] for r in self.lines("paper-hebo") if r["tuner"] == tuner and after in r["regret"]}

    def gaps(self, function, model, trials, acquisition="logei"):
        """The gaps of a model of lgp: which share of the way from the best of two points to the minimum a run made."""
        made = {}
        for run in [r for name in ("lgp-others", "lgp-more", "lgp-hebo", "lgp-first") for r in self.lines(name)]:
            spec, settings = run["spec"], run["spec"].get("settings", {})
            of = spec["optimizer"], settings.get("model", "latent"), settings.get("acquisition", "logei")
            if spec["objective"] == function and spec["trials"] == trials and of == ("lgp", model, acquisition):
                losses = [(e["trial"], e["loss"]) for e in run["result"]["evaluations"] if e["outcome"] == "completed" and e["trial"] <= trials]
                first = min(loss for trial, loss in losses if trial <= 2)
                made[function, spec["seed"]] = (first - min(loss for _, loss in losses)) / first
        return made

    def uhe(self, function, method, prior, figure):
        """The regrets, or log10 of the errors of the predictions, of a method of uhe's paper: single errors can be a thousand times as large."""
        runs = [r for r in self.lines("uhe") if (r["function"], r["method"], r["prior"]) == (function, method, prior)]
        return {(function, r["seed"]): math.log10(r[figure]) if figure == "error" else r[figure] for r in runs}

    def regrets(self, function, optimizer, trials=100):
        """log10 of the regrets of an optimiser of `fantasia bench` on a function: of lgp those with its own model, from two points on."""
        made = {}
        for run in [r for name in ("lgp-others", "lgp-hebo") for r in self.lines(name)]:
            spec = run["spec"]
            settings = spec.get("settings", {})
            own = spec["optimizer"] == optimizer and settings.get("model", "latent") == "latent"
            if own and spec["objective"] == function and spec["trials"] == trials and "acquisition" not in settings:
                losses = [e["loss"] for e in run["result"]["evaluations"] if e["outcome"] == "completed"]
                made[function, spec["seed"]] = math.log10(max(min(losses), 1e-9))
        return made

    def improvements(self, method, columns):
        """By how many percent runs of a transformer of pt's paper, or of a rival, end below the mean regret of random search."""
        runs = [r for r in self.lines("pt") if r["columns"] == columns]
        chance = {f: statistics.fmean(r["regret"] for r in runs if (r["function"], r["method"]) == (f, "random")) for f in {r["function"] for r in runs}}
        return {(r["function"], r["seed"]): 100 * (1 - r["regret"] / chance[r["function"]]) for r in runs if r["method"] == method}

    def compared(self, name, mode):
        """The scores of a file of runs on the published scale."""
        scale = score.Scale.load(os.path.join(os.path.dirname(self.folder), "scale.json"))
        return report.Comparison(results.load(os.path.join(self.folder, f"{name}.jsonl.xz")), scale, mode, mixed=True)


def checks(kept):
    """{name: a function that returns what the check found}. The names are those of the table's last column."""
    made = {}
    _hebo(kept, made)
    _lgp(kept, made)
    _uhe(kept, made)
    _pt(kept, made)
    return made


def _hebo(kept, made):
    import methods

    def tables(a, b, side, after="128", margin=None):
        return lambda: paired(kept.tables(a, after), kept.tables(b, after), side, methods.interval, margin)

    made["hebo-random"] = tables("hebo-paper", "random", -1)
    made["hebo-reference"] = tables("hebo-paper", "hebo-0.3.6", -1)
    made["hebo-gpy"] = tables("hebo-0.3.6-gpy", "random", -1, "24")
    for part in ("transform", "mace", "warp", "noise"):
        made[f"hebo-no-{part}"] = tables(f"no-{part}", "hebo-paper", 1)
    made["hebo-base"] = tables("base", "hebo-paper", 1)
    made["hebo-noise-single"] = tables("base-noise", "base", -1)
    for name, tuner in (("turbo", "turbo"), ("turbo-plus", "turbo+"), ("bohb-tables", "bohb"), ("pysot", "pysot")):
        made[f"hebo-{name}"] = tables("hebo-paper", tuner, -1)
    made["hebo-base-turbo"] = tables("base", "turbo", -1, margin=0.02)
    made["hebo-gpy-paper"] = tables("hebo-paper", "hebo-0.3.6-gpy", -1, "24", margin=0.02)
    made["hebo-skopt"] = tables("hebo-paper", "skopt", -1, "48")
    made["hebo-turbos"] = tables("turbo+", "turbo", 1)

    def ahead(name, mode, tuner, other, n):
        def check():
            of = kept.compared(name, mode)
            mean, low, high, _ = of.gaps(tuner, other, n, "seen")
            seeds = len({s for _, s in of.runs[tuner].keys() & of.runs[other].keys()})
            shown = f"{number(mean, 1)} ({number(low, 1)} to {number(high, 1)}), {seeds} seed{'s' if seeds > 1 else ''}"
            return Found((True if low > 0 else False if high < 0 else None) if seeds >= LEAST_SEEDS else None, shown)

        return check

    for other in ("random", "hyperopt", "nevergrad"):
        made[f"hebo-{other}-36"] = ahead("open", "batch", "hebo", other, 128)
    made["hebo-bohb"] = ahead("hebo-sequential", "sequential", "fantasia:hebo-paper", "fantasia:bohb", 48)

    def first():
        of = equation.firsts(kept.compared("open", "batch"))
        return counted(of["hebo"], 36)

    def gain(part, figure, se=None):
        def check():
            of = [d[part] for d in kept.lines("diagnoses") if d[part]]
            return counted(sum(g[figure] > (1.96 * g[se] if se else 0) for g in of), len(of))

        return check

    def uneven(test):
        p = diagnoses.unevenness(kept.lines("noise"))
        return counted(sum(v[test] < diagnoses.SIGNIFICANT for v in p.values()), len(p))

    def conflict(pair, holds):
        def check():
            of = [d["conflict"]["pairs"][pair] for d in kept.lines("diagnoses") if d["conflict"]]
            return counted(sum(holds(c) for c in of), len(of))

        return check

    made["hebo-first"] = first
    made["hebo-levene"], made["hebo-fligner"] = lambda: uneven("levene"), lambda: uneven("fligner")
    made["hebo-warp-fit"], made["hebo-warp-surely"] = gain("warp", "alone"), gain("warp", "predictiveAlone", "seAlone")
    made["hebo-transform-fit"], made["hebo-transform-predicts"] = gain("transform", "alone"), gain("transform", "predictiveAlone")
    made["hebo-transform-surely"] = gain("transform", "predictiveAlone", "seAlone")
    made["hebo-conflict-ei-pi"], made["hebo-conflict-pi-ucb"] = (conflict(i, lambda c: c["rank"] > 1) for i in (0, 2))


# The functions of lgp's paper on which lgp and hebo were played.
BESIDE_HEBO = ("corrupted-holder-table", "shubert01", "weierstrass-8", "deflected-corrugated-spring-10")


def _lgp(kept, made):
    def gaps(function, other, side, trials=100, acquisition="logei"):
        return lambda: paired(kept.gaps(function, "latent", trials, acquisition), kept.gaps(function, other, trials, acquisition), side)

    made["lgp-weierstrass"] = gaps("weierstrass-8", "homoscedastic", -1)
    made["lgp-shubert"] = gaps("shubert01", "plain", 1)

    def corrupted():
        rivals = ("plain", "homoscedastic", "heteroscedastic")
        return together({r: gaps("corrupted-holder-table", r, 1)() for r in rivals})

    made["lgp-holder"] = corrupted
    made["lgp-spring"] = gaps("deflected-corrugated-spring-10", "homoscedastic", -1)
    made["lgp-ucb"] = gaps("corrupted-exponential-8", "homoscedastic", 1, acquisition="ucb")

    def beside_hebo():
        both = [{k: v for f in BESIDE_HEBO for k, v in kept.regrets(f, optimizer).items()} for optimizer in ("lgp", "hebo")]
        return paired(*both, -1, digits=2)

    made["lgp-hebo"] = beside_hebo
    made["lgp-boston"] = gaps("mlp-adam-boston-mse", "plain", 1, trials=20)


# mcmc takes most of the time, and has kept runs on h1 only.
RIVALS = ("map", "shrink", "adaptive", "portfolio", "random")
PRIORS = {"shape-rate": "", "mean-variance": "-mv"}
FUNCTIONS = {"branin": "branin", "hartmann": "hartmann3", "deceptive": "deceptive-2", "h1": "h1"}


def _uhe(kept, made):
    def against(function, prior, figure, rivals, margin=None, side=-1):
        def check():
            own = kept.uhe(function, "uhe", prior, figure)
            return together({r: paired(own, kept.uhe(function, r, prior, figure), side, margin=margin, digits=2) for r in rivals})

        return check

    for prior, ending in PRIORS.items():
        for name, function in FUNCTIONS.items():
            margin = 0.1 if name in ("branin", "hartmann") else None
            rivals = RIVALS + (("mcmc",) if name == "h1" else ())
            made[f"uhe-{name}{ending}"] = against(function, prior, "regret", RIVALS[:4] if margin else rivals, margin)
            made[f"uhe-error-{name}{ending}"] = against(function, prior, "error", [r for r in rivals if r != "random"])
            made[f"uhe-random-{name}{ending}"] = against(function, prior, "error", ["random"], side=1)
        for part in ("alternate", "bandit"):
            made[f"uhe-{part}{ending}"] = against("h1", prior, "regret", [part])


def _pt(kept, made):
    def against(method, columns, *rivals):
        def check():
            found = {r: paired(kept.improvements(method, columns), kept.improvements(r, columns), 1, digits=1) for r in rivals}
            return together(found) if len(rivals) > 1 else found[rivals[0]]

        return check

    for columns, ending in ((1, ""), (2, "-2"), (5, "-5")):
        made[f"pt-nu{ending}"], made[f"pt-penalty{ending}"] = against("pt-v", columns, "pt"), against("pt-r", columns, "pt")
        made[f"pt-both{ending}"] = against("pt-vr", columns, "pt", "pt-v", "pt-r")
    made["pt-gp-2"], made["pt-gp-5"] = against("pt-vr", 2, "fantasia:gp"), against("pt-vr", 5, "fantasia:gp")
    made["pt-gp"], made["pt-shipped"] = against("fantasia:gp", 1, "pt-vr"), against("fantasia:pt", 1, "pt-vr")


COLUMNS = ("paper", "claim", "verdict", "tested", "figure", "check")


def rows(text):
    """The rows of the table of claims in the text of the page, as dicts of COLUMNS. An empty paper is that of the row above."""
    made, inside = [], False
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if cells == list(COLUMNS):
            inside = True
        elif inside and not line.startswith("|"):
            break
        elif inside and not cells[0].startswith("---"):
            row = dict(zip(COLUMNS, cells, strict=True))
            row["paper"] = row["paper"] or made[-1]["paper"]
            made.append(row)
    return made


def faults(row, known):
    """What breaks the rule in a row. `known` has the checks by name."""
    if row["verdict"] not in WORDS:
        return [f"the verdict {row['verdict']!r} is none of {', '.join(WORDS)}"]
    names = [n.strip().strip("`") for n in row["check"].split(",") if n.strip()]
    unknown = [n for n in names if n not in known]
    if unknown:
        return [f"there is no check {', '.join(unknown)}"]
    found = [known[n]() for n in names]
    wrong = [f"{n} found {f.figure}, which the row does not say" for n, f in zip(names, found) if f.figure not in row["figure"]]
    if row["verdict"] in ("yes", "no") and not found:
        wrong.append(f"{row['verdict']} rests on no check")
    elif row["verdict"] == "conditional":
        if len({f.holds for f in found}) < 2 or True not in [f.holds for f in found]:
            wrong.append("conditional needs checks of which one holds and not all do")
    elif found and row["verdict"] != word(found):
        wrong.append(f"the checks say {word(found)}")
    return wrong


def main():
    """Prints what every check finds."""
    for name, check in checks(Kept()).items():
        found = check()
        print(f"{name}: {word([found])}, {found.figure}")


if __name__ == "__main__":
    main()
