"""Callbacks of libraries for networks: Keras, with JAX, and transformers.

Lightning, and the Trainer of transformers, need PyTorch. Its wheel for Linux brings CUDA along, 6 GB
in all, so `make test-torch` tests these, in an environment of its own. Here the callbacks of
transformers are called by its own CallbackHandler, as its Trainer does, and several processes are
threads with a stand-in for torch.distributed.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import EarlyStopping, Float, TrialState
from fantasia_hpo._report import Reporter

pytestmark = pytest.mark.slow

EPOCHS = 6


def rate_of(trial: fantasia.Trial) -> float:
    """Return a learning rate that is too small in half of the space."""
    return 0.01 if trial.params["x"] < 0 else 0.2


def loss_after(rate: float, epoch: int) -> float:
    """Return (1 - w)^2 after steps of gradient descent from w = 0, one an epoch."""
    return float((1 - 2 * rate) ** (2 * epoch))


def stops_slow_trials(storage: Path, train: Callable[[fantasia.Trial], float], *, unit: int = 1) -> None:
    """Run a study that stops losses above 0.5 from the third report on, and compare its curves.

    Reports are sent in the background: the decision about the third is there at the fourth at the latest.
    """
    made = fantasia.create_study(
        storage=storage,
        direction="minimize",
        parameters={"x": Float(-1, 1)},
        algorithm="random",
        seed=1,
        early_stopping=EarlyStopping("threshold", {"upper": 0.5, "minSteps": 3 * unit}),
    )
    made.optimize(train, n_trials=6)
    assert {t.state for t in made.trials} == {TrialState.COMPLETED, TrialState.PRUNED}
    for t in made.trials:
        slow = float(t.params["x"]) < 0
        assert t.state is (TrialState.PRUNED if slow else TrialState.COMPLETED)
        rate = 0.01 if slow else 0.2
        curve = made.curve(t)
        assert len(curve) in ((3, 4) if slow else (EPOCHS,))
        expected = {unit * e: loss_after(rate, e) for e in range(1, len(curve) + 1)}
        assert curve == pytest.approx(expected, rel=1e-3)


def test_callback_of_keras(storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    import keras

    from fantasia_hpo.keras import PruningCallback

    ones = np.ones((4, 1), dtype="float32")

    def fit(rate: float, callback: PruningCallback, epochs: int = EPOCHS) -> float:
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model = keras.Sequential([keras.Input((1,)), layer])
        model.compile(optimizer=keras.optimizers.SGD(rate), loss="mse")
        done = model.fit(
            ones,
            ones,
            batch_size=4,
            epochs=epochs,
            validation_data=(ones, ones),
            verbose=0,
            callbacks=[callback],
        )
        return float(done.history["val_loss"][-1])

    stops_slow_trials(storage, lambda trial: fit(rate_of(trial), PruningCallback(trial)))

    made = fantasia.create_study(storage=storage, direction="minimize", parameters={"x": Float(-1, 1)})
    trial = made.ask()
    with pytest.raises(
        fantasia.SpaceError, match=r"monitor: expected one of \['loss', 'val_loss'\], got 'auc'"
    ):
        fit(0.1, PruningCallback(trial, "auc"), epochs=1)
    made.release(trial)


@pytest.mark.parametrize("strategy", ["epoch", "steps"])
def test_callback_of_transformers(storage: Path, strategy: str) -> None:
    from transformers.trainer_callback import (
        CallbackHandler,
        DefaultFlowCallback,
        TrainerControl,
        TrainerState,
    )

    from fantasia_hpo.transformers import PruningCallback

    steps = 8  # of an epoch

    def train(trial: fantasia.Trial) -> float:
        handler = CallbackHandler([DefaultFlowCallback(), PruningCallback(trial)], None, None, None, None)
        arguments, state, control = (
            types.SimpleNamespace(eval_strategy=strategy),
            TrainerState(),
            TrainerControl(),
        )
        for epoch in range(1, EPOCHS + 1):
            state.epoch, state.global_step = float(epoch), steps * epoch
            loss = loss_after(rate_of(trial), epoch)
            handler.on_evaluate(arguments, state, control, {"eval_loss": loss, "epoch": state.epoch})
        return loss

    stops_slow_trials(storage, train, unit=1 if strategy == "epoch" else steps)


class Ranks(types.ModuleType):
    """What torch.distributed does with one word of rank 0, for threads in place of processes."""

    def __init__(self, ranks: int) -> None:
        super().__init__("torch.distributed")
        self._here, self._both, self._word = threading.local(), threading.Barrier(ranks, timeout=30), None

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def get_rank(self) -> int:
        return int(self._here.rank)

    def broadcast_object_list(self, word: list[Any], src: int) -> None:
        if self.get_rank() == src:
            self._word = word[0]
        self._both.wait()
        word[0] = self._word
        self._both.wait()

    def run(self, rank: int, reports: Callable[[], None], raised: dict[int, BaseException]) -> None:
        self._here.rank = rank
        try:
            reports()
        except Exception as e:
            raised[rank] = e


@pytest.mark.parametrize("fails", [False, True])
def test_all_processes_stop_with_rank_0(storage: Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    made = fantasia.create_study(
        storage=storage,
        direction="minimize",
        parameters={"x": Float(-1, 1)},
        early_stopping=EarlyStopping("threshold", {"upper": 0.5, "minSteps": 3}),
    )
    trial = made.ask()
    ranks = Ranks(2)
    monkeypatch.setitem(sys.modules, "torch.distributed", ranks)
    reported: list[int] = []

    def value() -> float:
        if fails:
            raise fantasia.SpaceError("monitor: expected one of ['loss'], got 'auc'")
        return 0.9

    def loop(own: fantasia.Trial | None) -> None:
        reporter = Reporter(own)
        for epoch in range(1, EPOCHS + 1):
            reporter.report(value, epoch, "epoch")
            reported.append(epoch)

    raised: dict[int, BaseException] = {}
    threads = [
        threading.Thread(target=ranks.run, args=(rank, lambda own=own: loop(own), raised))
        for rank, own in enumerate([trial, None])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if fails:
        assert isinstance(raised[0], fantasia.SpaceError)
        assert str(raised[1]) == "rank 0 could not report: monitor: expected one of ['loss'], got 'auc'"
        assert reported == []
        made.release(trial)
    else:
        assert [type(e) for e in (raised[0], raised[1])] == [fantasia.TrialPruned] * 2
        assert sorted(reported) in ([1, 1, 2, 2], [1, 1, 2, 2, 3, 3])  # both stop at the same report
        made.tell(trial, state=TrialState.PRUNED)
        assert made.curve(trial.number) == dict.fromkeys(range(1, reported[-1] + 2), 0.9)


def test_only_other_ranks_have_no_trial() -> None:
    with pytest.raises(fantasia.SpaceError, match="trial: expected a trial, got None"):
        Reporter(None).report(lambda: 1.0, 1, "epoch")
