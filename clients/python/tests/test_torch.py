"""Callbacks of Lightning and of transformers' Trainer, each of them real, also in two processes.

PyTorch's wheel for Linux brings CUDA along, 6 GB in all. So `make test-torch` runs these tests in an
environment of its own, and `make test-client` leaves them out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_networks import EPOCHS, loss_after, rate_of, stops_slow_trials

import fantasia_hpo as fantasia
from fantasia_hpo import EarlyStopping, Float, TrialState

pytestmark = [pytest.mark.slow, pytest.mark.torch]

# The module and the two ways of training it: (1 - w)^2 by gradient descent from w = 0, one step an epoch.
TRAINING = '''
import torch
import pytorch_lightning as pl
from torch.utils.data import DataLoader, Dataset


class Ones(Dataset):
    """As many ones as processes train, so that each has one batch an epoch."""

    def __init__(self, processes):
        self.processes = processes

    def __len__(self):
        return self.processes

    def __getitem__(self, index):
        return {"x": torch.ones(1)}


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return {"loss": ((self.w * x - 1) ** 2).mean()}


class Module(pl.LightningModule):
    def __init__(self, rate):
        super().__init__()
        self.line, self.rate = Line(), rate

    def training_step(self, batch, index):
        return self.line(**batch)["loss"]

    def validation_step(self, batch, index):
        self.log("val_loss", self.line(**batch)["loss"], sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.rate)


def fit_lightning(rate, trial, epochs, processes=1, monitor="val_loss"):
    from fantasia_hpo.lightning import PruningCallback

    trainer = pl.Trainer(
        max_epochs=epochs, accelerator="cpu", devices=processes, strategy="ddp" if processes > 1 else "auto",
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[PruningCallback(trial, monitor)],
    )
    data = DataLoader(Ones(processes))
    trainer.fit(Module(rate), data, data)
    return float(trainer.callback_metrics["val_loss"])


def fit_transformers(rate, trial, epochs, processes=1, monitor="eval_loss"):
    import transformers
    from fantasia_hpo.transformers import PruningCallback

    class Sgd(transformers.Trainer):
        def create_optimizer(self, *arguments):
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate)
            return self.optimizer

    arguments = transformers.TrainingArguments(
        output_dir="out", num_train_epochs=epochs, eval_strategy="epoch", save_strategy="no",
        report_to="none", lr_scheduler_type="constant", per_device_train_batch_size=1,
        per_device_eval_batch_size=1, use_cpu=True, disable_tqdm=True, max_grad_norm=0.0,
        logging_strategy="no", label_names=["x"],
    )
    trainer = Sgd(
        Line(), arguments, train_dataset=Ones(processes), eval_dataset=Ones(processes),
        callbacks=[PruningCallback(trial, monitor)],
    )
    trainer.train()
    return trainer.evaluate()["eval_loss"]
'''

# Each process of a training runs this; rank 0 has the trial.
PROCESS = """
import json
import os
import sys
from datetime import timedelta

import torch.distributed

import fantasia_hpo as fantasia
from training import fit_lightning, fit_transformers

library, storage, name = sys.argv[1:]
rank = int(os.environ["RANK"])
torch.distributed.init_process_group("gloo", timeout=timedelta(seconds=60))
trial = fantasia.load_study(name, storage=storage).ask() if rank == 0 else None
fit = fit_lightning if library == "lightning" else fit_transformers
try:
    fit(0.01, trial, 200, processes=2)
    ended = "completed"
except fantasia.TrialPruned as e:
    ended = str(e)
if trial is not None:
    trial.study.tell(trial, state="PRUNED")
with open(f"rank{rank}.json", "w") as f:
    json.dump(ended, f)
"""


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "training.py").write_text(TRAINING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("training", None)
    import training  # type: ignore[import-not-found]

    return training


@pytest.mark.parametrize("library", ["lightning", "transformers"])
def test_callback_stops_slow_trials(storage: Path, training: Any, library: str) -> None:
    fit = getattr(training, f"fit_{library}")
    stops_slow_trials(storage, lambda trial: float(fit(rate_of(trial), trial, EPOCHS)))

    made = fantasia.create_study(storage=storage, direction="minimize", parameters={"x": Float(-1, 1)})
    trial = made.ask()
    with pytest.raises(fantasia.SpaceError, match=r"expected one of \[.*_loss'.*\], got 'auc'"):
        fit(0.1, trial, 1, monitor="auc")
    made.release(trial)


@pytest.mark.parametrize("library", ["lightning", "transformers"])
def test_both_processes_stop(storage: Path, training: Any, tmp_path: Path, library: str) -> None:
    made = fantasia.create_study(
        storage=storage,
        direction="minimize",
        parameters={"x": Float(-1, 1)},
        early_stopping=EarlyStopping("threshold", {"upper": 0.5, "minSteps": 3}),
    )
    (tmp_path / "process.py").write_text(PROCESS)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local_addr=127.0.0.1"]
    done = subprocess.run(
        [*command, "--nproc_per_node=2", "process.py", library, str(storage), made.name],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    ended = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1)]
    told = re.fullmatch(r"stopped after epoch (\d+)", ended[0])
    assert told, ended
    assert ended[0] == ended[1]
    last = int(told[1])
    assert last >= 3  # the rule decides after epoch 3, while the next epochs run
    (trial,) = made.trials
    assert trial.state is TrialState.PRUNED
    curve = made.curve(trial)
    assert set(curve) <= set(range(1, last + 1))
    assert len(curve) >= 3
    assert curve == pytest.approx({e: loss_after(0.01, e) for e in curve}, rel=1e-3)
