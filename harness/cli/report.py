"""`harness report`: a run, comparison, explanation, bisect or tuning again, and what GitHub shows of the first two."""

import os
import re
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

from harness.cli.app import app
from harness.cli.output import checked_address, print_report, print_text, tell
from harness.errors import UsageError
from harness.options import Flag, command_options
from harness.progress import Terminal
from harness.records.comparison import Comparison
from harness.records.run import Run
from harness.report import form_of, render
from harness.report.github import STEP_SUMMARY_BYTES, render_comment, render_step_summary
from harness.report.page import Picture
from harness.report.pages import Links, commit_name
from harness.report.run_report import Report, build_report
from harness.stages.comparing import load_against
from harness.store.files import writing
from harness.store.folders import NAMED, find_folder
from harness.store.kinds import Result, kind_of_value, load_result

_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_ONLY_GITHUB = (
    *("full_out", "step_summary", "images_url", "run_url", "artifact_url", "dashboard_url"),
    *("base_commit", "head_commit"),
)


@command_options
@dataclass(frozen=True)
class ReportOptions:
    """What a user can choose about a report.

    Attributes:
        run: The run's directory, or that of a comparison, an explanation, a bisect or a tuning.
        base: Report this run against that one: as they were measured side by side where `harness compare` did, else
            as they recorded it.
        format: How to print it; github: the comment on a pull request.
        full: Markdown without cuts: every case, every metric, the environment.
        out: Write it to this file instead of stdout.
        across_hosts: With --base, compare recorded numbers of different machines or devices too.
        full_out: With --format github, also write the full report to this file.
        step_summary: With --format github, also append the job's summary to this file (default: the one that
            GITHUB_STEP_SUMMARY names).
        images_url: With --format github, where forest-light.png and forest-dark.png are published (of a run without a
            base: variants-light.png and variants-dark.png).
        run_url: With --format github, link this workflow run (default: the one that runs this, in GitHub Actions).
        artifact_url: With --format github, link the full report there.
        dashboard_url: With --format github, link this dashboard.
        base_commit: With --format github, link the base's commit: its address, or in GitHub Actions its hash.
        head_commit: With --format github, link the head's commit: its address, or in GitHub Actions its hash.
    """

    run: Annotated[Path, NAMED]
    _: KW_ONLY
    base: Annotated[Path | None, NAMED] = None
    format: Literal["terminal", "markdown", "json", "csv", "github"] = "terminal"
    full: bool = False
    out: Path | None = None
    across_hosts: Flag = False
    full_out: Path | None = None
    step_summary: Path | None = None
    images_url: str | None = None
    run_url: str | None = None
    artifact_url: str | None = None
    dashboard_url: str | None = None
    base_commit: str | None = None
    head_commit: str | None = None


@app.command
def report(options: ReportOptions) -> int:
    """Print the report of a run or another result again, or of a run against another one.

    Of a run, the exit status is 3 if a case failed or is missing, or nothing was measured; of a comparison, and of a
    run against a base, it is that of `harness compare`; of a bisect 4 where something stays open.
    """
    if options.format != "github":
        for name in _ONLY_GITHUB:
            if getattr(options, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{option} is for --format github; give that too, or leave {option} out")
    links = _links(options)  # what is wrong with them shows before anything takes long
    if options.across_hosts and options.base is None:
        raise UsageError("--across-hosts is for two runs; give the other one with --base")
    if options.base is None:
        path = find_folder(options.run)
        found: Result = load_result(path)
    else:
        path, base = find_folder(options.run, kind="run"), find_folder(options.base, kind="run")
        with Terminal() as progress:
            found = load_against(path, base, progress, across_hosts=options.across_hosts)
    source = build_report(found) if isinstance(found, Run) else found
    if options.format == "github":
        if not isinstance(source, Comparison | Report):
            what = kind_of_value(found).phrase
            raise UsageError(f"{path}: is {what}, of which there is no comment; give --format markdown")
        _write_github(source, options, links)
    else:
        print_report(source, options.format, options.out, full=options.full, results=path.parent)
    return int(form_of(source).exit_status(source))


def _write_github(source: Comparison | Report, options: ReportOptions, links: Links) -> None:
    """Print the comment, and write the full report and the job's summary where they are asked for."""
    of_job = os.environ.get("GITHUB_STEP_SUMMARY")
    summary = options.step_summary or (Path(of_job) if of_job else None)
    place = checked_address("--images-url", options.images_url).rstrip("/")
    pictures: tuple[Picture, ...] = ()
    if place:
        from harness.plots.pictures import published

        pictures = published(source, lambda name: f"{place}/{name}")
    full = render(source, "markdown", full=True) if options.full or options.full_out is not None else ""
    comment = full if options.full else render_comment(source, pictures=pictures, links=links)
    print_text(comment, options.out)
    if options.full_out is not None:
        print_text(full, options.full_out)
    if summary is None:
        return
    with writing(summary, "choose another --step-summary"):
        taken = summary.stat().st_size if summary.exists() else 0
        room_bytes = STEP_SUMMARY_BYTES - 1 - taken  # of this step's summary
        if step := render_step_summary(source, pictures=pictures, links=links, room_bytes=room_bytes):
            with summary.open("a", encoding="utf-8") as file:
                file.write(f"\n{step}")
    said = f"The job's summary was appended to {summary}."
    tell(said if step else f"{summary} is as long as GitHub takes already; the summary was left out.")


def _links(options: ReportOptions) -> Links:
    """The links that were asked for, and those that GitHub Actions gives in its environment."""
    checked_address("--images-url", options.images_url)
    server, name = os.environ.get("GITHUB_SERVER_URL", ""), os.environ.get("GITHUB_REPOSITORY", "")
    repository = f"{server.rstrip('/')}/{name}" if server and name else ""
    run_id = os.environ.get("GITHUB_RUN_ID", "")
    here = f"{repository}/actions/runs/{run_id}" if repository and run_id.isdigit() else ""
    return Links(
        run_url=checked_address("--run-url", options.run_url) or here,
        artifact_url=checked_address("--artifact-url", options.artifact_url),
        dashboard_url=checked_address("--dashboard-url", options.dashboard_url),
        base_commit_url=_commit("--base-commit", options.base_commit, repository),
        head_commit_url=_commit("--head-commit", options.head_commit, repository),
    )


def _commit(option: str, commit: str | None, repository: str) -> str:
    if commit is None:
        return ""
    if _COMMIT.fullmatch(commit):
        if not repository:
            raise UsageError(
                f"{option} {commit}: of which repository is not known outside of GitHub Actions; give the commit's "
                "whole address, or set GITHUB_SERVER_URL and GITHUB_REPOSITORY"
            )
        return f"{repository}/commit/{commit.lower()}"
    if not commit_name(commit):
        raise UsageError(f"{option} {commit[:100]!r}: is no hash of a commit, and no address that ends in one")
    return commit
