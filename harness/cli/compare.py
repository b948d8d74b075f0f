"""`harness compare`, `harness explain` and `harness selfcheck`."""

import sys
from dataclasses import asdict, replace
from pathlib import Path

from harness.cli.app import app
from harness.cli.fleet import bench_at, require_waiting
from harness.cli.output import emit, print_report, reporter, tell_where
from harness.compare.commits import Commit
from harness.compare.judge import rules_of
from harness.compare.options import CompareOptions, SelfcheckOptions
from harness.compare.pairs import Side, require_whole
from harness.compare.selfcheck import check_machine
from harness.compare.sides import Named, require_two, toolchains_here, what_is_named
from harness.errors import ExitCode, Interrupted, UsageError
from harness.metrics import METRICS
from harness.options import Flag, Format, TableFormat
from harness.process import stop_all
from harness.records.comparison import Comparison
from harness.report.command_pages import selfcheck_page
from harness.report.comparison import comparison_exit_code
from harness.report.data import to_json
from harness.stages.comparing import ComparisonSession, InterruptedComparison, begun_comparison, compare_sides
from harness.stages.explaining import ExplanationSession, explain_pair, keep_in
from harness.stages.options import ExplainOptions
from harness.stages.run import run_suite
from harness.stages.session import going_on, policy_of, unmeasured, words_of
from harness.store.folders import find_folder
from harness.store.run_directory import load_run, require_writable
from harness.store.work_directory import ExplanationDirectory
from harness.toolchain.host_cpu import environment_here


@app.command
def compare(
    options: CompareOptions | None = None,
    *,
    strict: Flag = False,
    format: Format = "terminal",
    full: Flag = False,
    out: Path | None = None,
) -> int:
    """Say of every case whether head is slower or faster than base, by measuring both.

    A side is a run, a release of IREE or a commit: `harness compare main HEAD --suite suites/x.toml`.

    The exit status is 1 for a regression, 3 for a failed or missing row, and with --strict 4 for an inconclusive one.
    What is stopped with Ctrl-C prints the rows that are decided, and how to go on.

    Args:
        strict: Exit with 4 where rows stay inconclusive.
        format: How to print the report.
        full: Markdown without cuts.
        out: Write the report to this file instead of stdout.
    """
    session, sides = _session(options or CompareOptions())
    options = session.options
    try:
        with (
            reporter(quiet=options.quiet, verbose=options.verbose) as session.progress,
            bench_at(options) as session.executor,
            session,
        ):
            try:
                comparison, path = _compare(session, sides)
            except KeyboardInterrupt:
                raise Interrupted(session.how_to_go_on) from None
    except InterruptedComparison as error:
        stop_all()
        print_report(error.comparison, format, out, full=full)
        sys.stdout.flush()
        raise
    print_report(comparison, format, out, full=full, results=path.parent)
    if not options.quiet:
        tell_where(path)
    return int(comparison_exit_code(comparison, strict=strict))


def _session(options: CompareOptions) -> tuple[ComparisonSession, tuple[Named, Named] | None]:
    """The comparison that the options ask for, new or to go on with, and its sides; None: variants within one run."""
    options, folder = begun_comparison(options)
    for what, given in (
        ("--controls are measured", options.controls),
        ("--explain measures", options.explain),
        ("--fleet measures on hosts", options.fleet),
    ):
        if given and not options.remeasure:
            raise UsageError(f"{what}, and --no-remeasure measures nothing; leave one of them out")
    if options.fleet is not None and options.explain:
        raise UsageError("--explain measures on this machine, and --fleet on others; leave one of them out")
    require_waiting(options.fleet, wait=options.wait)
    if options.within is not None:
        options = replace(options, within=find_folder(options.within, options.results, kind="run"))
    options = options.with_cases_apart()
    words = require_two(options.sides, options.toolchains, options.within)
    sides = None if options.within is not None else _named(words, options)
    if sides is not None:  # said so that they mean the same tomorrow
        options = replace(options, sides=words_of(sides), toolchains=())
    return ComparisonSession(options, sides or (), sys.argv[1:], folder), sides


def _named(words: tuple[str, str], options: CompareOptions) -> tuple[Named, Named]:
    base, head = (what_is_named(word, options.results) for word in words)
    made = [side for side in (base, head) if not isinstance(side, Path)]
    if made and not options.remeasure:
        kind = "a commit" if isinstance(made[0], Commit) else "a toolchain"
        raise UsageError(f"{kind} has no recorded numbers to compare; leave --no-remeasure out, or give two runs")
    if options.prepare is not None and not any(isinstance(side, Commit) for side in made):
        raise UsageError("--prepare is for the trees of commits, and no side is a commit; leave it out")
    return base, head


def _compare(session: ComparisonSession, sides: tuple[Named, Named] | None) -> tuple[Comparison, Path]:
    options = session.options
    if sides is None:
        assert options.within is not None  # noqa: S101 (the caller's contract)
        base = head = Side(load_run(options.within), str(options.within))
    else:
        base, head = session.resolve(sides)
    for side in (base, head):
        require_whole(side)
    toolchains = toolchains_here((base, head), session.progress.note) if options.remeasure else {}
    return compare_sides(base, head, toolchains, session)


@app.command
def selfcheck(options: SelfcheckOptions) -> int:
    """Compare modules with themselves: how often is a verdict wrong?

    The exit status is 0 whatever it finds: a false alarm here is a finding about the machine.
    """
    if options.fleet is not None:
        raise UsageError("harness selfcheck checks the machine that it runs on; run it on each host, without --fleet")
    with reporter(quiet=options.quiet, verbose=options.verbose) as progress:
        path = run_suite(unmeasured(options, options.suite), progress, purpose="selfcheck")
        side = Side(load_run(path), str(path))
        checked = check_machine(side, toolchains_here([side], progress.note), environment_here(), options, progress)
    emit(options.format, lambda: selfcheck_page(checked), lambda: to_json(asdict(checked)))
    return ExitCode.OK


@app.command
def explain(
    options: ExplainOptions | None = None,
    *,
    format: TableFormat = "terminal",
    full: Flag = False,
    out: Path | None = None,
) -> int:
    """Say where the time of a case goes on two sides, and what the compiler did there.

    harness explain iree==3.10.0 iree==3.12.0 rdb/stock@cpu --suite suites/esrgan.toml

    harness explain results/base results/head rdb/stock@cpu

    harness explain latest --within --variant nhwc

    harness explain iree==3.12.0 build/ rdb/stock@cpu --suite suites/esrgan.toml --metric compile-time

    What is stopped goes on with --resume. The exit status is 0 whatever it finds.

    Args:
        format: How to print it.
        full: Markdown with every part and every line that differs.
        out: Write it to this file instead of stdout.
    """
    options, folder = going_on(ExplanationDirectory, options or ExplainOptions())
    session = ExplanationSession(options, sys.argv[1:], folder)
    options = session.options
    require_writable(options.results)
    with reporter(quiet=options.quiet, verbose=options.verbose) as progress, session:
        session.progress = progress
        try:
            asked = session.asked()
            header, metric = asked.head.run.header, options.metric
            rule = rules_of(header, asked.head.label, options.floor, metric=metric)[metric]
            explanation = explain_pair(
                asked,
                toolchains_here((asked.base, asked.head), progress.note),
                policy_of(options, rule, budget_s=options.budget, cap_s=options.row_cap, noise=session.noise),
                progress,
                created=session.created,
                command=session.command,
                directory=session.folder(header.suite_name),
                metric=METRICS[metric],
            )
        except KeyboardInterrupt:
            raise Interrupted(session.how_to_go_on) from None
        path = session.folder("").path
        explanation = keep_in(session.folder(""), explanation)
    print_report(explanation, format, out, full=full, results=path.parent)
    if not options.quiet:
        tell_where(path)
    return ExitCode.OK
