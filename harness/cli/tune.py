"""`harness tune`: the flags, plugins and lowering configurations that make a model fast."""

from __future__ import annotations

import sys
from typing import Literal

from harness.cli.app import app
from harness.cli.output import print_page, print_text, reporter, tell
from harness.errors import ExitCode, UsageError
from harness.records.tuning import Tuning
from harness.report.tune_page import tuning_json, tuning_page
from harness.stages.tune_options import TuneOptions
from harness.stages.tuning import NoStart
from harness.stages.tuning import tune as search
from harness.store.tune_directory import tunings_in


@app.command
def tune(
    options: TuneOptions | None = None,
    *,
    format: Literal["terminal", "markdown", "json"] = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Search the flags, plugins and lowering configurations that make a model fast, and confirm what is found.

    harness tune suites/models.toml --model efficientnet --device cpu --budget 15m --out tuned/

    What was stopped or killed goes on with the same command. Nothing is written that is not confirmed faster and right.
    The exit status is 3 where a model's start cannot be measured, and else 0, whatever is found.

    Args:
        format: How to print what was found.
    """
    options = options or TuneOptions()
    if options.report:
        for found in tunings_in(options.out):
            _print(found, format)
        return ExitCode.OK
    if options.suite is None:
        raise UsageError("say what is tuned, as in `harness tune suites/models.toml --model efficientnet`")
    status = ExitCode.OK
    with reporter(quiet=options.quiet, verbose=options.verbose) as progress:
        for answer in search(options, ("harness", *sys.argv[1:]), progress):
            if isinstance(answer, NoStart):
                tell(f"{answer}")
                status = ExitCode.CASE_FAILED
                continue
            _print(answer, format)
            if not options.quiet:
                tell(f"Kept in {options.out / answer.id}")
    return status


def _print(found: Tuning, form: Literal["terminal", "markdown", "json"]) -> None:
    if form == "json":
        print_text(tuning_json(found))
    else:
        print_page(tuning_page(found), form)
