"""Put 60 faults into the source, one at a time, and say which of them the tests notice.

    .venv/bin/python -m benchmarks.mutations [ID ...] [--jobs 2] [--limit 180] [--json FILE]

It works on copies in a temporary folder. A fault counts as caught where one of its tests fails that passes on the
source as it is. It ends with 1 where a fault survives or the table does not fit the source any more. docs/testing.md
has the figures.
"""

import argparse
import json
import queue
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.mutations.trial import Mutation, Trial, copy_tree, failures, read_table, run_tests, try_mutation

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("table.toml")


def try_all(mutations: Sequence[Mutation], root: Path, *, jobs: int, limit_s: float) -> list[Trial]:
    """Try mutations of a source, each on a copy of its own meanwhile, in the order given."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        trees: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(jobs):
            copy_tree(root, Path(folder) / str(number))
            trees.put(Path(folder) / str(number))

        def work(mutation: Mutation) -> Trial:
            tree = trees.get()
            try:
                trial = try_mutation(mutation, tree, limit_s)
            finally:
                trees.put(tree)
            print(f"{trial.fate:9} {trial.seconds:4.0f} s  {mutation.id}  {trial.noticed_by}", file=sys.stderr)
            return trial

        with ThreadPoolExecutor(jobs) as pool:
            trials = list(pool.map(work, mutations))
        return _without_broken_tests(trials, Path(folder) / "0", limit_s)


def _without_broken_tests(trials: Sequence[Trial], tree: Path, limit_s: float) -> list[Trial]:
    """A test that fails on the source as it is notices nothing."""
    names = sorted({trial.noticed_by for trial in trials if trial.noticed_by})
    code, output = run_tests(names, tree, limit_s * len(names), stop=False) if names else (0, "")
    if code == 0:
        return list(trials)
    broken = failures(output)
    print(f"fail on the source as it is: {', '.join(broken) or output[-1000:]}", file=sys.stderr)

    def is_broken(trial: Trial) -> bool:
        return trial.noticed_by != "" and any(name.startswith(trial.noticed_by) for name in broken)

    return [replace(trial, fate="survived", noticed_by="") if is_broken(trial) else trial for trial in trials]


def table(trials: Sequence[Trial]) -> str:
    """One Markdown row a mutation, and the sum."""
    lines = ["| fault | what it breaks | tests |", "| --- | --- | --- |"]
    lines += [f"| {trial.mutation.id} | {trial.mutation.breaks} | {trial.fate} |" for trial in trials]
    caught = sum(trial.fate == "caught" for trial in trials)
    return "\n".join([*lines, "", f"{caught} of {len(trials)} are caught."])


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__)
    parser.add_argument("ids", nargs="*", help="of the faults to try, or how these begin; all where none is given")
    parser.add_argument("--jobs", type=int, default=2, help="how many to try at once")
    parser.add_argument("--limit", type=float, default=180, help="seconds that the tests of one fault may take")
    parser.add_argument("--json", type=Path, help="file for the outcome of each")
    options = parser.parse_args()
    prefixes = tuple(options.ids)
    chosen = [mutation for mutation in read_table(TABLE) if not prefixes or mutation.id.startswith(prefixes)]
    trials = try_all(chosen, ROOT, jobs=options.jobs, limit_s=options.limit)
    print(table(trials))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(trial) for trial in trials], indent=1))
    return int(any(trial.fate != "caught" for trial in trials))


if __name__ == "__main__":
    sys.exit(main())
