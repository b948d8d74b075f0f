"""GitHub's REST API with patience: what fails for a while is asked again, what is refused is said in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from harness.errors import GitHubError
from harness.github.refusals import Purpose, is_passing, is_rate_limit, limit_wait_s, message_of, refusal
from harness.github.transport import Answer, NoAnswer, Transport
from harness.github.values import Clock

_LONGEST_PAUSE_S = 60.0
_MOST_PAGES = 1_000
_LONGEST_PATIENCE_S = 1_000_000  # that --patience takes


class Client:
    """One API, one token; requests go one after the other, as GitHub asks for."""

    def __init__(
        self, transport: Transport, *, patience_s: float, say: Callable[[str], None], clock: Clock | None = None
    ) -> None:
        """Begin.

        Args:
            patience_s: Seconds that all requests together may be waited for and repeated.
            say: Where progress goes, a sentence each.
        """
        self.host = transport.host
        self._transport = transport
        self._patience_s = patience_s
        self._say = say
        self._clock = clock or Clock()
        self._waited_s = 0.0

    def get(self, path: str, purpose: Purpose, params: Mapping[str, str] | None = None) -> Any:
        """Read one document.

        Raises:
            GitHubError: It is refused, or did not come within the patience.
        """
        return self._document(self._patiently("GET", path, purpose, params=params))

    def pages(self, path: str, purpose: Purpose, params: Mapping[str, str]) -> Iterator[Any]:
        """The items of a list, over all its pages.

        Raises:
            GitHubError: As `get`; or it is no list, or one that does not end.
        """
        url, seen = path, set()
        query: Mapping[str, str] | None = {**params, "per_page": "100"}
        for _ in range(_MOST_PAGES):
            seen.add(url)
            answer = self._patiently("GET", url, purpose, params=query)
            items = self._document(answer)
            if not isinstance(items, list):
                raise GitHubError(f"{self.host}: gave no list when asked to {purpose.what}; check --api-url")
            yield from items
            url, query = next_page(answer.headers.get("link", "")), None
            if not url:
                return
            if url in seen:
                break
        # Half a list is none: what is not seen in it would be created a second time.
        raise GitHubError(
            f"{self.host}: gives a list without end when asked to {purpose.what}; check --api-url and GitHub's status "
            "page"
        )

    def send(self, method: str, path: str, purpose: Purpose, document: Any, *, repeatable: bool = True) -> Any:
        """Create or change something.

        Args:
            repeatable: Whether doing it twice is the same as once; else a failure that leaves open whether it was done
                is an error at once, whose `uncertain` is true.

        Raises:
            GitHubError: It is refused, or could not be done within the patience.
        """
        return self._document(self._patiently(method, path, purpose, document=document, repeatable=repeatable))

    def pause(self, error: GitHubError, attempt: int) -> None:
        """Wait before something is looked at again after an error.

        Raises:
            GitHubError: That error, where patience has run out.
        """
        self._wait(min(2.0**attempt, _LONGEST_PAUSE_S), str(error).partition(";")[0], error)

    def _patiently(
        self,
        method: str,
        path: str,
        purpose: Purpose,
        *,
        params: Mapping[str, str] | None = None,
        document: Any = None,
        repeatable: bool = True,
    ) -> Answer:
        attempt = 0
        while True:
            began = self._clock.monotonic_s()
            answer, why = self._asked(method, path, params, document)
            if answer is not None and is_rate_limit(answer):
                wait_s = limit_wait_s(answer, self._clock.unix_s(), attempt)
                self._wait(wait_s, f"{self.host} limits how often it may be asked", self._limited(answer, wait_s))
            elif answer is None or is_passing(answer):
                self._waited_s += self._clock.monotonic_s() - began
                failure = self._failed(answer, why, purpose)
                if not repeatable:
                    raise failure
                self._wait(min(2.0**attempt, _LONGEST_PAUSE_S), str(failure).partition(";")[0], failure)
            elif 200 <= answer.status < 300:
                return answer
            else:
                raise self._safe(refusal(answer, purpose, self.host))
            attempt += 1

    def _asked(
        self, method: str, path: str, params: Mapping[str, str] | None, document: Any
    ) -> tuple[Answer | None, str]:
        """The answer, or None and why there is none."""
        try:
            return self._transport.request(method, path, params=params, document=document), ""
        except NoAnswer as error:
            return None, str(error)

    def _wait(self, seconds: float, why: str, otherwise: GitHubError) -> None:
        if self._waited_s + seconds > self._patience_s:
            raise self._safe(otherwise)
        self._say(
            f"{self._transport.hide(why)}; again in {seconds:.0f} s (waited {self._waited_s:.0f} of "
            f"{self._patience_s:.0f} s)"
        )
        self._clock.sleep(seconds)
        self._waited_s += seconds

    def _limited(self, answer: Answer, wait_s: float) -> GitHubError:
        """For a limit that lasts longer than patience does."""
        said = f" ({text})" if (text := message_of(answer)) else ""
        what = f"{self.host} limits how often it may be asked{said}"
        patience_s = self._waited_s + wait_s
        if patience_s >= _LONGEST_PATIENCE_S:
            days = _LONGEST_PATIENCE_S // 86_400
            return GitHubError(f"{what} for more than {days} days; check --api-url", status=answer.status)
        end = datetime.fromtimestamp(self._clock.unix_s() + wait_s, tz=timezone.utc)
        return GitHubError(
            f"{what} until {end:%H:%M} UTC, for {wait_s:.0f} s, longer than is waited; post again then, or give "
            f"--patience {patience_s:.0f}",
            status=answer.status,
        )

    def _failed(self, answer: Answer | None, why: str, purpose: Purpose) -> GitHubError:
        said = f"answered {answer.status}" if answer is not None else why
        return self._safe(
            GitHubError(
                f"{self.host} {said} when asked to {purpose.what}; post again later, or give a longer --patience",
                status=answer.status if answer is not None else 0,
                uncertain=True,
            )
        )

    def _safe(self, error: GitHubError) -> GitHubError:
        text = self._transport.hide(str(error))
        return GitHubError(text, status=error.status, uncertain=error.uncertain)

    def _document(self, answer: Answer) -> Any:
        if not answer.body:
            return None
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise GitHubError(
                f"{self.host}: answers something that is not JSON; check --api-url, it is https://api.github.com for "
                "github.com",
                status=answer.status,
                uncertain=True,
            ) from None


def next_page(link: str) -> str:
    """The address of the next page in a `Link` header (RFC 8288); "" on the last."""
    for part in link.split(","):
        address, *parameters = part.split(";")
        if any(one.strip().lower() in ('rel="next"', "rel=next") for one in parameters):
            return address.strip().strip("<>")
    return ""
