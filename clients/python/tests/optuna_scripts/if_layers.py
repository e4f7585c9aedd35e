"""The number of layers says how many sizes there are."""

import optuna
from sklearn.datasets import load_iris
from sklearn.neural_network import MLPClassifier


def create_model(trial):
    n_layers = trial.suggest_int("n_layers", 1, 3)
    layers = []
    for i in range(n_layers):
        layers.append(trial.suggest_int(f"n_units_l{i}", 4, 32, log=True))
    return MLPClassifier(hidden_layer_sizes=tuple(layers), max_iter=3, random_state=1)


def objective(trial):
    import warnings

    warnings.simplefilter("ignore")
    x, y = load_iris(return_X_y=True)
    model = create_model(trial)
    model.fit(x[::2], y[::2])
    return model.score(x[1::2], y[1::2])


study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=10)
print(study.best_params["n_layers"], study.best_value)
