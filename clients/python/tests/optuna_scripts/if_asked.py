"""Conditions in a loop of one's own, which tells failures, too."""

import optuna

study = optuna.create_study(direction="maximize")
for _ in range(10):
    trial = study.ask()
    augment = trial.suggest_categorical("augment", ["none", "flip", "mixup"])
    strength = 0.0
    if augment != "none":
        strength = trial.suggest_float("strength", 0.1, 1.0)
    if augment == "mixup":
        strength *= trial.suggest_float("mixup_alpha", 0.1, 0.4)
    study.tell(trial, 1 - abs(strength - 0.5))
print(study.best_trial.params, len(study.trials))
