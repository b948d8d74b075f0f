"""How long and how often a host is waited for, before others do its work: the same for a run and for a comparison."""

from __future__ import annotations

import time

# Within this time a host that has gone may come back and go on with what it has begun.
RETURN_S = 60.0
# How often a worker may end over one piece of work before that fails.
MOST_DEATHS = 3
# Calls that a step of a group, or a generation of a row, makes of a case at most, each with a limit of its own: see
# harness.measure.generation, harness.verify.cases and harness.stages.check. And what it takes beside them.
CALLS, BESIDE_CALLS_S = 20, 600.0


def is_over(gone_since: float) -> bool:
    """Whether a host has been away for too long."""
    return time.monotonic() - gone_since > RETURN_S


def why_lost(host: str) -> str:
    """What is said of a host that is no longer waited for."""
    return f"{host} has gone and did not come back within {RETURN_S:.0f} s"


def awaited(gone: str, what: str) -> str:
    """What is said of a host that is waited for."""
    return f"{gone}; its {what} for it for {RETURN_S:.0f} s"


def limit_s(call_timeout_s: float, cases: int = 1, beside_s: float = 0.0) -> float:
    """Within how many seconds a piece of work surely ends: the sum of its processes' limits."""
    return CALLS * call_timeout_s * cases + beside_s + BESIDE_CALLS_S
