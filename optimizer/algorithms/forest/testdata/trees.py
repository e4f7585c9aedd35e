#!/usr/bin/env python3
"""Prints trees.json: predictions of scikit-learn's regression trees at their own rows.

    pip install scikit-learn==1.9.1 && ./trees.py > trees.json

At the rows that a tree was grown to, the prediction depends on how the rows were parted
and not on where a threshold lies between two of them.
"""
import json

import numpy
from sklearn.tree import DecisionTreeRegressor


def main():
    rng, cases = numpy.random.default_rng(1), []
    for n, d, leaf in ((5, 1, 1), (20, 2, 1), (60, 3, 3), (200, 5, 5), (200, 5, 20)):
        x = rng.uniform(size=(n, d))
        y = numpy.sin(6 * x[:, 0]) + (x**2).sum(axis=1) + 0.1 * rng.normal(size=n)
        tree = DecisionTreeRegressor(min_samples_leaf=leaf, random_state=0).fit(x, y)
        cases.append({"leaf": leaf, "x": x.tolist(), "y": y.tolist(), "leaves": int(tree.get_n_leaves()), "predicted": tree.predict(x).tolist()})
    print(json.dumps(cases))


if __name__ == "__main__":
    main()
