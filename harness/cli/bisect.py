"""`harness bisect`, `harness verdict` and `harness tune`."""

import sys

from harness.cli.app import app
from harness.cli.output import print_report, print_text, reporter, tell, teller
from harness.errors import ExitCode, UsageError
from harness.metrics import metric_named
from harness.options import PageFormat
from harness.plots.canvas import LIGHT, Format
from harness.plots.race import draw_race
from harness.records.tuning import Tuning
from harness.report.bisect_page import bisect_exit_code, times_that_of
from harness.stages.bisect_session import Word, judge_now
from harness.stages.bisecting import session_of
from harness.stages.options import BisectOptions, TuneOptions, VerdictOptions
from harness.stages.tuning import NoStart
from harness.stages.tuning import tune as search
from harness.store.folders import TUNING, tunings_in

# As `git bisect run` wants it.
_CANNOT_TELL = 125
_STATUS: dict[Word, int] = {"good": ExitCode.OK, "bad": ExitCode.REGRESSION, "cannot tell": _CANNOT_TELL}


@app.command
def bisect(options: BisectOptions | None = None, *, format: PageFormat = "terminal") -> int:
    """Find the release or commit since which a case is slower, or the flags that make it so.

    harness bisect suites/esrgan.toml --case rdb/stock@cpu --good iree==3.6.0 --bad iree==3.8.0

    harness bisect suites/esrgan.toml --case rdb/stock@cpu --over commits --good 2b05c5dbb2 --bad main

    harness bisect suites/esrgan.toml --case rdb/nhwc-tuned@cpu --over flags

    The exit status is 0 where what was asked is known, and 4 where it stays open.

    Args:
        format: How to print the answer.
    """
    options = options or BisectOptions()
    with reporter(quiet=options.quiet, verbose=options.verbose) as progress:
        session = session_of(options, ("harness", *sys.argv[1:]), progress)
        found = session.run()
    print_report(found, format, full=True)
    if not options.quiet:
        tell(f"Kept in {session.directory.path}")
    return bisect_exit_code(found)


@app.command
def verdict(options: VerdictOptions) -> int:
    """Say whether a case is as good as a run's, as `git bisect run` asks it.

    git bisect run harness verdict suites/x.toml --case net/stock@cpu --against ../good --toolchain build

    The exit status is 0 where it is, 1 where it is worse, and 125 where it cannot be told, for example since it does
    not compile. What is wrong with the question itself ends with 128 or more, at which git bisect stops.
    """
    with reporter(quiet=options.quiet, verbose=options.verbose) as progress:
        judged = judge_now(options, progress)
    trial, metric = judged.trial, metric_named(options.metric)
    said = f"{judged.word}: {judged.case}: {judged.reason}"
    if trial is not None and metric is not None and (trial.generations or trial.exact):
        # `bad: latency of net/stock@cpu 1.420 [1.401, 1.440] times that of the run (confirmed in 12 generations)`, and
        # of counts `bad: dispatches of net/stock@cpu 20, and 10 with the run`
        why = "" if trial.exact else f" ({judged.reason})"
        words = times_that_of("the run", trial, metric.unit)
        said = f"{judged.word}: {options.metric} of {judged.case} {words}{why}"
    print_text(said)
    teller(quiet=options.quiet)(f"exit status {_STATUS[judged.word]}")
    return int(_STATUS[judged.word])


# --- tune ---


@app.command
def tune(options: TuneOptions | None = None, *, format: PageFormat = "terminal") -> int:
    """Search the flags, plugins and lowering configurations that make a model fast.

    harness tune suites/models.toml --model efficientnet --device cpu --budget 15m --out tuned/

    What was stopped or killed goes on with the same command. Nothing is written that is not confirmed faster and right.
    The exit status is 3 where a model's start cannot be measured or its budget ended before anything was timed, and
    else 0, whatever is found.

    Args:
        format: How to print what was found.
    """
    options = options or TuneOptions()
    if options.report:
        return _report(options, format)
    if options.suite is None:
        raise UsageError("say what is tuned, as in `harness tune suites/models.toml --model efficientnet`")
    status = ExitCode.OK
    with reporter(quiet=options.quiet, verbose=options.verbose) as progress:
        for answer in search(options, ("harness", *sys.argv[1:]), progress, _pictures):
            if isinstance(answer, NoStart):
                tell(f"{answer}")
                status = ExitCode.CASE_FAILED
                continue
            if answer.answer == "budget too small":
                status = ExitCode.CASE_FAILED
            print_report(answer, format, full=True, results=options.out)
            if not options.quiet:
                tell(f"Kept in {options.out / answer.id}")
    return status


def _report(options: TuneOptions, form: PageFormat) -> int:
    found = {folder: TUNING.load(folder) for folder in tunings_in(options.out)}
    if not found:
        raise UsageError(
            f"--report: {options.out} holds no search that has come to its end; name its folder with --out"
        )
    models, device = options.models, options.device
    wanted = {
        folder: each
        for folder, each in found.items()
        if (not models or each.model in models) and device in (None, each.device)
    }
    if not wanted:
        there = ", ".join(folder.name for folder in found)
        raise UsageError(f"--report: {options.out} has {there}, and none is of the --model and --device that you name")
    for folder, each in wanted.items():
        print_report(each, form, full=True, results=folder.parent)
    return ExitCode.OK


def _pictures(found: Tuning) -> dict[str, bytes]:
    formats: tuple[Format, ...] = ("png", "svg")
    return {f"race.{form}": draw_race(found).file(LIGHT, form) for form in formats} if found.moments else {}
