"""What a fleet's engine takes, what it survives, and what it gains; writes the tables of docs/fleet.md.

    make fleet      (or: .venv/bin/python -m benchmarks.fleet)

does `simulated`, which runs a made-up suite over 10, 50 and 200 hosts that only wait, with a real asker and scheduler;
`faults`, which kills and stops the parts of a fleet at random in a hundred runs and reads them back; and `real`, which
compiles suites/smoke.toml on one worker and on two.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.documents import replace_between

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "fleet.md"
PARTS = ("simulated", "faults", "real")


def mark(part: str, end: str) -> str:
    """A line of the document before or after a part's tables.

    Args:
        end: `begin` or `end`.
    """
    return f"<!-- made by `python -m benchmarks.fleet {part}`: {end} -->"


def main(arguments: Sequence[str]) -> None:
    """Do what the first argument says, or all."""
    if not arguments:
        for part in PARTS:
            main([part])
        return
    given = _parser().parse_args(arguments)
    if given.part == "simulated":
        text = _simulated(given)
    elif given.part == "faults":
        text = _faults(given)
    else:
        text = _real(given)
    sys.stdout.write(f"{text}\n")
    if not given.try_it:
        replace_between(DOCUMENT, mark(given.part, "begin"), mark(given.part, "end"), text)


def _simulated(given: argparse.Namespace) -> str:
    from benchmarks.fleet.simulated import CASES_A_HOST, HOSTS, WORK, say, simulate, size_for
    from benchmarks.fleet.tables import render_simulated

    found = []
    for hosts in given.hosts or HOSTS:
        found.append(simulate(hosts, size_for(hosts, given.cases or CASES_A_HOST), WORK))
        say(found[-1])
    return render_simulated(found)


def _faults(given: argparse.Namespace) -> str:
    from benchmarks.fleet.faults import run_trials
    from benchmarks.fleet.tables import render_faults

    return render_faults(run_trials(range(given.first, given.first + given.trials)))


def _real(given: argparse.Namespace) -> str:
    from benchmarks.fleet.real import run_real
    from benchmarks.fleet.tables import render_real

    return render_real(run_real(given.repeats))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks.fleet", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True)
    simulated = parts.add_parser("simulated", help="what the engine itself takes")
    simulated.add_argument("--hosts", type=int, action="append", help="how many; repeatable (default: 10, 50, 200)")
    simulated.add_argument("--cases", type=int, help="for each host, in groups of 10 (default: 50)")
    faults = parts.add_parser("faults", help="runs during which parts of the fleet are killed")
    faults.add_argument("--trials", type=int, default=100, help="how many (default: 100)")
    faults.add_argument("--first", type=int, default=0, help="the first one's seed (default: 0)")
    real = parts.add_parser("real", help="one worker and two")
    real.add_argument("--repeats", type=int, default=3, help="of each (default: 3)")
    for each in (simulated, faults, real):
        each.add_argument("--try-it", action="store_true", help="print the table, and leave the document alone")
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
