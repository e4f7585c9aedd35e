"""Train classifiers of handwritten digits in a loop of its own.

The data is loaded once. `worker sidecar`, on the same machine or in the same pod,
says over HTTP which hyperparameters to train with next.
"""
import json
import os
import pickle
import signal
import time
import urllib.error
import urllib.request

from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

URL = os.environ.get("SIDECAR_URL", "http://127.0.0.1:7070")
EPOCHS = 10


def call(path, **body):
    """Ask the sidecar; every request may be repeated. None: there is nothing yet."""
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=90) as response:
                text = response.read()
            return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            if error.code == 410:
                raise SystemExit("there are no more trials")
            if error.code != 503:
                raise SystemExit(f"{path}: {error.read().decode()}")
        except OSError as error:  # it is starting, perhaps again
            print(f"{path}: {error}", flush=True)
        time.sleep(1)


def train(trial, data):
    x_train, x_test, y_train, y_test = data
    p = trial["parameters"]
    epochs = p.get("epochs", EPOCHS)  # a study's fidelity, whose best trials go on with more
    start, model = 0, SGDClassifier(
        loss=p["loss"], alpha=p["alpha"], eta0=p["eta0"], learning_rate="constant", random_state=trial["seed"] % 2**32)
    if os.path.exists(trial.get("checkpoint", "")):
        with open(trial["checkpoint"], "rb") as file:
            start, model = pickle.load(file)
    for epoch in range(start, epochs):
        model.partial_fit(x_train, y_train, classes=range(10))
        error = 1 - model.score(x_test, y_test)
        answer = call("/v1/report", id=trial["id"], step=epoch, metrics={"error": error})
        if (answer["stop"] or stopping) and epoch + 1 < epochs:  # after the last epoch there is a value
            return hand_back(trial, epoch + 1, model)
    print(f"trial {trial['trial']}: error {error:.4f}", flush=True)
    return call("/v1/complete", id=trial["id"], **save(trial, epochs, model))


def hand_back(trial, epoch, model):
    return call("/v1/complete", id=trial["id"], retry="stopped in the middle", **save(trial, epoch, model))


def save(trial, epoch, model):
    """Save the model where there is a place for it; return what the sidecar is to be told of it."""
    if "checkpointDir" not in trial:
        return {}
    os.makedirs(trial["checkpointDir"], exist_ok=True)
    path = os.path.join(trial["checkpointDir"], "model.pickle")
    with open(path, "wb") as file:
        pickle.dump((epoch, model), file)
    return {"checkpoint": path}


stopping = False


def stop(*_):
    global stopping
    stopping = True


signal.signal(signal.SIGTERM, stop)
images, labels = load_digits(return_X_y=True)
data = train_test_split(images / 16, labels, test_size=0.3, random_state=0)
while not stopping:
    if trial := call("/v1/next", wait=5):
        train(trial, data)
