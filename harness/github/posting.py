"""Material -> one comment of a pull request: which one, with which pictures, and as long as GitHub takes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.errors import GitHubError
from harness.github.client import Client
from harness.github.comments import marker_of, own_comments, own_login, put
from harness.github.event import Event, base_commit_of, pull_request_of
from harness.github.material import Material, picture_name
from harness.github.pictures import Shelf, already_there, publish
from harness.github.values import Comment, Posted, Repository, Thread, comments_of
from harness.report.markdown_text import COMMENT_LIMIT

if TYPE_CHECKING:
    from harness.report.links import Images, Links


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Where a comment goes and what it links to.

    Attributes:
        target: Number of the pull request, or the event that tells it.
        author: Login of the token's owner; None: GitHub is asked.
        images_branch: Branch for pictures.
        images_url: Where the pictures are published by somebody else; without a slash at its end.
        server: Where people see the repository.
    """

    repository: Repository
    target: int | Event
    links: Links
    server: str
    author: str | None = None
    images_branch: str | None = None
    images_url: str | None = None

    def shelf(self, number: int | str, key: str) -> Shelf | None:
        """Where the pictures go, if a branch has them."""
        if self.images_branch is None:
            return None
        folder = f"pr-{number}/{key}"
        return Shelf(repository=self.repository, branch=self.images_branch, server=self.server, folder=folder)


def post(material: Material, wanted: Wanted, client: Client, say: Callable[[str], None]) -> Posted:
    """Find, update or create the comment.

    Raises:
        GitHubError: It could not be posted.
    """
    links = wanted.links
    number = wanted.target if isinstance(wanted.target, int) else None
    if isinstance(wanted.target, Event):
        found = pull_request_of(wanted.target, client, wanted.repository)
        if found.number is None:
            return Posted(outcome="not posted", url="", body="", notes=(found.why_not,))
        number = found.number
        if base := base_commit_of(found, material.base_digits, client, wanted.repository):
            links = replace(links, base_commit_url=f"{wanted.server}/{wanted.repository}/commit/{base}")
    if number is None:
        raise AssertionError("a target is a number or an event")
    login = wanted.author or own_login(client)
    thread = comments_of(wanted.repository, number)
    there = own_comments(client, thread, marker_of(material.render(None, links)), login)
    images = _images(material, wanted, number, there, client, say)
    return _fitting(material, material.render(images, links), links, client, thread, login, there, say)


def _fitting(
    material: Material,
    body: str,
    links: Links,
    client: Client,
    thread: Thread,
    login: str,
    there: list[Comment],
    say: Callable[[str], None],
) -> Posted:
    """Post the comment, or its short form where GitHub finds it too long."""
    if len(body) <= COMMENT_LIMIT:
        try:
            return put(client, thread, body, login, there)
        except GitHubError as error:
            if error.status != 422 or "too long" not in str(error).lower():
                raise
    say("the comment is too long for GitHub; a short form is posted")
    return put(client, thread, material.short(links), login, there)


def _images(
    material: Material,
    wanted: Wanted,
    number: int,
    there: list[Comment],
    client: Client,
    say: Callable[[str], None],
) -> Images | None:
    """Links of the pictures; without pictures a comment has a plot of text, so failing here is no failure."""
    if wanted.images_url is not None:
        return images_at(material, lambda name: f"{wanted.images_url}/{name}")
    shelf = wanted.shelf(number, material.key)
    if shelf is None:
        return None
    try:
        commit = already_there(shelf, there)
        if commit is None:
            files = material.draw()
            commit = publish(client, shelf, files, say=say) if files else None
    except GitHubError as error:
        say(f"{error}; the comment goes without pictures")
        return None
    if commit is None:
        return None
    known = commit
    return images_at(material, lambda name: shelf.url(known, name))


def images_at(material: Material, url: Callable[[str], str]) -> Images:
    """The pictures as a comment shows them, under the address that each name has."""
    from harness.plots.pictures import TITLES
    from harness.report.links import Image, Images

    light, dark = (url(picture_name(material.kind, theme)) for theme in ("light", "dark"))
    return Images(entries=(Image(title=TITLES[material.kind], alt=material.alt, light_url=light, dark_url=dark),))
