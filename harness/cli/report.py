"""`harness report`: a run, comparison, explanation, bisect or tuning again, and what GitHub shows of the first two."""

import os
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

from harness.cli.app import app
from harness.cli.output import print_report, print_text, tell
from harness.errors import UsageError
from harness.options import Flag, Format, command_options
from harness.records.comparison import Comparison
from harness.records.run import Run
from harness.report import form_of, render
from harness.report.github import STEP_SUMMARY_BYTES, render_comment, render_step_summary
from harness.report.pages import Links
from harness.report.run_report import Report, build_report
from harness.store.files import writing
from harness.store.folders import NAMED, find_folder, kind_of_value, load_result

_ONLY_GITHUB = ("full_out", "step_summary")


@command_options
@dataclass(frozen=True)
class ReportOptions:
    """What a user can choose about a report.

    Attributes:
        run: The run's directory, or that of a comparison, an explanation, a bisect or a tuning.
        format: How to print it; github: the comment on a pull request.
        full: Markdown without cuts: every case, every metric, the environment.
        out: Write it to this file instead of stdout.
        full_out: With --format github, also write the full report to this file.
        step_summary: With --format github, also append the job's summary to this file (default: the one that
            GITHUB_STEP_SUMMARY names).
    """

    run: Annotated[Path, NAMED]
    _: KW_ONLY
    format: Literal[Format, "github"] = "terminal"
    full: Flag = False
    out: Path | None = None
    full_out: Path | None = None
    step_summary: Path | None = None


@app.command
def report(options: ReportOptions) -> int:
    """Print the report of a run or another result again.

    Of a run, the exit status is 3 if a case failed or is missing, or nothing was measured; of a comparison it is that
    of `harness compare`; of a bisect 4 where something stays open.
    """
    if options.format != "github":
        for name in _ONLY_GITHUB:
            if getattr(options, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{option} is for --format github; give that too, or leave {option} out")
    path = find_folder(options.run)
    found = load_result(path)
    source = build_report(found) if isinstance(found, Run) else found
    if options.format != "github":
        print_report(source, options.format, options.out, full=options.full, results=path.parent)
    elif isinstance(source, Comparison | Report):
        _write_github(source, options)
    else:
        what = kind_of_value(found).phrase
        raise UsageError(f"{path}: is {what}, of which there is no comment; give --format markdown")
    return int(form_of(source).exit_status(source))


def _write_github(source: Comparison | Report, options: ReportOptions) -> None:
    """Print the comment, and write the full report and the job's summary where they are asked for."""
    of_job = os.environ.get("GITHUB_STEP_SUMMARY")
    summary = options.step_summary or (Path(of_job) if of_job else None)
    server, name, run = (os.environ.get(f"GITHUB_{key}", "") for key in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    is_known = bool(server and name and run.isdigit())
    links = Links(run_url=f"{server.rstrip('/')}/{name}/actions/runs/{run}" if is_known else "")
    full = render(source, "markdown", full=True) if options.full or options.full_out is not None else ""
    comment = full if options.full else render_comment(source, links=links)
    print_text(comment, options.out)
    if options.full_out is not None:
        print_text(full, options.full_out)
    if summary is None:
        return
    with writing(summary, "choose another --step-summary"):
        taken = summary.stat().st_size if summary.exists() else 0
        room_bytes = STEP_SUMMARY_BYTES - 1 - taken  # of this step's summary
        if step := render_step_summary(source, links=links, room_bytes=room_bytes):
            with summary.open("a", encoding="utf-8") as file:
                file.write(f"\n{step}")
    said = f"The job's summary was appended to {summary}."
    tell(said if step else f"{summary} is as long as GitHub takes already; the summary was left out.")
