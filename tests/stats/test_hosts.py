"""Samples of several hosts: names mean nothing, differences widen, and a verdict has to hold on each host."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.stats.hosts import locate_on_hosts
from harness.stats.intervals import Location
from harness.stats.pairing import FloatArray
from harness.stats.rule import PAIR, Rule, for_hosts, standing, take_look
from harness.stats.signed_rank import locate

RULE = Rule()
NAMES = "abcdefgh"
SAMPLES = st.lists(
    st.tuples(st.floats(min_value=-1, max_value=1), st.sampled_from(NAMES)), min_size=1, max_size=40
).map(lambda pairs: (np.array([sample for sample, _ in pairs]), [host for _, host in pairs]))
Labelled = tuple[FloatArray, list[str]]


def on_hosts(*shifts: float) -> Labelled:
    """Eight generations of each host, spread alike around a ratio of its own."""
    spread = np.linspace(-0.004, 0.004, 8)
    return np.add.outer(shifts, spread).ravel(), [name for name in NAMES[: len(shifts)] for _ in spread]


def look_at(samples: FloatArray, hosts: list[str]) -> Location:
    return take_look(samples, looks=1, rule=RULE, hosts=hosts)


@given(SAMPLES, st.permutations(NAMES))
def test_what_hosts_are_called_changes_nothing_and_one_host_is_as_none(labelled: Labelled, names: list[str]) -> None:
    samples, hosts = labelled
    assert locate_on_hosts(samples, ["a"] * samples.size, confidence=0.95) == locate(samples, confidence=0.95)
    other = dict(zip(NAMES, names, strict=True))
    there = locate_on_hosts(samples, hosts, confidence=0.9)
    renamed = locate_on_hosts(samples, [other[host] for host in hosts], confidence=0.9)
    mapped = [replace(host, host=other[host.host]) for host in there.hosts]
    there = replace(there, hosts=tuple(sorted(mapped, key=lambda host: host.host)))
    assert renamed == there


@given(SAMPLES, st.lists(st.floats(min_value=-0.5, max_value=0.5), min_size=8, max_size=8))
def test_differences_between_hosts_never_narrow_an_interval_nor_make_a_change(
    labelled: Labelled, offsets: list[float]
) -> None:
    samples, hosts = labelled
    shifted = samples + np.array([offsets[NAMES.index(host)] for host in hosts])
    blind, seeing = (take_look(shifted, looks=2, rule=RULE, hosts=of) for of in ((), hosts))
    assert seeing.low <= blind.low
    assert seeing.high >= blind.high
    assert (seeing.centre, seeing.p) == (blind.centre, blind.p)
    assert seeing.lowest <= seeing.centre <= seeing.highest
    said, without = (standing(look, differs=True, floor=RULE.floor) for look in (seeing, blind))
    assert said in (without, "open")


@given(SAMPLES)
def test_swapping_the_sides_mirrors_it_and_hosts_are_held_against_each_other_as_scipy_does_it(
    labelled: Labelled,
) -> None:
    import scipy.stats  # takes a second

    samples, hosts = labelled
    assume(len(set(hosts)) > 1 and len(set(samples)) > 1)
    forth, back = look_at(samples, hosts), look_at(-samples, hosts)
    assert (-forth.high, -forth.highest, forth.p) == pytest.approx((back.low, back.lowest, back.p))
    parts = [samples[np.array(hosts) == name] for name in set(hosts)]
    assert (forth.p_alike, back.p_alike) == pytest.approx((scipy.stats.kruskal(*parts).pvalue,) * 2)


@pytest.mark.parametrize(
    ("shifts", "expected", "differ"),
    [
        ((0.0, 0.0, 0.0, 0.0), "equal", False),
        ((0.05, 0.05), "higher", False),
        ((0.08, 0.11), "higher", True),  # on both, though not by as much
        ((0.05, 0.0), "open", True),
        ((0.03, 0.03, 0.03, 0.0), "open", True),
        ((0.05, -0.05), "open", True),
        ((0.0, 0.0, 0.0, 0.015), "open", True),  # the mean of all lies within the floor
    ],
)
def test_a_verdict_holds_on_every_host_or_there_is_none(
    shifts: tuple[float, ...], expected: str, *, differ: bool
) -> None:
    look = look_at(*on_hosts(*shifts))
    assert (standing(look, differs=look.p <= RULE.alpha, floor=RULE.floor), look.differ) == (expected, differ)
    assert look.low <= min(shifts)
    assert look.high >= max(shifts)
    assert [host.size for host in look.hosts] == [8] * len(shifts)
    assert [host.centre for host in look.hosts] == pytest.approx(shifts)


def test_hosts_with_one_generation_each_stand_for_themselves() -> None:
    look = look_at(np.array([0.0, 0.02, 0.04]), ["a", "b", "c"])
    assert [host.drawn for host in look.hosts] == pytest.approx([0.0, 0.02, 0.04])


@pytest.mark.parametrize(("hosts", "first"), [(1, 8), (2, 8), (3, 12), (4, 8), (5, 10), (8, 16), (20, 40)])
def test_the_first_look_has_as_many_pairs_of_each_host(hosts: int, first: int) -> None:
    assert for_hosts(RULE, hosts) == replace(RULE, first_look=first)
    assert hosts == 1 or first % (PAIR * hosts) == 0
