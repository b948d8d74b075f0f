"""Finding one's own comment by its marker, and creating or changing it. Somebody else's is never changed."""

from __future__ import annotations

from typing import Any

from harness.errors import GitHubError
from harness.github.client import Client
from harness.github.refusals import Purpose
from harness.github.values import ACTIONS_LOGIN, Comment, Posted, Thread
from harness.text import one_line


def own_login(client: Client) -> str:
    """Who the token belongs to; the token of a workflow's job may not ask, and is that of github-actions[bot].

    Raises:
        GitHubError: The token is wrong, or GitHub does not answer.
    """
    try:
        user = client.get("user", Purpose(what="say whose it is", needs="contents: read"))
    except GitHubError as error:
        if error.status in (403, 404):
            return ACTIONS_LOGIN
        raise
    login = user.get("login") if isinstance(user, dict) else None
    return login if isinstance(login, str) else ACTIONS_LOGIN


def marker_of(body: str) -> str:
    """The first line, by which a body is found again."""
    return body.lstrip().partition("\n")[0].strip()


def own_comments(client: Client, thread: Thread, marker: str, login: str) -> list[Comment]:
    """Those that begin with the marker and were written by that login, oldest first.

    Raises:
        GitHubError: They cannot be listed.
    """
    purpose = Purpose(what=f"read the comments of {thread.what}", needs=thread.needs)
    query = {"state": "open", "creator": login} if thread.number_key == "number" else {}
    found = []
    for item in client.pages(thread.listing, purpose, query):
        comment = _comment(item, thread)
        if comment is not None and comment.login == login and marker_of(comment.body) == marker:
            found.append(comment)
    return sorted(found, key=lambda comment: comment.number)


def put(
    client: Client, thread: Thread, body: str, login: str, there: list[Comment], *, title: str | None = None
) -> Posted:
    """Have exactly this body in the thread: nothing where it is there, a change of the newest, or a new comment.

    Args:
        there: What `own_comments` found for the body's marker.
        title: Of an issue.

    Raises:
        GitHubError: It could not be posted.
    """
    if not there:
        return _create(client, thread, body, login, title)
    newest = there[-1]
    notes = _about_duplicates(there, thread)
    if _plain(newest.body) == _plain(body):
        return Posted(outcome="unchanged", url=newest.url, body=body, notes=notes)
    purpose = Purpose(what=f"change its comment on {thread.what}", needs=thread.needs)
    document = {"body": body, **({"title": title} if title else {})}
    changed = _shown(client, thread, client.send("PATCH", f"{thread.one}/{newest.number}", purpose, document), purpose)
    return Posted(outcome="updated", url=changed.url or newest.url, body=body, notes=notes)


def _create(client: Client, thread: Thread, body: str, login: str, title: str | None) -> Posted:
    """Create it once: where it is open whether that was done, the comments are read again before another attempt."""
    purpose = Purpose(what=f"write to {thread.what}", needs=thread.needs)
    document = {"body": body, **({"title": title} if title else {})}
    attempt = 0
    while True:
        try:
            item = client.send("POST", thread.listing, purpose, document, repeatable=False)
            return Posted(outcome="created", url=_shown(client, thread, item, purpose).url, body=body)
        except GitHubError as error:
            if not error.uncertain:
                raise
            client.pause(error, attempt)
            attempt += 1
            there = own_comments(client, thread, marker_of(body), login)
            if there and _plain(there[-1].body) == _plain(body):
                return Posted(outcome="created", url=there[-1].url, body=body)
            if there:  # another job's, meanwhile
                return put(client, thread, body, login, there, title=title)


def _shown(client: Client, thread: Thread, item: Any, purpose: Purpose) -> Comment:
    """The comment that an answer shows.

    Raises:
        GitHubError: It shows none, so that nobody knows whether there is one.
    """
    comment = _comment(item, thread)
    if comment is None:
        raise GitHubError(
            f"{client.host} shows no comment when asked to {purpose.what}; look whether there is one, and check "
            "--api-url",
            uncertain=True,
        )
    return comment


def _about_duplicates(there: list[Comment], thread: Thread) -> tuple[str, ...]:
    if len(there) < 2:
        return ()
    older = ", ".join(comment.url for comment in there[:-1])
    return (f"{thread.what} has {len(there)} comments of this suite; the newest is kept up to date, delete {older}",)


def _plain(body: str) -> str:
    """As GitHub may give it back: with other ends of lines, without space around it."""
    return "\n".join(body.splitlines()).strip()


def _comment(item: Any, thread: Thread) -> Comment | None:
    """An item of the API as a comment; None where it is none, as a pull request among issues."""
    if not isinstance(item, dict) or "pull_request" in item:
        return None
    number, body, user = item.get(thread.number_key), item.get("body"), item.get("user")
    login = user.get("login") if isinstance(user, dict) else None
    if not isinstance(number, int) or not isinstance(login, str):
        return None
    text = body if isinstance(body, str) else ""
    url = item.get("html_url")
    return Comment(number=number, body=text, login=login, url=one_line(url)[:500] if isinstance(url, str) else "")
