"""Compile benchmark.c with flags of gcc and print how long the program takes.

With valgrind, that is an estimate of its cycles, which does not depend on what else the machine
does: instructions, and what wrong branches and misses of the caches cost. With --measure=time it is
the shortest of 20 runs, in seconds."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

CHECKSUM = "0a9085b573bf73da"

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--measure", choices=["cycles", "time"], default="cycles")
parser.add_argument("--level", default="O2", help="level of optimisation")
parser.add_argument("--march", default="x86-64", help="processor to compile for")
parser.add_argument("--inline", type=int, help="largest function to inline, in gcc's instructions")
parser.add_argument("--unroll-times", type=int, help="how often to unroll a loop at most")
SWITCHES = ["unroll-loops", "tree-vectorize", "peel-loops", "split-loops", "prefetch-loop-arrays", "if-conversion", "schedule-insns"]
for switch in SWITCHES:
    parser.add_argument(f"--{switch}", choices=["true", "false"])
args = parser.parse_args()

flags = [f"-{args.level}", f"-march={args.march}"]
for switch in SWITCHES:
    on = getattr(args, switch.replace("-", "_"))
    if on is not None:
        flags.append(f"-f{switch}" if on == "true" else f"-fno-{switch}")
if args.inline is not None:
    flags += ["-finline-functions", f"--param=max-inline-insns-auto={args.inline}"]
if args.unroll_times is not None:
    flags.append(f"--param=max-unroll-times={args.unroll_times}")

with tempfile.TemporaryDirectory() as folder:
    program = f"{folder}/benchmark"
    subprocess.run(["gcc", *flags, "-o", program, pathlib.Path(__file__).parent / "benchmark.c"], check=True)
    if args.measure == "time":
        costs = []
        for _ in range(20):
            start = time.perf_counter()
            out = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
            costs.append(time.perf_counter() - start)
        cost = min(costs)
    else:
        run = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes",
                              f"--cachegrind-out-file={folder}/counts", program],
                             check=True, capture_output=True, text=True)
        out = run.stdout
        events, summary = (re.search(rf"^{word}: (.*)$", pathlib.Path(f"{folder}/counts").read_text(), re.M)[1].split()
                           for word in ("events", "summary"))
        count = dict(zip(events, map(int, summary)))
        # The weights are those of KCachegrind's estimate of cycles.
        cost = (count["Ir"] + 10 * (count["Bcm"] + count["Bim"]) + 10 * (count["I1mr"] + count["D1mr"] + count["D1mw"])
                + 100 * (count["ILmr"] + count["DLmr"] + count["DLmw"])) / 1e6
if out.strip() != CHECKSUM:
    sys.exit(f"the program compiled with {' '.join(flags)} prints {out.strip()}; want {CHECKSUM}")
print(f"cost={cost:.6f}")
