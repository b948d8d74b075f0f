"""Which host measures which generation of a row that several of one class measure at once, and what is said of them.

Generations go to the hosts in pairs: 0 and 1 to the first, 2 and 3 to the second, and so on, round and round. So either
side is loaded first equally often on every host, whatever that does to a ratio there, and every look of the rule has
equally many generations of each host (harness.stats.rule.for_hosts). Which host is fast decides nothing: a slow one
makes the row wait, and has as much to say as the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.stats.estimate import ratio_of
from harness.stats.hosts import HostsLocation
from harness.stats.intervals import Location
from harness.stats.rule import PAIR


def by_host(numbers: Sequence[int], hosts: Sequence[str]) -> dict[str, list[int]]:
    """The generations that each host measures, in their order; hosts without any are left out."""
    found: dict[str, list[int]] = {}
    for number in numbers:
        found.setdefault(hosts[number // PAIR % len(hosts)], []).append(number)
    return found


def on_hosts(look: Location) -> str:
    """`, on 4 hosts`, with what they say where they differ; "" of one host."""
    if not isinstance(look, HostsLocation):
        return ""
    return f", on {len(look.hosts)} hosts{f' ({from_to(look)})' if look.differ else ''}"


def from_to(look: HostsLocation) -> str:
    """`from -0.1 % on b to +5.0 % on a`."""
    ends = (choose(look.hosts, key=lambda host: host.centre) for choose in (min, max))
    lowest, highest = (f"{(ratio_of(host.centre) - 1) * 100:+.1f} % on {host.host}" for host in ends)
    return f"from {lowest} to {highest}"
