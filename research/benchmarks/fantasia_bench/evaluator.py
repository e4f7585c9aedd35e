"""What a task's point costs: the mean loss of a 5-fold cross-validation on 80% of the data. Needs scikit-learn 1.1.3."""

import json
import sys
import warnings

import numpy
from sklearn import datasets, ensemble, linear_model, model_selection, neighbors, neural_network, svm, tree

_DATA = {
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast": datasets.load_breast_cancer,
    "boston": datasets.load_boston,
    "diabetes": datasets.load_diabetes,
}
_SCORING = {"nll": "neg_log_loss", "acc": "accuracy", "mae": "neg_mean_absolute_error", "mse": "neg_mean_squared_error"}

_SGD = {"solver": "sgd", "early_stopping": True, "learning_rate": "invscaling", "nesterovs_momentum": True}
_ADAM = {"solver": "adam", "early_stopping": True}
_LOGISTIC = {"solver": "liblinear", "multi_class": "ovr"}

# For each model its classifier and its regressor, with the arguments that are not searched.
_MODELS = {
    "kNN": ((neighbors.KNeighborsClassifier, {}), (neighbors.KNeighborsRegressor, {})),
    "SVM": ((svm.SVC, {"kernel": "rbf", "probability": True}), (svm.SVR, {"kernel": "rbf"})),
    "DT": ((tree.DecisionTreeClassifier, {}), (tree.DecisionTreeRegressor, {})),
    "RF": ((ensemble.RandomForestClassifier, {"n_estimators": 10}), (ensemble.RandomForestRegressor, {"n_estimators": 10})),
    "MLP-adam": ((neural_network.MLPClassifier, _ADAM), (neural_network.MLPRegressor, _ADAM)),
    "MLP-sgd": ((neural_network.MLPClassifier, _SGD), (neural_network.MLPRegressor, _SGD | {"activation": "tanh"})),
    "ada": ((ensemble.AdaBoostClassifier, {}), (ensemble.AdaBoostRegressor, {})),
    "lasso": ((linear_model.LogisticRegression, _LOGISTIC | {"penalty": "l1"}), (linear_model.Lasso, {})),
    "linear": ((linear_model.LogisticRegression, _LOGISTIC | {"penalty": "l2"}), (linear_model.Ridge, {})),
}


class Evaluator:
    """Evaluates points of one task. `split` says which fifth of the data is held out."""

    def __init__(self, task, split=0):
        warnings.filterwarnings("ignore")
        inputs, targets = _DATA[task.data](return_X_y=True)
        # The 20% held out belong to the definition, but nothing here looks at them.
        self.inputs, _, self.targets, _ = model_selection.train_test_split(inputs, targets, test_size=0.2, random_state=split)
        self.make, self.fixed = _MODELS[task.model][task.regression]
        self.metric = task.metric

    def loss(self, parameters, seed=None):
        """The loss, finite; a model that cannot be fitted raises. Models draw from numpy's generator, which `seed` sets."""
        return self.losses(parameters, [self.metric], seed)[self.metric]

    def losses(self, parameters, metrics, seed=None):
        """The losses of the same fits under several metrics, {metric: loss}."""
        if seed is not None:
            numpy.random.seed(seed % 2**32)
        scoring = {metric: _SCORING[metric] for metric in metrics}
        found = model_selection.cross_validate(self.make(**parameters, **self.fixed), self.inputs, self.targets, scoring=scoring, cv=5)
        losses = {metric: -float(numpy.mean(found[f"test_{metric}"])) for metric in metrics}
        for loss in losses.values():
            if not numpy.isfinite(loss):
                raise ValueError(f"the loss is {loss}")
        return losses


def serve(task, lines=sys.stdin, out=sys.stdout):
    """Stream mode: a line of JSON a trial in, one out. The line's `seed` is that of the trial's noise."""
    evaluator = Evaluator(task)
    for line in lines:
        trial = json.loads(line)["fantasia"]
        try:
            report = {"metrics": {"loss": evaluator.loss(trial["parameters"], trial.get("seed"))}, "done": True}
        except Exception as problem:  # whatever a model raises at a point is that point's failure
            report = {"error": f"{type(problem).__name__}: {problem}"[:300]}
        print(json.dumps({"fantasia": {"trial": trial["trial"]} | report}), file=out, flush=True)
