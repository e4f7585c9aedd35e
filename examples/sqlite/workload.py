"""Run a workload on SQLite with the settings that the flags give, and print what it costs.

An application logs events in small transactions, looks users up, changes what it has, and makes a
report. `synchronous` stays at FULL: no setting here may lose a transaction. The cost is the processor's
time, user and system, of the fastest of three runs: unlike the time on the clock, it depends little
on what else the machine does. --measure=time takes the clock, for a machine of its own."""
import argparse
import pathlib
import random
import sqlite3
import tempfile
import time

# The defaults are those of SQLite.
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--measure", choices=["cpu", "time"], default="cpu")
parser.add_argument("--journal-mode", choices=["delete", "truncate", "persist", "wal"], default="delete")
parser.add_argument("--wal-autocheckpoint", type=int, default=1000, help="pages")
parser.add_argument("--page-size", type=int, default=4096, help="bytes")
parser.add_argument("--cache", type=int, default=2000, help="KiB")
parser.add_argument("--mmap", type=int, default=0, help="MiB of the file that are mapped into memory")
parser.add_argument("--temp-store", choices=["default", "file", "memory"], default="default")
args = parser.parse_args()


def workload(path):
    draw = random.Random(0)
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in (f"page_size={args.page_size}", f"journal_mode={args.journal_mode}", "synchronous=FULL",
                   f"wal_autocheckpoint={args.wal_autocheckpoint}", f"cache_size=-{args.cache}",
                   f"mmap_size={args.mmap << 20}", f"temp_store={args.temp_store}"):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, user INTEGER, kind TEXT, at REAL, body BLOB)")
    db.execute("CREATE INDEX by_user ON event (user, at)")
    for _ in range(250):
        db.execute("BEGIN")
        db.executemany("INSERT INTO event (user, kind, at, body) VALUES (?, ?, ?, ?)",
                       [(draw.randrange(500), draw.choice("abcdef"), draw.random(), draw.randbytes(draw.randrange(50, 400)))
                        for _ in range(60)])
        db.execute("COMMIT")
        db.execute("SELECT sum(length(body)) FROM event WHERE user = ?", (draw.randrange(500),)).fetchone()
    for _ in range(150):
        db.execute("UPDATE event SET kind = 'z' WHERE user = ? AND at > 0.8", (draw.randrange(500),))
    for _ in range(3):
        db.execute("SELECT kind, body FROM event ORDER BY kind, at LIMIT 1 OFFSET 10000").fetchall()
    found = db.execute("SELECT count(*), sum(user) FROM event").fetchone()
    db.close()
    return found


clock = time.process_time if args.measure == "cpu" else time.perf_counter
costs = []
for _ in range(3):
    with tempfile.TemporaryDirectory() as folder:
        start = clock()
        workload(pathlib.Path(folder) / "events.db")
        costs.append(clock() - start)
print(f"cost={min(costs):.4f}")
