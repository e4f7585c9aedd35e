"""Writes oracle.json: which trials the pruners of Optuna and Syne Tune stop at which step, on the curves that it holds too.

    python oracle.py DIGITS.npz > oracle.json

DIGITS.npz is one of the parts that research/benchmarks/make_curves.py keeps. It needs optuna 5.0.0, syne-tune 0.16.0, SciPy and NumPy.

Eight trials run at a time and report in turn. A trial that is stopped, or that has reported its last step, gives its place to the
next one.
"""

import json
import sys
import warnings

import numpy as np
import optuna
from optuna import pruners
from optuna.trial import TrialState
from scipy import stats

warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
WORKERS = 8


def play(curves, begin, report, end):
    """The trials that were stopped, with the steps; report says whether to stop."""
    stopped, waiting, running = [], iter(range(len(curves))), []
    while True:
        while len(running) < WORKERS and (trial := next(waiting, None)) is not None:
            running.append([trial, 0])
            begin(trial)
        if not running:
            return stopped
        for place in list(running):
            trial, step = place[0], place[1] + 1
            place[1] = step
            if report(trial, step, curves[trial][step - 1]):
                stopped.append([trial, step])
                end(trial, False)
            elif step == len(curves[trial]):
                end(trial, True)
            else:
                continue
            running.remove(place)


def with_optuna(pruner, curves, sign, final=lambda curve: curve[-1]):
    study = optuna.create_study(direction="minimize" if sign > 0 else "maximize", pruner=pruner)
    trials = {}

    def report(trial, step, cost):
        trials[trial].report(sign * cost, step)
        return trials[trial].should_prune()

    def end(trial, completed):
        if completed and not np.isnan(value := final(curves[trial])):
            study.tell(trials[trial], sign * value)
        else:
            study.tell(trials[trial], state=TrialState.PRUNED)

    return play(curves, lambda trial: trials.update({trial: study.ask()}), report, end)


def with_syne(curves, sign, median):
    from syne_tune.backend.trial_status import Trial
    from syne_tune.config_space import uniform
    from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving
    from syne_tune.optimizer.schedulers.median_stopping_rule import MedianStoppingRule
    from syne_tune.optimizer.scheduler import SchedulerDecision

    # Around the median rule, a scheduler whose first rung no trial reaches.
    steps, first = max(map(len, curves)), 10**6 if median else 1
    scheduler = AsynchronousSuccessiveHalving(
        {"x": uniform(0, 1)}, "cost", do_minimize=sign > 0, time_attr="step", max_t=max(steps, first), grace_period=first, random_seed=0
    )
    if median:
        scheduler = MedianStoppingRule(scheduler, "step", metric="cost", running_average=False, grace_population=5, do_minimize=sign > 0)
    trials = {}

    def begin(trial):
        trials[trial] = Trial(trial, {"x": 0.5}, None)
        (scheduler.scheduler if median else scheduler).on_trial_add(trials[trial])

    def report(trial, step, cost):
        decision = scheduler.on_trial_result(trials[trial], {"cost": sign * cost, "step": step})
        return step < steps and decision == SchedulerDecision.STOP

    return play(curves, begin, report, lambda *_: None)


def main():
    errors = np.load(sys.argv[1])["loss"].reshape(-1, 81)[:, :27]
    rng = np.random.default_rng(0)
    curves = [[round(float(v), 4) for v in errors[i]] for i in rng.permutation(len(errors))[:60]]
    with_nan = [list(curve) for curve in curves]
    for i in range(0, 60, 7):  # some diverge, some miss a value
        start = int(rng.integers(27))
        with_nan[i][start : start + int(rng.integers(1, 27))] = [float("nan")] * 27
        del with_nan[i][27:]
    instances = rng.normal(0, 1, 20)
    folds = [[round(float(v), 2) for v in instances + rng.exponential() + rng.normal(0, 0.5, 20)] for _ in range(60)]
    folds[5][3] = folds[0][3]  # no difference
    rough = [[round(v, 0) for v in fold] for fold in folds]  # ties
    result = {"curves": {"losses": curves, "holes": with_nan, "folds": folds, "rough": rough}, "played": [], "wilcoxon": []}

    def optuna_plays(name, pruner, data, settings, **options):
        for sign in (1, -1):
            stopped = with_optuna(pruner, result["curves"][data], sign, **options)
            result["played"].append({"peer": "optuna", "name": name, "curves": data, "settings": settings, "maximize": sign < 0, "stopped": stopped})

    for data in ("losses", "holes"):
        optuna_plays("asha", pruners.SuccessiveHalvingPruner(1, 3), data, {"minSteps": 1, "reduction": 3})
        optuna_plays("asha", pruners.SuccessiveHalvingPruner(2, 4), data, {"minSteps": 2, "reduction": 4})
        optuna_plays("median", pruners.MedianPruner(5, 0), data, {"minCompleted": 5})
        optuna_plays("median", pruners.MedianPruner(1, 4), data, {"minCompleted": 1, "minSteps": 4})
        optuna_plays("percentile", pruners.PercentilePruner(25.0, 3), data, {"minCompleted": 3, "keep": 25})
        optuna_plays("patient", pruners.PatientPruner(None, 3, 0.001), data, {"patience": 3, "minDelta": 0.001})
    for sign in (1, -1):
        bounds = {"upper": 1.5} if sign > 0 else {"lower": -1.5}
        stopped = with_optuna(pruners.ThresholdPruner(**bounds, n_warmup_steps=3), with_nan, sign)
        result["played"].append(
            {"peer": "optuna", "name": "threshold", "curves": "holes", "settings": {"minSteps": 3, **bounds}, "maximize": sign < 0, "stopped": stopped}
        )
    for data in ("folds", "rough"):
        optuna_plays("wilcoxon", pruners.WilcoxonPruner(p_threshold=0.1), data, {}, final=np.mean)
        optuna_plays("wilcoxon", pruners.WilcoxonPruner(p_threshold=0.02), data, {"pValue": 0.02}, final=np.mean)
    for name, median in (("asha", False), ("median", True)):
        for sign in (1, -1):
            settings = {"minCompleted": 0} if median else {"minSteps": 1, "reduction": 3, "maxSteps": 27}
            stopped = with_syne(curves, sign, median)
            result["played"].append({"peer": "syne-tune", "name": name, "curves": "losses", "settings": settings, "maximize": sign < 0, "stopped": stopped})
    for count in (2, 3, 5, 8, 13, 14, 20, 50, 51, 80):
        for digits in (6, 0):  # without and with ties
            differences = [round(float(v), digits) for v in rng.normal(0.2, 1.5, count)]
            p = stats.wilcoxon(differences, alternative="greater", zero_method="zsplit").pvalue
            result["wilcoxon"].append({"differences": differences, "p": float(p)})
    text = json.dumps(result, separators=(",", ":")).replace("NaN", "null")
    print(text.replace('},{"peer"', '},\n{"peer"').replace('},{"differences"', '},\n{"differences"'))


main()
