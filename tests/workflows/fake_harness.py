"""In place of `harness`: notes how it is called, leaves the files that the command would, and fails as it is told.

FAKE_RUN, FAKE_COMPARE and FAKE_HISTORY are exit statuses of these commands; FAKE_RUNS is how many runs a suite makes.
What ends with 2, and a comparison that ends with 70, leave nothing but a sentence.
"""

import json
import os
import shutil
import sys
from itertools import pairwise
from pathlib import Path

_FILES = {"run": ("run.json", "builds.jsonl", "finished.json"), "compare": ("comparison.json",)}


def main(command: str, *arguments: str) -> int:
    """Do as if; the exit status."""
    with Path(os.environ["RUNNER_TEMP"], "calls").open("a") as file:
        file.write(json.dumps([command, *arguments]) + "\n")
    options = dict(pairwise(arguments))
    if command == "results" and arguments[0] == "merge":
        shutil.copytree(arguments[1], options["--into"], dirs_exist_ok=True)
    if command in ("report", "history"):
        for option in {"--out", "--full-out", "--step-summary"} & options.keys():
            with Path(options[option]).open("a") as file:
                file.write("the report\n")
    variable = {"compare": "FAKE_COMPARE", "history": "FAKE_HISTORY", "run": "FAKE_RUN"}
    status = int(os.environ.get(variable.get(command, ""), "0"))
    if command not in _FILES:
        return status
    sys.stdout.write("what it found\n")
    sys.stdout.flush()
    if status == 2 or (status == 70 and command == "compare"):
        sys.stderr.write("harness: it is broken; mend it\n")
        return status
    made = [("run", f"2026-{number}-small") for number in range(int(os.environ.get("FAKE_RUNS", "1")))]
    if command == "compare":
        made = [("run", "2026-0-small"), ("run", "2026-1-small"), ("compare", "2026-2-small-compare")]
    for kind, name in made:
        folder = Path(options["--results"]) / name
        folder.mkdir(parents=True)
        for left in _FILES[kind]:
            (folder / left).write_text("{}")
    sys.stderr.write("Kept somewhere\n")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
