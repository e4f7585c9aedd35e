"""Writes zdt.json: hypervolumes that pymoo 0.6.2's NSGA-II reaches on ZDT1, ZDT2
and ZDT3 with 30 variables: population 100, its defaults otherwise (SBX eta 15 with
probability 0.9, polynomial mutation eta 20 with probability 1/30), after 15,000
and 25,000 evaluations. Reference point (1.1, 1.1); points that do not dominate it
count for nothing. After 10,000 evaluations, populations on ZDT2 are still under
way: its hypervolumes lie between 0.35 and 0.50, too far apart to compare.

Run from optimizer/numeric/nsga2: python3 testdata/zdt.py
"""
import json

from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.indicators.hv import HV
from pymoo.optimize import minimize
from pymoo.problems import get_problem

SEEDS = {150: 31, 250: 11}  # by generations; pymoo counts the first population as one

hypervolume = HV(ref_point=[1.1, 1.1])
result = {}
for name in ("zdt1", "zdt2", "zdt3"):
    volumes = {g: [] for g in SEEDS}
    for seed in range(1, max(SEEDS.values()) + 1):
        def record(algorithm):
            if algorithm.n_gen in volumes:
                assert algorithm.evaluator.n_eval == 100 * algorithm.n_gen
                volumes[algorithm.n_gen].append(float(hypervolume(algorithm.pop.get("F"))))

        last = max(g for g, seeds in SEEDS.items() if seed <= seeds)
        minimize(get_problem(name, n_var=30), NSGA2(pop_size=100), ("n_gen", last), seed=seed, callback=record)
    result[name] = [{"evaluations": 100 * g, "hypervolumes": v} for g, v in volumes.items()]

with open("testdata/zdt.json", "w") as f:
    json.dump(result, f, indent=1)
    f.write("\n")
