import unittest
from unittest import mock

import numpy as np
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

from fantasia_bench import networks


class NetworksTest(unittest.TestCase):
    def test_a_network_of_the_stack_is_scikit_learns(self):
        inputs, classes, valid, valid_classes = networks.data("digits")
        lr, alpha, width, layers, batch, seed = 0.0046, 1.0, 8, 2, 32, 1
        watch = networks.scores(valid, valid_classes)
        stack = list(networks.train(inputs, classes, watch, width, layers, batch, [1e-3, lr], [alpha], [0, seed], epochs=4, shuffle=False))
        weights = iter(networks.initial([64, width, width, 10], seed))
        start = lambda *_: (next(weights).copy(), next(weights).ravel().copy())
        theirs = MLPClassifier((width,) * layers, alpha=alpha, batch_size=batch, learning_rate_init=lr, shuffle=False)
        with mock.patch.object(MLPClassifier, "_init_coef", start):
            for loss, error in stack:
                theirs.partial_fit(inputs.astype(np.float64), classes, classes=np.arange(10))
                answers = theirs.predict_proba(valid.astype(np.float64))
                self.assertAlmostEqual(loss[1, 0, 1], log_loss(valid_classes, answers), delta=1e-4)
                self.assertAlmostEqual(error[1, 0, 1], np.mean(answers.argmax(1) != valid_classes), delta=2e-3)


if __name__ == "__main__":
    unittest.main()
