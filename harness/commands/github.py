"""What `harness github` does, once its arguments are parsed."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ExitCode, UsageError
from harness.github.client import Client
from harness.github.comments import own_comments, own_login, put
from harness.github.event import Event, read_event
from harness.github.material import Material, read_material
from harness.github.pictures import branch_named, server_of
from harness.github.posting import Wanted, images_at, post
from harness.github.transport import Transport, api_address, token_of
from harness.github.values import Posted, Repository, issues_of, repository_named
from harness.report.markdown_text import COMMENT_LIMIT, marker
from harness.store.files import read_document
from harness.text import one_line


@dataclass(frozen=True, kw_only=True)
class PostArguments:
    """The arguments of `harness github post`, as they were given."""

    report: Path
    repo: str | None
    pr: int | None
    event: Path | None
    images_branch: str | None
    images_url: str | None
    dashboard_url: str | None
    run_url: str | None
    author: str | None
    api_url: str
    patience_s: float
    dry_run: bool
    keep: Path


@dataclass(frozen=True, kw_only=True)
class IssueArguments:
    """The arguments of `harness github issue`, as they were given."""

    report: Path
    title: str
    repo: str | None
    author: str | None
    api_url: str
    patience_s: float
    dry_run: bool


def post_command(arguments: PostArguments) -> int:
    """`harness github post`: exit status 2 if the comment could not be posted; it is kept then."""
    wanted = _wanted(arguments)
    address = api_address(arguments.api_url)
    material = read_material(arguments.report)
    if arguments.dry_run:
        return _rehearse(material, wanted)
    text = material.render(None, wanted.links)
    try:
        return _tell(post(material, wanted, _client(address, arguments.patience_s), _say))
    except BaseException:
        _keep(text, arguments.keep)
        raise


def issue_command(arguments: IssueArguments) -> int:
    """`harness github issue`: exit status 2 if it could not be opened or changed."""
    repository = _repository(arguments.repo)
    address = api_address(arguments.api_url)
    title = one_line(arguments.title)[:200]
    text = read_document(arguments.report, 64 * 2**20).decode(errors="replace")
    body = _within_limit(f"{marker(title, 'issue')}\n\n{text}")
    thread = issues_of(repository)
    if arguments.dry_run:
        _say(f"would open or change “{title}” among {thread.what}")
        sys.stdout.write(body)
        return ExitCode.OK
    client = _client(address, arguments.patience_s)
    login = arguments.author or own_login(client)
    there = own_comments(client, thread, marker(title, "issue"), login)
    return _tell(put(client, thread, body, login, there, title=title))


def _wanted(arguments: PostArguments) -> Wanted:
    from harness.report.links import Links

    repository = _repository(arguments.repo)
    if (arguments.pr is None) == (arguments.event is None):
        raise UsageError("which pull request is meant has to be said once: with --pr, or with --event")
    if arguments.images_branch is not None and arguments.images_url is not None:
        raise UsageError("pictures are either on --images-branch or below --images-url; leave one of them out")
    event = read_event(arguments.event, repository) if arguments.event is not None else None
    run_url = _web_address(arguments.run_url, "--run-url") or (event.run_url if event is not None else None)
    dashboard_url = _web_address(arguments.dashboard_url, "--dashboard-url")
    server = server_of(api_address(arguments.api_url))
    links = Links(
        run_url=run_url or "",
        artifact_url=f"{run_url}#artifacts" if run_url else "",
        dashboard_url=dashboard_url or "",
        head_commit_url=f"{server}/{repository}/commit/{event.sha}" if event is not None else "",
    )
    return Wanted(
        repository=repository,
        target=_target(arguments.pr, event),
        links=links,
        server=server,
        author=arguments.author,
        images_branch=branch_named(arguments.images_branch) if arguments.images_branch is not None else None,
        images_url=_web_address(arguments.images_url, "--images-url"),
    )


def _target(number: int | None, event: Event | None) -> int | Event:
    if number is not None:
        return number
    if event is None:
        raise AssertionError("one of them was given")
    return event


def _repository(repo: str | None) -> Repository:
    if repo is None:
        raise UsageError("which repository is meant has to be said: give --repo owner/name")
    return repository_named(repo)


def _web_address(url: str | None, option: str) -> str | None:
    from harness.report.markdown_text import web_address

    if not url:
        return None
    if not web_address(url):
        raise UsageError(
            f"{option} {one_line(url)[:100]!r}: is no address of the web; give one that begins with https://"
        )
    return url.rstrip("/")


def _client(address: str, patience_s: float) -> Client:
    token = token_of(os.environ)
    if token is None:
        raise UsageError("GITHUB_TOKEN is not set; set it to a token that may comment, or look with --dry-run")
    return Client(Transport(address, token), patience_s=patience_s, say=_say)


def _rehearse(material: Material, wanted: Wanted) -> int:
    """Print what would be posted and where."""
    if isinstance(wanted.target, Event):
        event = wanted.target
        numbers = ", ".join(f"#{number}" for number in event.numbers)
        where = f"{numbers or f'the pull request of {one_line(event.owner)}:{one_line(event.branch)}'}, if its head is "
        where += one_line(event.sha)[:12]
        number: int | str = event.numbers[0] if event.numbers else "?"
    else:
        number, where = wanted.target, f"#{wanted.target}"
    shelf = wanted.shelf(number, material.key)
    images = None
    if wanted.images_url is not None:
        images = images_at(material, lambda name: f"{wanted.images_url}/{name}")
    elif shelf is not None and (files := material.draw()):
        _say(f"would add {', '.join(files)} to branch {shelf.branch} in {shelf.folder}")
        images = images_at(material, lambda name: shelf.url("COMMIT", name))
    _say(f"would write to {where} of {wanted.repository}")
    sys.stdout.write(material.render(images, wanted.links))
    return ExitCode.OK


def _tell(posted: Posted) -> int:
    for note in posted.notes:
        _say(note)
    if posted.outcome == "unchanged":
        _say(f"{posted.url} says this already; nothing is sent")
    elif posted.outcome != "not posted":
        _say(f"{posted.outcome} {posted.url or 'the comment'}")
    return ExitCode.OK


def _keep(text: str, path: Path) -> None:
    """What could not be posted is not lost: it goes to a file, or to stdout where there can be none."""
    try:
        path.write_text(text)
    except OSError:
        sys.stdout.write(text)
        return
    _say(f"The comment is kept in {path}")


def _within_limit(body: str) -> str:
    """Whole lines of a text that is too long, and a sentence."""
    if len(body) <= COMMENT_LIMIT:
        return body
    rest = "\n\n_The rest does not fit here._\n"
    return body[: COMMENT_LIMIT - len(rest)].rpartition("\n")[0] + rest


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
