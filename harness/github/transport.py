"""One request to GitHub's REST API and its answer, bounded in time and size.

The token travels in a header to the API's own host and nowhere else: redirects to another host lose it, netrc files
are not asked, and no message or exception holds it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from harness import __version__
from harness.errors import GitHubError, UsageError
from harness.text import one_line

if TYPE_CHECKING:
    import requests

# Seconds without a connection, and without a byte.
_CONNECT_S, _READ_S = 10.0, 30.0
# Seconds that one answer may take, through all redirects, and its bytes; a page of 100 of the longest comments has some
# 10 MB.
_ANSWER_S = 120.0
_ANSWER_BYTES = 64 * 2**20
_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 307, 308)

# The API version is GitHub's, see docs.github.com/rest/about-the-rest-api/api-versions.
_HEADERS = {
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
    "User-Agent": f"iree-harness/{__version__}",
}
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_TOKEN = re.compile(r"[\x21-\x7e]+")


class NoAnswer(Exception):
    """The request got no answer, or half of one; whether it was carried out is not known."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer of any status.

    Attributes:
        headers: Their names in lower case.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


def token_of(environment: Mapping[str, str]) -> str | None:
    """The token in GITHUB_TOKEN; None where there is none.

    Raises:
        UsageError: It holds what no token holds; the message does not show it.
    """
    token = environment.get("GITHUB_TOKEN", "").strip()
    if token and not _TOKEN.fullmatch(token):
        raise UsageError("GITHUB_TOKEN: holds spaces or characters that no token has; set it to the token alone")
    return token or None


def api_address(url: str) -> str:
    """The address of an API without a slash at its end.

    Raises:
        UsageError: It is none that a token may be sent to.
    """
    shown = one_line(url)[:200]
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise UsageError(f"--api-url {shown!r}: is no address; it is https://api.github.com for github.com") from None
    if not host or parts.username or parts.query or parts.fragment or one_line(url) != url:
        raise UsageError(f"--api-url {shown!r}: is no address of an API; it is https://api.github.com for github.com")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOCAL):
        raise UsageError(f"--api-url {shown!r}: is not https, so a token would be readable on its way; use https")
    return url.rstrip("/")


class Transport:
    """Sends requests to one API; it does not repeat them."""

    def __init__(self, api_url: str, token: str | None) -> None:
        """Open a session.

        Args:
            api_url: As `api_address` gives it.
            token: None: requests are anonymous.
        """
        self.api_url = api_url
        self.host = urlsplit(api_url).netloc
        self._token = token
        self._session: requests.Session | None = None

    def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, document: Any = None
    ) -> Answer:
        """Send one request, through redirects, and read all of its answer.

        Args:
            path: Below the API's address, or a whole address.

        Raises:
            NoAnswer: None came, or it broke off.
            GitHubError: It leads somewhere else, or is larger than any answer of GitHub's.
        """
        done = _Done()
        threading.Thread(
            target=done.of, args=(lambda: self._through(method, path, params, document, done),), daemon=True
        ).start()
        # `_READ_S` bounds the time between two bytes, not how often there is one more: a thread can be left alone.
        if not done.event.wait(_ANSWER_S):
            self._session = None  # the thread has the old one, until its server or this process ends
            done.is_given_up = True
            raise NoAnswer("did not finish its answer in time")
        if done.error is not None:
            raise done.error
        if done.answer is None:
            raise AssertionError("a request ends with an answer or an error")
        return done.answer

    def _through(self, method: str, path: str, params: Mapping[str, str] | None, document: Any, done: _Done) -> Answer:
        """Send a request through redirects."""
        url = path if "://" in path else f"{self.api_url}/{path}"
        for _ in range(_MOST_REDIRECTS + 1):
            if not self._ours(url) and (method != "GET" or not _is_secure(url)):
                raise GitHubError(
                    f"{self.host}: sends the request on to another host, where nothing is posted; give its address "
                    "with --api-url"
                )
            answer = self._one(method, url, params, document, done)
            target = answer.headers.get("location", "")
            if answer.status not in _REDIRECTS or not target:
                return answer
            url, params = urljoin(url, target), None
        raise GitHubError(f"{self.host}: sends requests around in a circle; check --api-url and --repo")

    def hide(self, text: str) -> str:
        """The text without the token, if anything ever put it there."""
        return text.replace(self._token, "***") if self._token else text

    def _one(self, method: str, url: str, params: Mapping[str, str] | None, document: Any, done: _Done) -> Answer:
        import requests

        try:
            with self._opened().request(
                method,
                url,
                params=params,
                json=document,
                auth=self._sign if self._ours(url) else _leave,
                timeout=(_CONNECT_S, _READ_S),
                allow_redirects=False,
                stream=True,
            ) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                return Answer(status=response.status_code, headers=headers, body=self._read(response, done))
        except requests.exceptions.SSLError:
            raise GitHubError(
                f"{self.host}: its certificate is not trusted here; check the address, or name the authority's file "
                "in REQUESTS_CA_BUNDLE"
            ) from None
        except requests.Timeout:
            raise NoAnswer("did not answer in time") from None
        except (requests.RequestException, OSError) as error:
            said = "broke off its answer" if isinstance(error, requests.exceptions.ChunkedEncodingError) else ""
            raise NoAnswer(said or "could not be reached, or ended the connection") from None

    def _read(self, response: requests.Response, done: _Done) -> bytes:
        parts, size = [], 0
        for chunk in response.iter_content(65_536):
            parts.append(chunk)
            size += len(chunk)
            if size > _ANSWER_BYTES:
                raise GitHubError(f"{self.host}: answers with more than {_ANSWER_BYTES >> 20} MiB; check --api-url")
            if done.is_given_up:
                raise NoAnswer("did not finish its answer in time")
        return b"".join(parts)

    def _opened(self) -> requests.Session:
        if self._session is None:
            import requests

            self._session = requests.Session()
            self._session.headers.update(_HEADERS)
        return self._session

    def _ours(self, url: str) -> bool:
        there, here = urlsplit(url), urlsplit(self.api_url)
        return (there.scheme, there.netloc) == (here.scheme, here.netloc)

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class _Done:
    """What becomes of a request in a thread of its own."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.answer: Answer | None = None
        self.error: BaseException | None = None
        self.is_given_up = False

    def of(self, request: Callable[[], Answer]) -> None:
        """Carry it out; an error is for the thread that waits."""
        try:
            self.answer = request()
        except BaseException as error:
            self.error = error
        finally:
            self.event.set()


def _is_secure(url: str) -> bool:
    return urlsplit(url).scheme == "https"


def _leave(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Instead of no `auth`, for which requests would look into netrc files."""
    return request
