"""`harness bisect` and `harness verdict`."""

from __future__ import annotations

import sys

from harness.cli.app import app
from harness.cli.output import emit, print_text, reporter, tell, teller
from harness.errors import ExitCode
from harness.metrics import metric_named
from harness.options import PageFormat
from harness.report.bisect_page import bisect_exit_code, bisect_json, bisect_page, times_that_of
from harness.stages.bisect_session import Judged, Word, judge_now
from harness.stages.bisecting import session_of
from harness.stages.options import BisectOptions, VerdictOptions

# As `git bisect run` wants it.
_CANNOT_TELL = 125
_STATUS: dict[Word, int] = {"good": ExitCode.OK, "bad": ExitCode.REGRESSION, "cannot tell": _CANNOT_TELL}


@app.command
def bisect(
    options: BisectOptions | None = None,
    *,
    format: PageFormat = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Find the release since which a case is slower, or the flags that make it so, by measuring.

    harness bisect suites/esrgan.toml --case rdb/stock@cpu --good iree==3.6.0 --bad iree==3.8.0

    harness bisect suites/esrgan.toml --case rdb/nhwc-tuned@cpu --over flags

    The exit status is 0 where what was asked is known, and 4 where it stays open.

    Args:
        format: How to print the answer.
    """
    options = options or BisectOptions()
    with reporter(quiet=options.quiet, verbose=options.verbose) as progress:
        session = session_of(options, ("harness", *sys.argv[1:]), progress)
        found = session.run()
    emit(format, lambda: bisect_page(found), lambda: bisect_json(found))
    if not options.quiet:
        tell(f"Kept in {session.directory.path}")
    return bisect_exit_code(found)


@app.command
def verdict(options: VerdictOptions) -> int:
    """Say whether a case is as good as a run's, with the exit status that `git bisect run` wants.

    git bisect run harness verdict suites/x.toml --case net/stock@cpu --against ../good --compiler build

    The exit status is 0 where it is, 1 where it is worse, and 125 where it cannot be told, for example since it does
    not compile. What is wrong with the question itself ends with 128 or more, at which git bisect stops.
    """
    with reporter(quiet=options.quiet, verbose=options.verbose) as progress:
        judged = judge_now(options, progress)
    print_text(_said(judged, options))
    teller(quiet=options.quiet)(f"exit status {_STATUS[judged.word]}")
    return int(_STATUS[judged.word])


def _said(judged: Judged, options: VerdictOptions) -> str:
    """`bad: latency of net/stock@cpu 1.420 [1.401, 1.440] times that of the run (confirmed in 12 generations)`.

    Of counts `bad: dispatches of net/stock@cpu 20, and 10 with the run`.
    """
    trial, metric = judged.trial, metric_named(options.metric)
    if trial is None or metric is None or not (trial.generations or trial.exact):
        return f"{judged.word}: {judged.case}: {judged.reason}"
    words = times_that_of("the run", trial, metric.unit)
    why = "" if trial.exact else f" ({judged.reason})"
    return f"{judged.word}: {options.metric} of {judged.case} {words}{why}"
