"""`harness explain`: where the time of a case goes on two sides, and what the compiler did differently there."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.cli.app import app
from harness.cli.output import print_report, reporter, tell_where
from harness.compare.judge import rules_of
from harness.compare.sides import toolchains_here
from harness.errors import ExitCode, Interrupted
from harness.metrics import LATENCY
from harness.options import Flag, Format
from harness.process import stop_all
from harness.stages.explaining import AskedPair, ExplanationSession, Found, explain_pair, going_on, keep_in
from harness.stages.options import ExplainOptions
from harness.stages.session import policy_of
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
    session = _session(options or ExplainOptions())
    options = session.options
    require_writable(options.results)
    with reporter(quiet=options.quiet, verbose=options.verbose) as progress, session:
        session.progress = progress
        try:
            found = _found(session.asked(), session)
        except KeyboardInterrupt:
            raise Interrupted(session.how_to_go_on) from None
        path = session.folder("").path
        explanation = found.explanation if found.is_stopped else keep_in(session.folder(""), found.explanation)
    print_report(explanation, format, out, full=full, results=path.parent)
    if found.is_stopped:
        stop_all()
        sys.stdout.flush()
        raise Interrupted(session.how_to_go_on)
    if not options.quiet:
        tell_where(path)
    return ExitCode.OK


def _session(options: ExplainOptions) -> ExplanationSession:
    """The explanation that the options ask for, new or to go on with; what is wrong with them shows at once."""
    folder = None
    if options.resume is not None:
        path = find_folder(options.resume, options.results, kind="explanation", unfinished=True)
        folder = ExplanationDirectory.resume(path)
        options = going_on(folder, options)
    return ExplanationSession(options, sys.argv[1:], folder)


def _found(asked: AskedPair, session: ExplanationSession) -> Found:
    options, head = session.options, asked.head
    rule = rules_of(head.run.header, head.label, options.floor)[LATENCY.name]
    return explain_pair(
        asked.pair,
        asked.base,
        head,
        toolchains_here((asked.base, head), session.progress.note),
        policy_of(options, rule, budget_s=options.budget, cap_s=options.row_cap, noise=session.noise),
        session.progress,
        within=asked.within,
        created=session.created,
        command=session.command,
        directory=session.folder(head.run.header.suite_name),
    )
