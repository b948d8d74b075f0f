"""`harness report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from harness.cli.app import app


@app.command
def report(
    run: Path,
    *,
    base: Path | None = None,
    format: Literal["terminal", "markdown", "json", "csv", "github"] = "terminal",  # noqa: A002 (the option's name)
    full: bool = False,
    out: Path | None = None,
    across_hosts: Annotated[bool, Parameter(negative="")] = False,
    full_out: Path | None = None,
    step_summary: Path | None = None,
    images_url: str | None = None,
    run_url: str | None = None,
    artifact_url: str | None = None,
    dashboard_url: str | None = None,
    base_commit: str | None = None,
    head_commit: str | None = None,
) -> int:
    """Print the report of a run or a comparison again, or of a run against another one.

    Args:
        run: The run's directory, or a comparison's.
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
    from harness.commands.report import GitHubArguments, report_command

    github = GitHubArguments(
        full_out=full_out,
        step_summary=step_summary,
        images_url=images_url,
        run_url=run_url,
        artifact_url=artifact_url,
        dashboard_url=dashboard_url,
        base_commit=base_commit,
        head_commit=head_commit,
    )
    return report_command(run, format, full=full, out=out, base=base, across_hosts=across_hosts, github=github)
