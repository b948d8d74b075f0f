"""`harness explain`: where the time of a case goes on two sides, and what the compiler did differently there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path

from harness.cli.app import app
from harness.cli.output import print_text, reporter, tell_where, terminal_form
from harness.compare.judge import rules_of
from harness.compare.sides import noise_of, toolchains_here
from harness.errors import ExitCode, Interrupted
from harness.metrics import LATENCY
from harness.options import Flag, Format
from harness.process import stop_all
from harness.progress import Progress
from harness.records.explanation import Explanation
from harness.report import render
from harness.stages.explained_sides import AskedPair, asked_words, find_asked
from harness.stages.explaining import Terms, explain_pair, keep
from harness.stages.options import ExplainOptions, compile_limits
from harness.store.run_directory import require_writable
from harness.toolchain.host_cpu import environment_here


@app.command
def explain(
    options: ExplainOptions | None = None,
    *,
    format: Format = "terminal",  # noqa: A002 (the option's name)
    full: Flag = False,
    out: Path | None = None,
) -> int:
    """Say where the time of a case goes on two sides, dispatch by dispatch, and what the compiler did differently.

    harness explain iree==3.10.0 iree==3.12.0 rdb/stock@cpu --suite suites/esrgan.toml

    harness explain results/base results/head rdb/stock@cpu

    harness explain latest --within --variant nhwc

    What is stopped with Ctrl-C prints what is known by then. The exit status is 0 whatever it finds.

    Args:
        format: How to print it.
        full: Markdown with every part and every line that differs.
        out: Write it to this file instead of stdout.
    """
    options = options or ExplainOptions()
    asked_words(options)  # what is wrong with them shows before anything takes long
    require_writable(options.results)
    try:
        with reporter(quiet=options.quiet, verbose=options.verbose) as progress, ExitStack() as trees:
            asked = find_asked(options, progress, trees)
            explanation, path, is_stopped = _explained(asked, options, progress)
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    print_text(render(explanation, format, full=full, results=path.parent, **terminal_form(out)), out)
    if not options.quiet:
        tell_where(path)
    if is_stopped:
        stop_all()
        sys.stdout.flush()
        raise Interrupted(f"interrupted; {path} has what is known")
    return ExitCode.OK


def _explained(asked: AskedPair, options: ExplainOptions, progress: Progress) -> tuple[Explanation, Path, bool]:
    """The explanation as it is kept, where that is, and whether the user stopped it."""
    base, head = asked.base, asked.head
    terms = Terms(
        rule=rules_of(head.run.header, head.label, options.floor)[LATENCY.name],
        budget_s=options.budget,
        cap_s=options.row_cap,
        seed=options.seed,
        call_limit_s=options.call_timeout,
        limits=compile_limits(options.compile_timeout),
        noise=noise_of(environment_here()),
        wait=options.wait,
    )
    found = explain_pair(
        asked.pair,
        base,
        head,
        toolchains_here((base, head), progress.note),
        terms,
        progress,
        within=asked.within,
        created=datetime.now(timezone.utc),
        command=_pinned(("harness", *sys.argv[1:]), asked),
    )
    explanation, path = keep(found.explanation, options.results, head.run.header.suite_name)
    return explanation, path, found.is_stopped


def _pinned(words: Sequence[str], asked: AskedPair) -> tuple[str, ...]:
    """A command line whose commits are the same ones tomorrow."""
    commits = {side.label: side.commit.sha for side in (asked.base, asked.head) if side.commit is not None}
    return tuple(commits.get(word, word) for word in words)
