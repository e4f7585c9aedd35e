"""Networks trained epoch by epoch: the grid of hyperparameters, the data, and the training.

A network is scikit-learn's MLPClassifier with solver adam: the same initial weights, penalty, steps and loss. It is written with
NumPy because a thousand networks of one shape then train together, in one stack of matrices. test_networks.py compares the two.
"""

import itertools

import numpy as np

EPOCHS = 81
SEEDS = (0, 1, 2)
DATA = ("digits", "photos", "breast")
# The names, and the order of a table's axes. Each value is listed, so that every point that a tuner suggests is in the table.
GRID = {
    "lr": [1e-4, 2.2e-4, 4.6e-4, 1e-3, 2.2e-3, 4.6e-3, 1e-2, 2.2e-2, 4.6e-2, 1e-1],
    "alpha": [1e-4, 1e-2, 1.0],
    "width": [8, 16, 32, 64],
    "layers": [1, 2],
    "batch": [16, 32, 64, 128],
}
SHAPES = list(itertools.product(GRID["width"], GRID["layers"], GRID["batch"]))


def data(name):
    """(training inputs, training classes, validation inputs, validation classes), standardised by the training half."""
    from sklearn import datasets  # here, because reading a table does not need it

    if name == "digits":
        inputs, classes = datasets.load_digits(return_X_y=True)
    elif name == "breast":
        inputs, classes = datasets.load_breast_cancer(return_X_y=True)
    else:
        inputs, classes = _patches(datasets.load_sample_images().images)
    order = np.random.default_rng(0).permutation(len(inputs))
    inputs, classes = inputs[order].astype(np.float64), classes[order]
    half = len(inputs) // 2
    centre, spread = inputs[:half].mean(0), inputs[:half].std(0)
    inputs = ((inputs - centre) / np.where(spread > 0, spread, 1)).astype(np.float32)
    return inputs[:half], classes[:half], inputs[half:], classes[half:]


def _patches(photos, count=900, side=8):
    """Grey squares of two photos; the class is the photo that a square is of."""
    rng, inputs = np.random.default_rng(0), []
    for photo in photos:
        grey = photo.mean(2)
        for _ in range(count):
            top, left = rng.integers(grey.shape[0] - side), rng.integers(grey.shape[1] - side)
            inputs.append(grey[top : top + side, left : left + side].ravel())
    return np.array(inputs), np.repeat([0, 1], count)


def initial(sizes, seed):
    """Weights and biases as MLPClassifier draws them for relu: uniform within sqrt(6 / (in + out))."""
    rng, parameters = np.random.default_rng(seed), []
    for before, after in itertools.pairwise(sizes):
        bound = (6 / (before + after)) ** 0.5
        parameters += [rng.uniform(-bound, bound, (before, after)), rng.uniform(-bound, bound, (1, after))]
    return parameters


def train(inputs, classes, watch, width, layers, batch, lr, alpha, seeds, epochs=EPOCHS, shuffle=True):
    """Trains a stack of networks of one shape, one for each (lr, alpha, seed), and yields watch(forward) after each epoch.

    forward(x) gives the logits of a batch x, of shape (lr, alpha, seeds, rows, classes).
    """
    kinds = int(classes.max()) + 1
    sizes = [inputs.shape[1]] + [width] * layers + [kinds]
    by_seed = [initial(sizes, seed) for seed in seeds]
    stack = (len(lr), len(alpha), len(seeds))
    weights = [np.broadcast_to(np.stack(p), stack + p[0].shape).astype(np.float32) for p in zip(*by_seed)]
    first, second = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    rate = np.array(lr, np.float32).reshape(-1, 1, 1, 1, 1)
    penalty = np.array(alpha, np.float32).reshape(-1, 1, 1, 1)
    targets = np.eye(kinds, dtype=np.float32)[classes]
    orders, step = [np.random.default_rng(1000 + seed) for seed in seeds], 0

    def forward(x):
        for i in range(0, len(weights) - 2, 2):
            x = np.maximum(x @ weights[i] + weights[i + 1], 0)
        return x @ weights[-2] + weights[-1]

    for _ in range(epochs):
        rows = np.stack([order.permutation(len(inputs)) if shuffle else np.arange(len(inputs)) for order in orders])
        for start in range(0, len(inputs), batch):
            chosen = rows[:, start : start + batch]
            size, step = chosen.shape[1], step + 1
            activations = [inputs[chosen]]
            for i in range(0, len(weights) - 2, 2):
                hidden = activations[-1] @ weights[i]
                hidden += weights[i + 1]
                activations.append(np.maximum(hidden, 0, out=hidden))
            delta = activations[-1] @ weights[-2] + weights[-1]
            delta -= delta.max(-1, keepdims=True)
            np.exp(delta, out=delta)
            delta /= delta.sum(-1, keepdims=True)
            delta -= targets[chosen]
            delta /= size
            scale = rate * ((1 - 0.999**step) ** 0.5 / (1 - 0.9**step))
            for i in range(len(weights) - 2, -1, -2):
                gradient = np.swapaxes(activations[i // 2], -1, -2) @ delta
                gradient += weights[i] * (penalty / size)
                bias = delta.sum(-2, keepdims=True)
                if i:
                    delta = delta @ np.swapaxes(weights[i], -1, -2)
                    delta *= activations[i // 2] > 0
                for k, g in ((i, gradient), (i + 1, bias)):
                    first[k] *= 0.9
                    first[k] += 0.1 * g
                    second[k] *= 0.999
                    second[k] += 0.001 * np.square(g)
                    change = np.sqrt(second[k])
                    change += 1e-8
                    np.divide(first[k], change, out=change)
                    change *= scale
                    weights[k] -= change
        yield watch(forward)


def scores(inputs, classes):
    """What is recorded of networks after an epoch: the mean log loss, and the share of wrong classes."""

    def watch(forward):
        logits = forward(inputs).astype(np.float64)
        logits -= logits.max(-1, keepdims=True)
        right = np.take_along_axis(logits, np.broadcast_to(classes[:, None], logits.shape[:-1] + (1,)), -1)[..., 0]
        return (np.log(np.exp(logits).sum(-1)) - right).mean(-1), (logits.argmax(-1) != classes).mean(-1)

    return watch


def seconds_per_epoch(inputs, classes, width, layers, batch, repeats=5):
    """The least processor time that scikit-learn took for an epoch of such a network."""
    import time

    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier((width,) * layers, batch_size=batch, random_state=0)
    network.partial_fit(inputs, classes, classes=np.unique(classes))
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        network.partial_fit(inputs, classes)
        taken.append(time.process_time() - start)
    return min(taken)
