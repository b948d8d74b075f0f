"""What `harness tune` finds, beside what was made by hand and beside other engines.

    .venv/bin/python -m benchmarks.tune                      (an evening; writes docs/tuning.md's tables)
    .venv/bin/python -m benchmarks.tune --part rdb           (one of them; half an hour)
    .venv/bin/python -m benchmarks.tune --part networks --only '*/crepe'
    .venv/bin/python -m benchmarks.tune --part again         (what was found, once more: today, and beside load)
    .venv/bin/python -m benchmarks.tune --part first-answers (ten cold searches of three minutes; 40 minutes)
    .venv/bin/python -m benchmarks.tune --quick              (short budgets, in results/tune-quick; writes no document)
    .venv/bin/python -m benchmarks.tune --replay             (measures nothing, only writes the tables)

Every figure is made by the harness's own commands, whose folders lie in results/tune. What was stopped goes on: what is
there is not made again. The machine should have nothing else to do meanwhile.
"""

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import get_args

from benchmarks.documents import replace_between
from benchmarks.tune.first import marks, measure_first, measured_first, render_first
from benchmarks.tune.measuring import ROOT, Measuring, head_of
from benchmarks.tune.outcomes import Outcome, machine_of, measured
from benchmarks.tune.rate import PROGRAMS, measure_rate, measured_rates
from benchmarks.tune.searches import SEARCHES, Part, Search
from benchmarks.tune.tables import render
from harness.store.folders import TUNING

BEGIN, END = "<!-- made by `python -m benchmarks.tune`: begin -->", "<!-- benchmarks.tune: end -->"
_ON_OTHER_MACHINE = """\
On this machine, in the repository; OTHER is a machine of the same kind, with a checkout of the same commit:

    rsync -am --include='*/' --include=tuned.toml --include=spec.mlir --include=tuning.json --exclude='*' \\
        {out}/ OTHER:{out}/
    ssh OTHER 'cd {root} && make install && .venv/bin/python -m benchmarks.tune --part again'
    rsync -am OTHER:{out}/again/ {out}/again/
    .venv/bin/python -m benchmarks.tune --replay
"""


def main() -> int:
    """Measure what is asked for and is not there yet, and write the tables; 1 where something cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", dest="parts", action="append", choices=get_args(Part), help="default: all")
    parser.add_argument("--only", default="*", help="only searches and rates whose name (networks/crepe) matches")
    parser.add_argument("--quick", action="store_true", help="budgets of a minute, in a folder of their own")
    parser.add_argument("--replay", action="store_true", help="measure nothing, only write the tables")
    parser.add_argument("--no-wait", action="store_true", help="measure beside another harness, as on another core")
    parser.add_argument("--on-other-machine", action="store_true", help="say how the variants are tried on another one")
    parser.add_argument("--elsewhere", type=Path, help="searches of another machine, which get a table of their own")
    parser.add_argument("--out", type=Path, help="where everything goes; default: results/tune")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "tuning.md", help="where the tables go")
    arguments = parser.parse_args()
    if arguments.elsewhere and not arguments.elsewhere.is_dir():
        parser.error(f"--elsewhere {arguments.elsewhere}: is no folder; copy the other machine's results here first")
    out = arguments.out or ROOT / "results" / ("tune-quick" if arguments.quick else "tune")
    if arguments.on_other_machine:
        sys.stdout.write(_ON_OTHER_MACHINE.format(out=out, root=ROOT))
        return 0
    measuring = Measuring(out=out.resolve(), wait=not arguments.no_wait)
    parts: Sequence[Part] = arguments.parts or get_args(Part)
    failed = []
    if not arguments.replay:
        failed = measure(measuring, parts, arguments.only, quick=arguments.quick)
    files = sorted(arguments.elsewhere.rglob(TUNING.file)) if arguments.elsewhere else []
    elsewhere = [TUNING.load(file.parent) for file in files]
    text = render(_outcomes(measuring), measured_rates(measuring.out), elsewhere)
    first = measured_first(measuring)
    answers = render_first(first) if first is not None else ""
    if arguments.quick:
        sys.stdout.write(f"{answers}\n{text}\n")
        text = answers = ""
    if text:
        replace_between(arguments.document, BEGIN, END, text)
    if first is not None and answers:
        replace_between(arguments.document, *marks(first), answers)
    sys.stderr.writelines(f"{sentence}\n" for sentence in failed)
    return 1 if failed else 0


def measure(measuring: Measuring, parts: Sequence[Part], only: str, *, quick: bool) -> list[str]:
    """Make what is missing, part by part.

    Returns:
        Why some of it could not be made, one sentence each.
    """
    failed = []
    for part in parts:
        names = [f"rate/{name}" for name in PROGRAMS] if part == "rate" else [each.name for each in _searches(part)]
        names = [part] if part == "first-answers" else names
        searches = {each.name: each.quick() if quick else each for each in _searches(part)}
        for name in (name for name in names if fnmatchcase(name, only)):
            try:
                if part == "rate":
                    measure_rate(name.removeprefix("rate/"), measuring, quick=quick)
                elif part == "first-answers":
                    measure_first(measuring, quick=quick)
                elif part == "again":
                    _again(measuring, searches[name])
                else:
                    _searched(measuring, searches[name])
            except RuntimeError as error:
                failed.append(f"{error}")
    return failed


def _searches(part: Part) -> list[Search]:
    """Of a part; `again` is of all that was found."""
    return [each for own in SEARCHES.values() for each in own] if part == "again" else list(SEARCHES.get(part, ()))


def _searched(measuring: Measuring, search: Search) -> None:
    tuning = measuring.tune(search)
    if tuning is None:
        return
    measuring.beside(search, tuning)
    for base in search.judged:
        measuring.judge(search, tuning, base)


def _again(measuring: Measuring, search: Search) -> None:
    tuning = measuring.found(search)
    if tuning is not None and tuning.variant:
        for loaded in (False, True):
            measuring.again(search, tuning, loaded=loaded)


def _outcomes(measuring: Measuring) -> list[Outcome]:
    """All that is known, in the order of the searches."""
    found = (_outcome(measuring, search) for own in SEARCHES.values() for search in own)
    return [each for each in found if each is not None]


def _outcome(measuring: Measuring, search: Search) -> Outcome | None:
    tuning, why = measuring.found(search), measuring.why_no_start(search)
    if tuning is None:
        return Outcome(search=search, tuning=None, why=why) if why else None
    run, head = measuring.measured_beside(search), head_of(tuning)
    contenders, failure = measured(run, head) if run is not None else ((), "")
    once_more = {day: measured(run, head) for day, run in measuring.measured_again(search).items()}
    baseline = run.header.baseline if run is not None else ""
    ratios = {
        day: each.ratio
        for day, (found, _) in once_more.items()
        for each in found
        if each.name == baseline and each.ratio is not None
    }
    return Outcome(
        search=search,
        tuning=tuning,
        head=head,
        baseline=baseline,
        contenders=contenders,
        failure=failure,
        machine=machine_of(run) if run is not None else "",
        started=run.header.started if run is not None else "",
        judged={base: row for base in search.judged if (row := measuring.judged(search, base)) is not None},
        again=ratios,
        lost_again={day: why for day, (_, why) in once_more.items() if why},
    )


if __name__ == "__main__":
    sys.exit(main())
