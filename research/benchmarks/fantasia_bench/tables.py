"""The tables of a document that other programs print.

Their commands are the document's blocks that say ```sh table=NAME, so that they stand there only. What they print is kept
as NAME.txt; it goes into the document by hand.
"""

import os
import re
import subprocess
import sys

_ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")

# `fantasia bench` keeps its runs, and goes on where it was, in a folder of the table's own.
_PROGRAM = 'fantasia() { "$PROGRAM" "$@" --out "$RUNS"; }\n'


def commands(text):
    """{name: command} of a document's text, in its order."""
    return {name: command.strip() for name, command in re.findall(r"^```sh table=(\S+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)}


def play(todo, folder, binary, out=sys.stderr):
    """Runs the commands that the folder lacks what they print of, in the repository's root; returns the names of those that failed."""
    folder, failed = os.path.abspath(folder), []
    os.makedirs(folder, exist_ok=True)
    for name, command in todo.items():
        path, head = os.path.join(folder, f"{name}.txt"), f"$ {command}\n\n"
        if _begins(path, head):
            print(f"{path} is there", file=out, flush=True)
            continue
        print(head.strip(), file=out, flush=True)
        environment = os.environ | {"PROGRAM": os.path.abspath(binary), "RUNS": os.path.join(folder, name)}
        with open(f"{path}.part", "w") as file:
            file.write(head)
            file.flush()
            ended = subprocess.run(["bash", "-euc", _PROGRAM + command], cwd=_ROOT, env=environment, stdout=file)
        if ended.returncode:
            failed.append(name)
            continue
        os.replace(f"{path}.part", path)  # a file without .part is whole
        print(path, file=out, flush=True)
    return failed


def _begins(path, head):
    if not os.path.exists(path):
        return False
    with open(path) as file:
        return file.read(len(head)) == head
