"""GitHub's REST API with patience: what fails for a while is asked again, what is refused is said in one sentence.

The token travels in a header to the API's own host and nowhere else: redirects to another host are not followed, but
for the one that leads to a file, which gets nothing of ours; netrc files are not asked, and no message holds it. How
long a client waits follows GitHub's own advice:
https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from harness import __version__
from harness.errors import GitHubError, UsageError
from harness.text import one_line

if TYPE_CHECKING:
    import requests

API = "https://api.github.com"
# Seconds without a connection, and without a byte.
_CONNECT_S, _READ_S = 10.0, 30.0
_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 307, 308)
_FAILURES = (408, 500, 502, 503, 504)  # after which the same request may succeed
_SECONDARY_LIMIT_S = 60.0
_LONGEST_PAUSE_S = 60.0
_LONGEST_MESSAGE = 300
_SAY_EVERY_S = 10.0  # While a file is fetched
_ADVICE = {
    401: "the token is wrong or has expired; set GITHUB_TOKEN to one that holds",
    403: "it does not let this token {what}; give the workflow's job `permissions: {needs}`, or take another token",
    410: "it no longer has that, which has expired; give a newer commit",
    404: "it cannot {what}: there is no such thing, or the token may not see it; check the repository, the number and "
    "that the job has `permissions: {needs}`",
}
_OTHER_ADVICE = "so it did not {what}; check $GITHUB_API_URL and GitHub's status page"
# The API version is GitHub's, see docs.github.com/rest/about-the-rest-api/api-versions.
_HEADERS = {
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
    "User-Agent": f"iree-harness/{__version__}",
}
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_TOKEN = re.compile(r"[\x21-\x7e]+")
# Characters that GitHub allows in names of owners and repositories.
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/(?!\.{1,2}$)[A-Za-z0-9._-]+")


def token_of(environment: Mapping[str, str]) -> str | None:
    """The token in GITHUB_TOKEN; None where there is none."""
    token = environment.get("GITHUB_TOKEN", "").strip()
    if token and not _TOKEN.fullmatch(token):
        raise UsageError("GITHUB_TOKEN: holds spaces or characters that no token has; set it to the token alone")
    return token or None


def repository_named(text: str | None, option: str = "--repo") -> str:
    """The name of a repository, `owner/name`."""
    if text is None:
        raise UsageError("which repository is meant has to be said: give --repo owner/name")
    if not _REPOSITORY.fullmatch(text):
        raise UsageError(f"{option} {text[:100]!r}: is no repository of GitHub; write it as owner/name")
    return text


def api_address(url: str, option: str = "--api-url") -> str:
    """The address of an API without a slash at its end."""
    shown = one_line(url)[:200]
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.username or parts.query or parts.fragment or one_line(url) != url:
        raise UsageError(f"{option} {shown!r}: is no address of an API; it is {API} for github.com")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOCAL):
        raise UsageError(f"{option} {shown!r}: is not https, so a token would be readable on its way; use https")
    return url.rstrip("/")


def server_of(api_url: str) -> str:
    """Where people see what an API serves: github.com, or the host of a GitHub Enterprise Server."""
    parts = urlsplit(api_url)
    return "https://github.com" if parts.hostname == "api.github.com" else f"{parts.scheme}://{parts.netloc}"


@dataclass(frozen=True, kw_only=True)
class Purpose:
    """Why a request is sent, for messages."""

    what: str  # `read the comments of #12`, after `asked to`
    needs: str  # The permission of a workflow's job that allows it


def _message(answer: requests.Response) -> str:
    """What GitHub says is wrong, on one short line; "" where it says nothing."""
    try:
        document = json.loads(answer.content)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(document, dict):
        return ""
    texts, errors = [document.get("message")], document.get("errors")
    if isinstance(errors, list):
        texts += [error.get("message") if isinstance(error, dict) else error for error in errors]
    return "; ".join(one_line(text) for text in texts if isinstance(text, str) and text)[:_LONGEST_MESSAGE]


def _limit_s(answer: requests.Response, unix_s: float, attempt: int) -> float | None:
    """Seconds until a rate limit allows the request again; None where it is refused for another reason."""
    after, reset = (answer.headers.get(name, "")[:12] for name in ("retry-after", "x-ratelimit-reset"))
    is_used_up = answer.headers.get("x-ratelimit-remaining") == "0"
    is_limited = is_used_up or after or "rate limit" in _message(answer).lower()
    if not (answer.status_code == 429 or (answer.status_code == 403 and is_limited)):
        return None
    if after.isdecimal():
        return max(float(after), 1.0)
    if is_used_up and reset.isdecimal():
        return max(float(reset) - unix_s + 1, 1.0)  # clocks differ by a little
    return float(_SECONDARY_LIMIT_S * 2 ** min(attempt, 10))


class Client:
    """One API, one token; requests go one after the other, as GitHub asks for."""

    def __init__(self, api_url: str, token: str | None, *, patience_s: float, say: Callable[[str], None]) -> None:
        self.host = urlsplit(api_url).netloc
        self.say = say
        self._api_url = api_url
        self._token = token
        self._patience_s = patience_s
        self._waited_s = 0.0
        import requests  # which takes a while

        self._session = requests.Session()
        self._session.headers.update(_HEADERS)
        self._session.auth = self._sign

    def get(self, path: str, purpose: Purpose) -> Any:
        """Read one document."""
        return self._document(self._ask("GET", path, purpose))

    def pages(self, path: str, purpose: Purpose, params: Mapping[str, str], key: str = "") -> Iterator[Any]:
        """The items of a list, over all its pages; `key`: what the list is called in each."""
        query: Mapping[str, str] | None = {**params, "per_page": "100"}
        url = path
        while url:
            answer = self._ask("GET", url, purpose, params=query)
            document = self._document(answer)
            items = document.get(key) if key and isinstance(document, dict) else document
            if not isinstance(items, list):
                raise self._error(f"gave no list when asked to {purpose.what}; check $GITHUB_API_URL")
            yield from items
            url, query = answer.links.get("next", {}).get("url", ""), None

    def send(self, method: str, path: str, purpose: Purpose, document: Any, *, repeatable: bool = True) -> Any:
        """Create or change something."""
        return self._document(self._ask(method, path, purpose, document=document, repeatable=repeatable))

    def download(self, path: str, purpose: Purpose, file: Path, limit_bytes: int) -> None:
        """Write the file that the API leads to: it lies on another host, which gets neither the token nor our name."""
        import requests

        url = self._ask("GET", path, purpose, leads_away=True).headers.get("location", "")
        if urlsplit(url).scheme not in ("https", urlsplit(self._api_url).scheme):
            raise self._error(f"gave no address over https when asked to {purpose.what}; check $GITHUB_API_URL")
        done, said_s, what = 0, time.monotonic(), f"leads to {urlsplit(url).hostname} when asked to {purpose.what}"
        # Without an `auth`, requests looks into netrc files.
        how: dict[str, Any] = {"auth": lambda request: request, "stream": True, "allow_redirects": False}
        try:
            with requests.get(url, timeout=(_CONNECT_S, _READ_S), **how) as answer, file.open("wb") as out:
                if answer.status_code != 200:
                    raise self._error(f"{what}, which answers {answer.status_code}; try again later")
                for chunk in answer.iter_content(1 << 20):
                    done += out.write(chunk)
                    if done > limit_bytes:
                        raise self._error(f"{what}, which is more than {limit_bytes / 1e6:,.0f} MB and is not fetched")
                    if time.monotonic() - said_s > _SAY_EVERY_S:
                        said_s = time.monotonic()
                        self.say(f"  {done / 1e6:,.0f} MB so far")
        except requests.RequestException:
            raise self._error(f"{what}, which gives no whole answer; try again later") from None

    def pause(self, error: GitHubError, attempt: int) -> None:
        """Wait before another attempt, longer after each."""
        self._wait(min(2.0 ** min(attempt, 10), _LONGEST_PAUSE_S), str(error).partition(";")[0], error)

    def _ask(
        self,
        method: str,
        path: str,
        purpose: Purpose,
        *,
        params: Mapping[str, str] | None = None,
        document: Any = None,
        repeatable: bool = True,
        leads_away: bool = False,
    ) -> requests.Response:
        """The answer to a request that succeeds, at once or after some patience."""
        for attempt in itertools.count():
            began = time.monotonic()
            answer: requests.Response | None = None
            try:
                answer = self._through_redirects(method, path, params, document, leads_away=leads_away)
                failure = f"answered {answer.status_code}"
            except OSError:  # it is not known whether it was carried out
                failure = "could not be reached, or gave no whole answer in time"
            if answer is not None and (200 <= answer.status_code < 300 or (leads_away and answer.status_code == 302)):
                return answer
            limit_s = None if answer is None else _limit_s(answer, time.time(), attempt)
            if limit_s is not None:
                until = time.strftime("%H:%M UTC", time.gmtime(time.time() + limit_s))
                too_long = self._error(
                    f"limits how often it may be asked{{detail}} until {until}, longer than is waited; try again then",
                    answer,
                )
                self._wait(limit_s, f"{self.host} limits how often it may be asked", too_long)
            elif answer is not None and answer.status_code not in _FAILURES:
                advice = _ADVICE.get(answer.status_code, _OTHER_ADVICE).format(**vars(purpose))
                raise self._error(f"answers {answer.status_code}{{detail}}: {advice}", answer)
            else:
                self._waited_s += time.monotonic() - began
                wrong = f"{failure} when asked to {purpose.what}; try again later"
                later = self._error(wrong, answer, uncertain=True)
                if not repeatable:
                    raise later
                self.pause(later, attempt)
        raise AssertionError("counting does not end")

    def _wait(self, seconds: float, why: str, otherwise: GitHubError) -> None:
        if self._waited_s + seconds > self._patience_s:
            raise otherwise
        self.say(f"{why}; again in {seconds:.0f} s (waited {self._waited_s:.0f} of {self._patience_s:.0f} s)")
        time.sleep(seconds)
        self._waited_s += seconds

    def _document(self, answer: requests.Response) -> Any:
        if not answer.content:
            return None
        try:
            return json.loads(answer.content)
        except (ValueError, RecursionError):
            wrong = (
                "answers something that is not JSON; check $GITHUB_API_URL, it is https://api.github.com for github.com"
            )
            raise self._error(wrong, answer, uncertain=True) from None

    def _error(self, said: str, answer: requests.Response | None = None, *, uncertain: bool = False) -> GitHubError:
        """An error that does not show the token, whatever a server says; `{detail}` is what the answer says."""
        message = "" if answer is None else _message(answer)
        sentence = f"{self.host} {said.replace('{detail}', f' ({message})' if message else '')}"
        hidden = sentence.replace(self._token, "***") if self._token else sentence
        return GitHubError(hidden, status=0 if answer is None else answer.status_code, uncertain=uncertain)

    def _through_redirects(
        self, method: str, path: str, params: Mapping[str, str] | None, document: Any, *, leads_away: bool
    ) -> requests.Response:
        """The answer of the API's own host: the token, and what is posted, go to no other.

        With `leads_away` it is the one that says where a file lies (302); what was renamed is followed all the same.
        """
        url, timeout = path if "://" in path else f"{self._api_url}/{path}", (_CONNECT_S, _READ_S)
        for _ in range(_MOST_REDIRECTS + 1):
            if urlsplit(url)[:2] != urlsplit(self._api_url)[:2]:
                raise self._error(
                    "sends the request on to another host, to which nothing is sent; check $GITHUB_API_URL"
                )
            answer = self._session.request(
                method, url, params=params, json=document, timeout=timeout, allow_redirects=False
            )
            target = answer.headers.get("location", "")
            if answer.status_code not in _REDIRECTS or not target or (leads_away and answer.status_code == 302):
                return answer
            url, params = urljoin(url, target), None
        raise self._error("sends requests around in a circle; check $GITHUB_API_URL and the repository")

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Always there: without an `auth`, requests looks into netrc files."""
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request
