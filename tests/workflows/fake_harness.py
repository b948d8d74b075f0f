"""In place of `harness`: notes how it is called, leaves the folders that the command would, and fails as it is told.

FAKE_BASE, FAKE_HEAD, FAKE_COMPARE are exit statuses, of `run` in the base's tree, of any other `run`, and of `compare`;
FAKE_RUNS is how many runs a suite makes. What ends with 2 leaves nothing but a sentence.
"""

import json
import os
import sys
from itertools import pairwise
from pathlib import Path

_MADE = {"run": ("run.json", "builds.jsonl", "finished.json"), "compare": ("comparison.json",)}


def main(command: str, *arguments: str) -> int:
    """Do as if; the exit status."""
    in_base = Path.cwd().name == "harness-base"
    with Path(os.environ["RUNNER_TEMP"], "calls").open("a") as file:
        file.write(json.dumps([*(["(base)"] if in_base else []), command, *arguments]) + "\n")
    options = dict(pairwise(arguments))
    if command == "github":
        return 0
    if command == "report":
        for option in ("--out", "--full-out", "--step-summary"):
            with Path(options[option]).open("a") as file:
                file.write("the report\n")
        return 0
    status = int(os.environ.get({"compare": "FAKE_COMPARE"}.get(command, "FAKE_BASE" if in_base else "FAKE_HEAD"), "0"))
    sys.stdout.write("what it found\n")
    sys.stdout.flush()
    if status == 2:
        sys.stderr.write("harness: it is broken; mend it\n")
        return status
    for number in range(int(os.environ.get("FAKE_RUNS", "1")) if command == "run" else 1):
        folder = Path(options["--results"]) / f"2026-{number}-small{'-compare' if command == 'compare' else ''}"
        folder.mkdir(parents=True)
        for name in _MADE[command]:
            (folder / name).write_text("{}")
    sys.stderr.write("Kept somewhere\n")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
