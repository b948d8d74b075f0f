"""Own time: what a turn took by the clock, less the time for which its thread could have run and had no core.

On a busy machine most of what makes equal turns differ is that other processes had the core. The kernel says how much
that was. It says so of threads, so own time exists where a device computes on the thread that calls. There it stands in
for wall time wherever two turns are compared, by this rule:

- A turn during which the thread never gave its core away (no voluntary context switch) was on the core or was kept from
  it, nothing else: its own time is the thread's CPU time.
- A turn during which it did give its core away slept, or waited for a file, a lock, a page or a device. That is part of
  what its caller waits for, and stays: its own time is wall time less the time for which the thread was ready to run
  and had no core (the second figure of Linux's /proc/thread-self/schedstat); without that figure it has none.
- A turn has no own time where the thread is not all that matters: other threads of the process computed meanwhile (for
  which it may have made room), a container's quota stopped it (which it brings upon itself), or the clocks contradict
  each other.

Two turns are compared by own time where both have one, else both by wall time. The choice treats both alike, so equal
programs stay exchangeable, and the test that docs/statistics.md describes stays exact.
"""

from __future__ import annotations

import math

from harness.records.run import Turn

# Of a turn: by how much the clocks of wall and thread, read one after the other, may contradict each other.
_TOLERANCE = 0.01
# And at least so much, since reading them takes some of it.
_TOLERANCE_NS = 5_000


def own_ns(turn: Turn) -> float:
    """What a turn took without what other processes took from it, in nanoseconds; NaN where that is not known."""
    account = turn.account
    if account is None or not account.on_calling_thread or account.throttled or account.voluntary is None:
        return math.nan
    thread_ns = account.thread_ns
    slack_ns = max(_TOLERANCE * turn.wall_ns, _TOLERANCE_NS)
    if thread_ns is None or not 0 < thread_ns <= turn.wall_ns + slack_ns:
        return math.nan
    if turn.cpu_ns - thread_ns > slack_ns:
        return math.nan
    if account.voluntary == 0:
        return thread_ns
    if account.delayed_ns is None:
        return math.nan
    return max(turn.wall_ns - account.delayed_ns, thread_ns)


def taken_share(turn: Turn) -> float | None:
    """The share of a turn that other processes took: of its wall time, or of the core time its threads asked for.

    Returns:
        None where the system does not tell.
    """
    own = own_ns(turn)
    if math.isfinite(own) and turn.wall_ns > 0:
        return max(0.0, 1 - own / turn.wall_ns)
    account = turn.account
    if account is None or account.delayed_ns is None or turn.cpu_ns + account.delayed_ns <= 0:
        return None
    return account.delayed_ns / (turn.cpu_ns + account.delayed_ns)
