"""Counts trials by Optuna's own states."""

import optuna
from optuna.trial import TrialState
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

parts = train_test_split(*load_digits(return_X_y=True), random_state=0)


def objective(trial):
    model = SGDClassifier(alpha=trial.suggest_float("alpha", 1e-6, 1e2, log=True), random_state=0)
    score = 0.0
    for epoch in range(8):
        model.partial_fit(parts[0], parts[2], classes=range(10))
        score = model.score(parts[1], parts[3])
        trial.report(score, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned()
    return score


study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner(n_startup_trials=3))
study.optimize(objective, n_trials=12)
pruned = study.get_trials(deepcopy=False, states=[TrialState.PRUNED])
complete = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
assert len(pruned) + len(complete) == 12
print("pruned:", len(pruned), "complete:", len(complete), study.best_value)
