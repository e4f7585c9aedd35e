"""A storage with at most six completed trials, whoever evaluates them; some trials fail."""

import optuna
from optuna.study import MaxTrialsCallback
from optuna.trial import TrialState


def objective(trial):
    x = trial.suggest_float("x", 0, 10)
    if trial.number % 3 == 2:
        raise ValueError("every third one fails")
    return (x - 2) ** 2


study = optuna.create_study(study_name="capped", storage="sqlite:///capped.db", load_if_exists=True)
cap = MaxTrialsCallback(6, states=(TrialState.COMPLETE,))
study.optimize(objective, n_trials=50, callbacks=[cap], catch=(ValueError,))
frame = study.trials_dataframe()
print("complete:", (frame.state == "COMPLETE").sum())
print(study.best_trial.value)
