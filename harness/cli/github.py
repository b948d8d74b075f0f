"""`harness github`: a comparison as a comment of a pull request, a report as an issue."""

import os
import sys
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from harness.cli.app import app
from harness.cli.output import checked_address, tell
from harness.errors import ExitCode, UsageError
from harness.github import posting
from harness.github.comments import OwnComments, own_login
from harness.github.event import Event, read_event
from harness.github.posting import Destination, branch_named
from harness.github_api import API, Client, api_address, repository_named, server_of, token_of
from harness.options import Count, Flag, SecondsOrNone, command_options
from harness.report.github import render_comment
from harness.report.markdown import COMMENT_LIMIT, marker
from harness.report.pages import Links
from harness.store.files import read_document
from harness.text import one_line

github = App(name="github", help="Post reports on GitHub.")
app.command(github)

_REPORT_BYTES = 64 * 2**20


@dataclass(frozen=True, kw_only=True)
class GitHubOptions:
    """Where on GitHub something is posted, and as whom.

    Attributes:
        repo: The repository, as owner/name (default: $GITHUB_REPOSITORY).
        author: Login that the token posts as (default: GitHub is asked; in a workflow github-actions[bot]).
        api_url: Of a GitHub Enterprise Server (default: $GITHUB_API_URL).
        patience: Seconds to wait for rate limits and failing servers, all in all.
        dry_run: Print what would be posted, and send nothing; it takes no token.
    """

    repo: Annotated[str | None, Parameter(env_var="GITHUB_REPOSITORY")] = None
    author: str | None = None
    api_url: Annotated[str, Parameter(env_var="GITHUB_API_URL")] = API
    patience: SecondsOrNone = 300.0
    dry_run: Flag = False


@command_options
@dataclass(frozen=True)
class PostOptions(GitHubOptions):
    """What a user can choose about a comment.

    Attributes:
        report: The comparison's directory or its comparison.json; where there is no base, a run's directory.
        pr: The pull request's number.
        event: The payload of the workflow's event, which tells the pull request ($GITHUB_EVENT_PATH).
        images_branch: Keep the pictures on this branch of the repository.
        images_url: The pictures forest-light.png and forest-dark.png are published below this address.
        dashboard_url: A dashboard to link to.
        run_url: The workflow run that measured (default: the event's).
        keep: Where the comment is kept if it cannot be posted.
    """

    report: Path
    _: KW_ONLY
    pr: Count | None = None
    event: Path | None = None
    images_branch: str | None = None
    images_url: str | None = None
    dashboard_url: str | None = None
    run_url: str | None = None
    keep: Path = Path("harness-comment.md")


@command_options
@dataclass(frozen=True)
class IssueOptions(GitHubOptions):
    """What a user can choose about an issue.

    Attributes:
        report: A Markdown file, such as `harness history --changes --format markdown` gives.
        title: The issue's.
    """

    report: Path
    _: KW_ONLY
    title: str


@github.command
def post(options: PostOptions) -> int:
    """Post a comparison as a comment of a pull request, or bring the comment that is there up to date.

    The token is read from GITHUB_TOKEN. The exit status is 2 if the comment could not be posted; it is kept then.
    """
    destination = _destination(options)
    figures = posting.read_figures(options.report)
    if options.dry_run:
        sys.stdout.write(render_comment(figures, links=destination.links))
        return ExitCode.OK
    try:
        tell(posting.post(figures, destination, _client(options)))
    except BaseException:
        text = render_comment(figures, links=destination.links)
        try:
            options.keep.write_text(text)
            tell(f"The comment is kept in {options.keep}")
        except OSError:
            sys.stdout.write(text)
        raise
    return ExitCode.OK


@github.command
def issue(options: IssueOptions) -> int:
    """Open an issue with this report, or bring the open issue of the same title up to date.

    The token is read from GITHUB_TOKEN. The exit status is 2 if the issue could not be opened or changed.
    """
    repository = repository_named(options.repo)
    api_address(options.api_url)
    title = one_line(options.title).strip()[:200]
    if not title:
        raise UsageError("--title: an issue has a title; say what it is about")
    text = read_document(options.report, _REPORT_BYTES).decode(errors="replace")
    body = f"{marker(title, 'issue')}\n\n{text}"
    if len(body) > COMMENT_LIMIT:
        rest = "\n\n_The rest does not fit here._\n"
        body = body[: COMMENT_LIMIT - len(rest)].rpartition("\n")[0] + rest
    if options.dry_run:
        tell(f"would open or change “{title}” among the issues of {repository}")
        sys.stdout.write(body)
        return ExitCode.OK
    client = _client(options)
    issues = OwnComments(client, repository, options.author or own_login(client), None)
    tell(issues.put(body, issues.with_marker(marker(title, "issue")), title=title))
    return ExitCode.OK


def _destination(options: PostOptions) -> Destination:
    repository = repository_named(options.repo)
    if options.pr is not None and options.event is None:
        target: int | Event = options.pr
    elif options.event is not None and options.pr is None:
        target = read_event(options.event, repository)
    else:
        raise UsageError("which pull request is meant has to be said once: with --pr, or with --event")
    event = target if isinstance(target, Event) else None
    if options.images_branch is not None and options.images_url is not None:
        raise UsageError("pictures are either on --images-branch or below --images-url; leave one of them out")
    server = server_of(api_address(options.api_url))
    run_url = checked_address("--run-url", options.run_url).rstrip("/") or (event.run_url if event is not None else "")
    links = Links(
        run_url=run_url,
        artifact_url=f"{run_url}#artifacts" if run_url else "",
        dashboard_url=checked_address("--dashboard-url", options.dashboard_url).rstrip("/"),
        head_commit_url=f"{server}/{repository}/commit/{event.sha}" if event is not None else "",
    )
    return Destination(
        repository=repository,
        target=target,
        links=links,
        server=server,
        author=options.author,
        images_branch=branch_named(options.images_branch) if options.images_branch is not None else None,
        images_url=checked_address("--images-url", options.images_url).rstrip("/"),
    )


def _client(options: GitHubOptions) -> Client:
    token = token_of(os.environ)
    if token is None:
        raise UsageError("GITHUB_TOKEN is not set; set it to a token that may comment, or look with --dry-run")
    return Client(api_address(options.api_url), token, patience_s=options.patience, say=tell)
