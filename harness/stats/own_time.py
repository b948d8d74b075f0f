"""Own time: what a turn took by the clock, less the time for which its thread could have run and had no core.

On a busy machine most of what makes equal turns differ is that other processes had the core. The kernel says how much
that was. It says so of threads, so own time exists where a device computes on the thread that calls. There it stands in
for wall time wherever two turns are compared, by this rule:

- Where the thread never gave its core away in either turn (no voluntary context switch), it was on the core or was
  kept from it, nothing else: both go by the thread's CPU time (`on_core_ns`).
- Where it did in one of them, it slept there, or waited for a file, a lock, a page or a device. That is part of what
  its caller waits for, and stays: both turns go by wall time less the time for which the thread was ready to run and
  had no core, the second figure of Linux's /proc/thread-self/schedstat (`undelayed_ns`).
- Both go by wall time where one has neither: where other threads of the process computed meanwhile (for which the
  thread may have made room), a container's quota stopped it (which it brings upon itself), the clocks contradict each
  other, or the kernel does not tell.

Two turns never go by two clocks, and the choice treats both alike. So equal programs stay exchangeable, and the test
that docs/statistics.md describes stays exact.
"""

from __future__ import annotations

import math

from harness.records.run import Account, Turn

# By how much two clocks that are read one after the other may contradict each other: a share of what the thread did.
_TOLERANCE = 0.01
# And at least so much, since reading them takes some of it.
_TOLERANCE_NS = 5_000


def on_core_ns(turn: Turn) -> float:
    """CPU time of a turn that never gave its core away, in nanoseconds; NaN of any other, or where it is not known."""
    account = _of_one_thread(turn)
    return math.nan if account is None or account.thread_ns is None or account.voluntary else account.thread_ns


def undelayed_ns(turn: Turn) -> float:
    """Wall time of a turn without the time for which it was ready and had no core; NaN where that is not known."""
    account = _of_one_thread(turn)
    if account is None or account.thread_ns is None or account.delayed_ns is None:
        return math.nan
    return max(turn.wall_ns - account.delayed_ns, account.thread_ns)


def own_ns(turn: Turn) -> float:
    """What a turn took without what other processes took from it, in nanoseconds; NaN where that is not known."""
    on_core = on_core_ns(turn)
    return on_core if math.isfinite(on_core) else undelayed_ns(turn)


def taken_share(turn: Turn) -> float | None:
    """The share of a turn that other processes took: of its wall time, or of the core time its threads asked for.

    None where the system does not tell, or a quota stopped the turn. Threads of a device take 3 to 7 % from each other.
    """
    account = turn.account
    if account is None or account.throttled:
        return None
    own = own_ns(turn)
    if math.isfinite(own) and turn.wall_ns > 0:
        return max(0.0, 1 - own / turn.wall_ns)
    if account.on_calling_thread:  # what its other threads waited for is not known
        return None
    if account.delayed_ns is None or turn.cpu_ns + account.delayed_ns <= 0:
        return None
    return max(0.0, account.delayed_ns / (turn.cpu_ns + account.delayed_ns))


def _of_one_thread(turn: Turn) -> Account | None:
    """The account of a turn in which nothing but the calling thread mattered, as far as the kernel can say that."""
    account = turn.account
    if account is None or not account.on_calling_thread or account.throttled or account.voluntary is None:
        return None
    if account.thread_ns is None or account.thread_ns <= 0:
        return None
    slack_ns = max(_TOLERANCE * account.thread_ns, _TOLERANCE_NS)
    if account.thread_ns > turn.wall_ns + slack_ns or turn.cpu_ns - account.thread_ns > slack_ns:
        return None
    return account
