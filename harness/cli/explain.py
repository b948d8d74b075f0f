"""`harness explain`: where the time of a case goes on two sides, and what the compiler did differently there."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from harness.cli.app import app
from harness.cli.compare import pinned
from harness.cli.output import print_report, reporter, tell_where
from harness.compare.judge import rules_of
from harness.compare.samplers import MeasurementPolicy
from harness.compare.sides import toolchains_here
from harness.errors import ExitCode, Interrupted
from harness.metrics import LATENCY
from harness.options import Flag, Format
from harness.process import stop_all
from harness.progress import Progress
from harness.stages.explained_sides import AskedPair, ExplainUnderway, find_asked, going_on, named_sides
from harness.stages.explaining import Found, explain_pair, keep_in
from harness.stages.options import ExplainOptions, compile_limits
from harness.store.folders import find_folder
from harness.store.journal import require_writable
from harness.store.sides_directory import ExplanationDirectory


@app.command
def explain(
    options: ExplainOptions | None = None,
    *,
    format: Format = "terminal",  # noqa: A002 (the option's name)
    full: Flag = False,
    out: Path | None = None,
) -> int:
    """Say where the time of a case goes on two sides, and what the compiler did differently.

    harness explain iree==3.10.0 iree==3.12.0 rdb/stock@cpu --suite suites/esrgan.toml

    harness explain results/base results/head rdb/stock@cpu

    harness explain latest --within --variant nhwc

    What is stopped with Ctrl-C prints what is known by then, and how to go on. The exit status is 0 whatever it finds.

    Args:
        format: How to print it.
        full: Markdown with every part and every line that differs.
        out: Write it to this file instead of stdout.
    """
    underway = _underway(options or ExplainOptions())
    options = underway.asked
    require_writable(options.results)
    with reporter(quiet=options.quiet, verbose=options.verbose) as progress, ExitStack() as trees, underway:
        try:
            found = _found(find_asked(underway, progress, trees), underway, progress)
        except KeyboardInterrupt:
            raise Interrupted(underway.how_to_go_on) from None
        path = underway.folder("").path
        explanation = found.explanation if found.is_stopped else keep_in(underway.folder(""), found.explanation)
    print_report(explanation, format, out, full=full, results=path.parent)
    if found.is_stopped:
        stop_all()
        sys.stdout.flush()
        raise Interrupted(underway.how_to_go_on)
    if not options.quiet:
        tell_where(path)
    return ExitCode.OK


def _underway(options: ExplainOptions) -> ExplainUnderway:
    """The explanation that the options ask for, new or to go on with; what is wrong with them shows at once."""
    folder = None
    if options.resume is not None:
        path = find_folder(options.resume, options.results, kind="explanation", unfinished=True)
        folder = ExplanationDirectory.resume(path)
        options = going_on(folder, options)
    sides = named_sides(options)
    return ExplainUnderway(options, sides, ("harness", *pinned(sys.argv[1:], sides)), folder)


def _found(asked: AskedPair, underway: ExplainUnderway, progress: Progress) -> Found:
    options, base, head = underway.asked, asked.base, asked.head
    policy = MeasurementPolicy(
        rule=rules_of(head.run.header, head.label, options.floor)[LATENCY.name],
        budget_s=options.budget,
        cap_s=options.row_cap,
        seed=options.seed,
        call_limit_s=options.call_timeout_s,
        limits=compile_limits(options.compile_timeout_s),
        noise=underway.noise,
        wait=options.wait,
    )
    return explain_pair(
        asked.pair,
        base,
        head,
        toolchains_here((base, head), progress.note),
        policy,
        progress,
        within=asked.within,
        created=underway.created,
        command=underway.command,
        directory=underway.folder(head.run.header.suite_name),
    )
