"""`harness tune`: the flags, plugins and lowering configurations that make a model fast."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.cli.app import app
from harness.cli.output import emit, reporter, tell
from harness.errors import ExitCode, UsageError
from harness.options import PageFormat
from harness.plots.canvas import LIGHT
from harness.plots.race import draw_race
from harness.records.tuning import Tuning
from harness.report.tune_page import markdown_page, terminal_page, tune_json
from harness.stages.options import TuneOptions
from harness.stages.tuning import NoStart
from harness.stages.tuning import tune as search
from harness.store.kinds import TUNING, tunings_in


@app.command
def tune(
    options: TuneOptions | None = None,
    *,
    format: PageFormat = "terminal",  # noqa: A002 (the option's name)
) -> int:
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
            _print(answer, format, options.out)
            if not options.quiet:
                tell(f"Kept in {options.out / answer.id}")
    return status


def _report(options: TuneOptions, form: PageFormat) -> int:
    """Print what is found already, of the models and the device that are asked for."""
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
        _print(each, form, folder.parent)
    return ExitCode.OK


def _print(found: Tuning, form: PageFormat, out: Path) -> None:
    page = markdown_page if form == "markdown" else terminal_page
    emit(form, lambda: page(found, str(out)), lambda: tune_json(found))


def _pictures(found: Tuning) -> dict[str, bytes]:
    """The race, for reports and for web pages."""
    return {f"race.{kind}": draw_race([found], LIGHT, kind) for kind in ("png", "svg")} if found.moments else {}
