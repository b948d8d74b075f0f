"""One comment for each marker: found among those of its author, created once, changed in place."""

import itertools
from dataclasses import dataclass
from typing import Any

from harness.errors import GitHubError
from harness.github_api import Client, Purpose
from harness.text import one_line

# Who comments where the token is that of a workflow's job.
ACTIONS_LOGIN = "github-actions[bot]"


@dataclass(frozen=True, kw_only=True)
class Comment:
    """A comment or an issue that exists."""

    number: int  # Its id; of an issue, its number
    body: str
    login: str  # Who wrote it
    url: str  # Where people see it


def own_login(client: Client) -> str:
    """Who the token belongs to; the token of a workflow's job may not ask, and is that of github-actions[bot]."""
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


class OwnComments:
    """The comments of a pull request, or the issues of a repository, that one login wrote; no others are changed."""

    def __init__(self, client: Client, repository: str, login: str, pull_request: int | None) -> None:
        self._client, self._login = client, login
        self._listing = self._item = f"repos/{repository}/issues"
        self._what, self._needs, self._key = f"the issues of {repository}", "issues: write", "number"
        if pull_request is not None:  # its comments are those of an issue in GitHub's API
            self._listing, self._item = f"{self._listing}/{pull_request}/comments", f"{self._item}/comments"
            self._what, self._needs, self._key = f"#{pull_request} of {repository}", "pull-requests: write", "id"

    def with_marker(self, marker: str) -> list[Comment]:
        """Those that begin with the marker, oldest first."""
        query = {"state": "open", "creator": self._login} if self._key == "number" else {}
        items = self._client.pages(self._listing, self._purpose("read the comments of"), query)
        comments = filter(None, map(self._comment, items))
        own = [item for item in comments if item.login == self._login and marker_of(item.body) == marker]
        return sorted(own, key=lambda comment: comment.number)

    def put(self, body: str, existing: list[Comment], *, title: str = "") -> str:
        """Have exactly this body there: the newest comment is changed unless it has it, or one is created."""
        if not existing:
            return self._create(body, title)
        newest = existing[-1]
        if _normalized(newest.body) == _normalized(body):
            return f"{newest.url} says this already; nothing is sent"
        purpose = self._purpose("change its comment on")
        item = self._client.send("PATCH", f"{self._item}/{newest.number}", purpose, _document(body, title))
        return f"updated {self._require_comment(item, purpose).url or newest.url or 'the comment'}"

    def _create(self, body: str, title: str) -> str:
        """Create it once: where nobody knows whether that was done, the comments are read before another attempt."""
        purpose = self._purpose("write to")
        for attempt in itertools.count():
            try:
                item = self._client.send("POST", self._listing, purpose, _document(body, title), repeatable=False)
                return f"created {self._require_comment(item, purpose).url or 'the comment'}"
            except GitHubError as error:
                if not error.uncertain:
                    raise
                self._client.pause(error, attempt)
            existing = self.with_marker(marker_of(body))
            if existing and _normalized(existing[-1].body) == _normalized(body):
                return f"created {existing[-1].url}"
            if existing:  # another job's, meanwhile
                return self.put(body, existing, title=title)
        raise AssertionError("counting does not end")

    def _require_comment(self, item: Any, purpose: Purpose) -> Comment:
        """The comment that an answer shows; without one, nobody knows whether there is one."""
        comment = self._comment(item)
        if comment is None:
            raise GitHubError(
                f"{self._client.host} shows no comment when asked to {purpose.what}; look whether there is one, and "
                "check $GITHUB_API_URL",
                uncertain=True,
            )
        return comment

    def _comment(self, item: Any) -> Comment | None:
        """An item of the API as a comment; None where it is none, as a pull request among issues."""
        if not isinstance(item, dict) or "pull_request" in item:
            return None
        number, body, user, url = (item.get(key) for key in (self._key, "body", "user", "html_url"))
        login = user.get("login") if isinstance(user, dict) else None
        if not isinstance(number, int) or not isinstance(login, str):
            return None
        return Comment(
            number=number,
            body=body if isinstance(body, str) else "",
            login=login,
            url=one_line(url)[:500] if isinstance(url, str) else "",
        )

    def _purpose(self, verb: str) -> Purpose:
        return Purpose(what=f"{verb} {self._what}", needs=self._needs)


def _document(body: str, title: str) -> dict[str, str]:
    return {"body": body, "title": title} if title else {"body": body}


def _normalized(body: str) -> str:
    """As GitHub may give it back: with other ends of lines, without space around it."""
    return "\n".join(body.splitlines()).strip()
