"""Makes parallel.log, repeated.log and studies.log: python make_shapes.py. They have the shapes of journals of Optuna in public
repositories, with other names and numbers."""

import json


def dist(kind, **attributes):
    return json.dumps({"name": kind + "Distribution", "attributes": attributes})


def write(path, lines):
    with open(path, "w") as out:
        for line in lines:
            out.write(json.dumps(line, separators=(",", ":")) + "\n")


def op(code, worker="w-1", **fields):
    return {"op_code": code, "worker_id": worker, **fields}


def param(trial, name, value, distribution, worker="w-1"):
    return op(5, worker, trial_id=trial, param_name=name, param_value_internal=value, distribution=distribution)


RATE = dist("Float", step=None, low=0.001, high=0.25, log=True)
DEPTH = dist("Int", log=False, step=1, low=2, high=9)
UNITS = dist("Int", log=False, step=32, low=32, high=256)
SOLVER = dist("Categorical", choices=["adam", "sgd"])
BATCH = dist("Categorical", choices=[16, 64])
FLAG = dist("Categorical", choices=[True, False])

# Two processes at once: their lines alternate, with values at steps. One trial is pruned, one still runs.
lines = [op(0, study_name="boosting", directions=[2])]
for trial, worker in enumerate(["w-1", "w-2", "w-1", "w-2"]):
    lines.append(op(4, worker, study_id=0, datetime_start="2025-01-01T00:00:00.000000"))
for name, values, distribution in [("eta", [0.01, 0.2, 0.05, 0.1], RATE), ("lambda", [3.0, 8.0, 2.0, 5.0], DEPTH)]:
    for trial in (1, 0, 3, 2):
        lines.append(param(trial, name, values[trial], distribution, "w-1" if trial % 2 == 0 else "w-2"))
for step in range(3):
    for trial in (0, 1, 2, 3):
        lines.append(op(7, trial_id=trial, step=step, intermediate_value=0.5 + trial / 10 + step / 100))
for trial, state, values in [(1, 1, [0.75]), (0, 1, [0.5]), (2, 2, [0.625])]:
    lines.append(op(6, trial_id=trial, state=state, values=values, datetime_complete="2025-01-01T00:01:00.000000"))
write("parallel.log", lines)

# One process at a time, started three times: it evaluates the same point again, and the last time does not end.
lines = [op(0, study_name="network", directions=[2])]
for trial in range(3):
    worker = f"w-{trial}"
    lines.append(op(4, worker, study_id=0, datetime_start="2025-01-01T00:00:00.000000"))
    for name, value, distribution in [("rate", 0.004, RATE), ("units", 96.0, UNITS), ("solver", 1, SOLVER)]:
        lines.append(param(trial, name, value, distribution, worker))
    if trial < 2:
        lines.append(op(6, worker, trial_id=trial, state=1, values=[0.5 + trial / 8], datetime_complete="2025-01-01T00:01:00.000000"))
write("repeated.log", lines)

# Two studies in one file, with user attributes: texts, paths of Windows, numbers. The times have zones.
lines = []
for study in range(2):
    lines.append(op(0, study_name=f"schedule_{study}", directions=[1]))
    for n in range(2):
        trial = 2 * study + n
        lines.append(op(4, study_id=study, datetime_start="2025-01-01T00:00:00.000000+00:00"))
        for name, value, distribution in [("batch", n, BATCH), ("rate", 0.01 * (1 + n), RATE), ("greedy", 1 - n, FLAG)]:
            lines.append(param(trial, name, value, distribution))
        for key, value in [("run", f"a/trial_{n}"), ("dir", f"results\\a\\trial_{n}"), ("gap", 0.125 * (trial + 1)), ("seconds", 25.5)]:
            lines.append(op(8, trial_id=trial, user_attr={key: value}))
        lines.append(op(6, trial_id=trial, state=1, values=[1.5 - 0.25 * trial], datetime_complete="2025-01-01T00:01:00.000000+00:00"))
write("studies.log", lines)
