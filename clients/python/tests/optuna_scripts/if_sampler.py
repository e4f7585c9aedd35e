"""Groups of parameters by a sampler that knows them, two objectives, and plots."""

import optuna


def objective(trial):
    kind = trial.suggest_categorical("kind", ["cnn", "transformer"])
    if kind == "cnn":
        size = trial.suggest_int("channels", 8, 64, log=True) * trial.suggest_int("blocks", 1, 4)
        return 1 / size, float(size)
    heads = trial.suggest_categorical("heads", [2, 4, 8])
    width = trial.suggest_int("width", 32, 128, step=32)
    return 1 / (heads + width), float(heads * width)


sampler = optuna.samplers.TPESampler(multivariate=True, group=True, seed=1)
study = optuna.create_study(sampler=sampler, directions=["minimize", "minimize"])
study.optimize(objective, n_trials=12)
figure = optuna.visualization.plot_pareto_front(study)
print([t.number for t in study.best_trials])
