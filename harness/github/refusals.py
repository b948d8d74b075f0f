"""What an answer of GitHub's means: try again and when, or a sentence that says what to do.

The waiting follows GitHub's own advice, docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api:
`Retry-After` where there is one, else the end of an exhausted rate limit, else a minute or more.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from harness.errors import GitHubError
from harness.github.transport import Answer
from harness.text import one_line

_SECONDARY_WAIT_S = 60.0
_PASSING = (408, 500, 502, 503, 504)
_LONGEST_MESSAGE = 300


@dataclass(frozen=True, kw_only=True)
class Purpose:
    """Why a request is sent, for messages.

    Attributes:
        what: `read the comments of #12`, after `refuses to let this token`.
        needs: The permission of a workflow's job that allows it.
    """

    what: str
    needs: str


def is_rate_limit(answer: Answer) -> bool:
    """Whether the request is refused for now only."""
    if answer.status == 429:
        return True
    if answer.status != 403:
        return False
    return (
        "retry-after" in answer.headers
        or answer.headers.get("x-ratelimit-remaining") == "0"
        or "rate limit" in message_of(answer).lower()
    )


def is_passing(answer: Answer) -> bool:
    """Whether the server failed, so that the same request may succeed later."""
    return answer.status in _PASSING


def limit_wait_s(answer: Answer, unix_s: float, attempt: int) -> float:
    """Seconds until a rate limit allows the request again.

    Args:
        unix_s: Now.
        attempt: How often it was refused before.
    """
    after = _number(answer.headers.get("retry-after"))
    if after is not None:
        return max(after, 1.0)
    reset = _number(answer.headers.get("x-ratelimit-reset"))
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset is not None:
        return max(reset - unix_s + 1, 1.0)  # clocks differ by a little
    return float(_SECONDARY_WAIT_S * 2 ** min(attempt, 10))


def refusal(answer: Answer, purpose: Purpose, host: str) -> GitHubError:
    """The sentence for an answer that no waiting mends."""
    said = f"{host} answers {answer.status}" + (f" ({text})" if (text := message_of(answer)) else "")
    may = f"let this token {purpose.what}"
    advice = {
        401: "the token is wrong or has expired; set GITHUB_TOKEN to one that holds",
        403: f"it does not {may}; give the workflow's job `permissions: {purpose.needs}`, or take another token",
        404: f"it cannot {purpose.what}: there is no such thing, or the token may not see it; check --repo, the number "
        f"and that the job has `permissions: {purpose.needs}`",
        410: f"it cannot {purpose.what}: that is gone or switched off; switch it on in the repository's settings",
        422: f"it cannot {purpose.what} as it was sent; check the arguments against what it says",
    }
    what = advice.get(answer.status, f"so it did not {purpose.what}; check --api-url and GitHub's status page")
    return GitHubError(f"{said}: {what}", status=answer.status)


def message_of(answer: Answer) -> str:
    """What the API says is wrong, on one line; "" where it says nothing."""
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(document, dict):
        return ""
    texts = [document.get("message")]
    errors = document.get("errors")
    if isinstance(errors, list):
        texts += [error.get("message") if isinstance(error, dict) else error for error in errors]
    return "; ".join(one_line(text) for text in texts if isinstance(text, str) and text)[:_LONGEST_MESSAGE]


def _number(text: str | None) -> float | None:
    """A header's number of seconds; None where it is none."""
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
