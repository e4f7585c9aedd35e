"""A loop of epochs that reports, and stops when it is told to."""

import optuna
from optuna.trial import TrialState
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split


def objective(trial):
    data = load_iris(return_X_y=True)
    x, held, y, wanted = train_test_split(*data, test_size=0.25, random_state=0)
    model = SGDClassifier(alpha=trial.suggest_float("alpha", 1e-5, 1e-1, log=True), random_state=1)
    for step in range(12):
        model.partial_fit(x, y, classes=[0, 1, 2])
        trial.report(1.0 - model.score(held, wanted), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return 1.0 - model.score(held, wanted)


study = optuna.create_study(direction="minimize")
study.optimize(objective, n_trials=8)
pruned = study.get_trials(deepcopy=False, states=[TrialState.PRUNED])
print(f"{len(study.trials)} trials, {len(pruned)} of them pruned")
