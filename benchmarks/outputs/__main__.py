"""How often outputs are judged wrongly: right programs that are refused, and planted faults that are not found.

    .venv/bin/python -m benchmarks.outputs                     (everything; writes docs/statistics.md's tables)
    .venv/bin/python -m benchmarks.outputs --only faults       (one of right, faults, defects, functions)
    .venv/bin/python -m benchmarks.outputs --families 'conv*'  (some right programs; writes nothing)

What modules gave is kept in results/outputs by content, so that what was stopped goes on; the reference is computed
anew each time. Twenty minutes on two quiet cores the first time, two the next.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from benchmarks.documents import replace_between
from benchmarks.outputs.functions import measure
from benchmarks.outputs.planted import groups, judge_defects, judge_faults
from benchmarks.outputs.recording import Keeper
from benchmarks.outputs.right import judge_family
from benchmarks.outputs.right_programs import all_right
from benchmarks.outputs.tables import defect_table, fault_table, function_table, right_table

ROOT = Path(__file__).parents[2]
PARTS = ("right", "faults", "defects", "functions")
_KINDS = ("f32", "f16", "f64")
Piece = TypeVar("Piece")
Result = TypeVar("Result")


def _marks(part: str) -> tuple[str, str]:
    return f"<!-- made by `make outputs`, {part}: begin -->", f"<!-- make outputs, {part}: end -->"


class Pool:
    """Does pieces of work in processes of their own, and says how far it is."""

    def __init__(self, processes: int) -> None:
        self.executor = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))

    def done(self, work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]:
        """What came of each."""
        for at, result in enumerate(self.executor.map(work, pieces), start=1):
            sys.stderr.write(f"\r{at} of {len(pieces)} ")
            yield result
        sys.stderr.write("\n")


def _right(keeper: Keeper, pool: Pool, families: str) -> str:
    names = dict.fromkeys(program.family for program in all_right())
    work = partial(judge_family, keeper=keeper)
    found = list(pool.done(work, [name for name in names if fnmatchcase(name, families)]))
    return right_table([row for group in found for row in group.rows], [s for group in found for s in group.failed])


def _faults(keeper: Keeper, pool: Pool) -> str:
    found = list(pool.done(partial(judge_faults, keeper=keeper), range(len(list(groups())))))
    return fault_table([one for some, _ in found for one in some], [s for _, failed in found for s in failed])


def main() -> int:
    """Judge what is asked for, and write its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append", help="some parts")
    parser.add_argument("--families", default="*", help="only right programs of these; a shell pattern; writes nothing")
    parser.add_argument("--processes", type=int, default=2, help="at once (2)")
    parser.add_argument("--kept", type=Path, default=ROOT / "results" / "outputs", help="what modules gave")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "statistics.md", help="where the tables go")
    arguments = parser.parse_args()
    arguments.kept.mkdir(parents=True, exist_ok=True)
    keeper, pool = Keeper(folder=arguments.kept), Pool(arguments.processes)
    if arguments.families != "*":
        sys.stdout.write(_right(keeper, pool, arguments.families) + "\n")
        return 0
    makers: dict[str, Callable[[], str]] = {
        "right": lambda: _right(keeper, pool, "*"),
        "faults": lambda: _faults(keeper, pool),
        "defects": lambda: defect_table(*judge_defects(keeper)),
        "functions": lambda: function_table([off for kind in _KINDS for off in measure(kind, keeper)]),
    }
    for part in arguments.only or PARTS:
        replace_between(arguments.document, *_marks(part), makers[part]())
    return 0


if __name__ == "__main__":
    sys.exit(main())
