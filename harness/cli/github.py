"""`harness github`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from harness.cli.app import app

github = App(name="github", help="Post reports on GitHub.")
app.command(github)

Repo = Annotated[
    str | None,
    Parameter(env_var="GITHUB_REPOSITORY", help="The repository, as owner/name (default: $GITHUB_REPOSITORY)."),
]
ApiUrl = Annotated[
    str, Parameter(env_var="GITHUB_API_URL", help="Of a GitHub Enterprise Server (default: $GITHUB_API_URL).")
]
Patience = Annotated[
    float,
    Parameter(
        validator=Number(gte=0, lt=1_000_000), help="Seconds to wait for rate limits and failing servers, all in all."
    ),
]
Author = Annotated[
    str | None,
    Parameter(help="Login that the token posts as (default: GitHub is asked; in a workflow github-actions[bot])."),
]


@github.command
def post(
    report: Path,
    *,
    repo: Repo = None,
    pr: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    event: Path | None = None,
    images_branch: str | None = None,
    images_url: str | None = None,
    dashboard_url: str | None = None,
    run_url: str | None = None,
    author: Author = None,
    api_url: ApiUrl = "https://api.github.com",
    patience: Patience = 300.0,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    keep: Path = Path("harness-comment.md"),
) -> int:
    """Post a comparison as a comment of a pull request, or bring the comment that is there up to date.

    The token is read from GITHUB_TOKEN.

    Args:
        report: The comparison's directory or its comparison.json; where there is no base, a run's directory.
        pr: The pull request's number.
        event: The payload of the workflow's event, which tells the pull request ($GITHUB_EVENT_PATH).
        images_branch: Keep the pictures on this branch of the repository.
        images_url: The pictures forest-light.png and forest-dark.png are published below this address.
        dashboard_url: A dashboard to link to.
        run_url: The workflow run that measured (default: the event's).
        dry_run: Print what would be posted, and send nothing; it takes no token.
        keep: Where the comment is kept if it cannot be posted.
    """
    from harness.commands.github import PostArguments, post_command

    return post_command(
        PostArguments(
            report=report,
            repo=repo,
            pr=pr,
            event=event,
            images_branch=images_branch,
            images_url=images_url,
            dashboard_url=dashboard_url,
            run_url=run_url,
            author=author,
            api_url=api_url,
            patience_s=patience,
            dry_run=dry_run,
            keep=keep,
        )
    )


@github.command
def issue(
    report: Path,
    *,
    title: str,
    repo: Repo = None,
    author: Author = None,
    api_url: ApiUrl = "https://api.github.com",
    patience: Patience = 300.0,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Open an issue with this report, or bring the open issue of the same title up to date.

    The token is read from GITHUB_TOKEN.

    Args:
        report: A Markdown file, such as `harness history --changes --format markdown` gives.
        title: The issue's.
        dry_run: Print what would be posted, and send nothing; it takes no token.
    """
    from harness.commands.github import IssueArguments, issue_command

    return issue_command(
        IssueArguments(
            report=report,
            title=title,
            repo=repo,
            author=author,
            api_url=api_url,
            patience_s=patience,
            dry_run=dry_run,
        )
    )
