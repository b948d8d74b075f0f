"""What the releases of IREE did to users of CPUs, for docs/field/: measured in parts, explained, reproduced, written.

    make field OUT=results/mine (or: FIELD_OUT=results/mine python -m benchmarks.field; some hours, and 700 MB a release
                                the first time: tables, pages and the dashboard of this machine, in that folder)
    make field QUICK=1          (twenty minutes: the models tagged quick, in code for x86-64-v3, in results/field-quick)
    make field                  (goes on with what is committed: results/published/field, docs/field and the README)
    make field ARGS=--pages     (writes the pages again of what is kept)
    make field ARGS=--check     (runs the plain commands of all findings again, and writes the pages)

What was stopped goes on; a part that is finished stays. --minutes stops explaining after so long, and the next call
goes on there. What this command does not know, such as --fleet, goes to `harness run`.
"""

import argparse
import math
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.field.field import Field, slow_still
from benchmarks.field.findings import (
    Fault,
    Finding,
    changes_of,
    explain_all,
    faults_of,
    findings_of,
    found_steps,
    read_table,
)
from benchmarks.field.flags import known_flags, try_flags
from benchmarks.field.pages import write_pages
from benchmarks.field.parts import (
    IS_COMMITTED,
    KEPT,
    PAGES,
    RESULTS,
    ROOT,
    SITE,
    FieldPart,
    all_parts,
    harness,
    keep,
    measure,
)
from benchmarks.field.reproduce import (
    SCRIPT,
    check_scripts,
    known_results,
    measured,
    shows,
    write_fault_script,
    write_script,
)
from benchmarks.field.upstream import known_reports
from harness.errors import ExitCode, HarnessError, RunError
from harness.store.run_directory import load_run
from harness.text import plural


def main() -> int:
    """Do what is left, and write the pages; 1 where something is left."""
    os.chdir(ROOT)
    try:
        return _field(*_arguments())
    except HarnessError as error:
        sys.stderr.write(f"field: {error}\n")
        return int(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("field: interrupted; the same command goes on\n")
        return int(ExitCode.INTERRUPTED)


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    """The options of this command, and those of `harness run`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a part of the models and targets")
    parser.add_argument("--parts", type=int, help="measure so many parts at most, and explain nothing")
    parser.add_argument("--minutes", type=float, default=45, help="explain for so long")
    parser.add_argument("--pages", action="store_true", help="measure and explain nothing")
    parser.add_argument("--check", action="store_true", help="run the plain commands of all findings")
    arguments, more = parser.parse_known_args()
    if arguments.quick and IS_COMMITTED:
        parser.error("--quick needs a folder of its own: FIELD_OUT=results/field-quick")
    if more and (arguments.pages or arguments.check):
        parser.error(f"nothing is measured that {' '.join(more)} could be for")
    if arguments.parts is not None and arguments.parts < 1:
        parser.error(f"--parts {arguments.parts}: give 1 or more")
    if not 0 <= arguments.minutes < math.inf:
        parser.error(f"--minutes {arguments.minutes}: give 0 or more")
    return arguments, more


def _field(arguments: argparse.Namespace, more: list[str]) -> int:
    parts = all_parts(quick=arguments.quick)
    left = 0
    if not arguments.pages and not arguments.check:
        if not _measure(parts, more, most=arguments.parts, quick=arguments.quick) or arguments.parts is not None:
            return int(not all(part.is_kept for part in parts))
        left = explain_all(found_steps(read_table("steps")), seconds=60 * arguments.minutes)
        if left:
            sys.stderr.write(f"{left} steps are not explained yet; the same command goes on there\n")
    lines, steps = read_table("lines"), read_table("steps")
    if steps.empty:
        raise RunError(f"{KEPT} has no table of a part; without --pages and --check, parts are measured first")
    if {*lines.get("part", [])} != {*steps["part"]}:
        raise RunError(f"{KEPT} lacks a table of a part that it has another of; take it from git, or remove both")
    reports = known_reports()
    changes = changes_of(found_steps(steps))
    findings, faults = findings_of(changes, reports), faults_of(lines, reports)
    _write_scripts(findings, faults, parts)
    field = Field(
        lines=lines,
        steps=steps,
        findings=findings,
        changes=changes,
        faults=faults,
        reproduced=check_scripts() if arguments.check else known_results(),
        tried=known_flags(),
        reports=reports,
    )
    if not arguments.pages and not arguments.check:
        stock = ([step for step in slow_still(finding, field) if step.variant == "stock"] for finding in findings)
        try_flags([(steps[0].model, steps[0].device) for steps in stock if steps], field.releases[-1])
        field = replace(field, tried=known_flags())
    write_pages(field)
    if any(part.run() is not None for part in parts):
        harness("dashboard", str(RESULTS), "--out", str(SITE), "--title", "Releases of IREE on CPUs")
    return int(left > 0)


def _write_scripts(findings: Sequence[Finding], faults: Sequence[Fault], parts: Sequence[FieldPart]) -> None:
    """Write the plain commands of what has none; those of nothing any more go."""
    slugs = {finding.slug for finding in findings} | {fault.slug for fault in faults}
    for script in PAGES.glob(f"*/{SCRIPT}"):
        if script.parent.name not in slugs and all(part.is_kept for part in parts):  # else its finding may come again
            shutil.rmtree(script.parent)
    lacking = {finding.slug for finding in findings if not shows(finding)}
    lacking |= {fault.slug for fault in faults if not (PAGES / fault.slug / SCRIPT).is_file()}
    wanted = [part for part in parts if lacking and part.is_kept]
    runs = [measured(load_run(run)) for part in wanted if (run := part.run()) is not None]
    for finding in findings:
        if finding.slug in lacking:
            write_script(finding, runs)
    for fault in faults:
        if fault.slug in lacking:
            any(write_fault_script(fault, run) for run in runs)


def _measure(parts: list[FieldPart], more: list[str], *, most: int | None, quick: bool) -> bool:
    """Measure what is left; whether all is there."""
    left, started = [part for part in parts if not part.is_kept], time.monotonic()
    for number, part in enumerate(left):
        if number == most:
            sys.stderr.write(f"{plural(len(left) - number, 'part')} left\n")
            return False
        rest_s = (time.monotonic() - started) / number * (len(left) - number) if number else 0
        about = f", about {rest_s / 60:.0f} min left" if number else ""
        sys.stderr.write(f"part {part.name}, {number + 1} of {len(left)}{about}\n")
        run = measure(part, more, quick=quick)
        if run is None:
            how = "goes on with it" if part.run() is not None else "begins it"
            sys.stderr.write(f"part {part.name} was not finished; the same command {how}\n")
            return False
        keep(part, run)
    return True


if __name__ == "__main__":
    sys.exit(main())
