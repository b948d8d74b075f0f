"""What the fleet's benchmark says of waiting hosts and of run folders, and the places of its tables."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fleet.audit import audit
from benchmarks.fleet.waits import Event, waits_of
from harness.records.run import Build, Check, Failure, Lost, Placed, Reference, Run
from tests.builders import make_header, make_round

_CASES = ("net/stock@cpu", "net/fast@cpu")


def _event(what: str, began: float, ended: float, host: str = "host-a") -> Event:
    return Event(host=host, what=what, began=began, ended=ended)


COMPILES = [_event("compile", 0, 10), _event("compile", 0, 12), _event("measure", 10, 20)]
LATE = [_event("compile", 0, 10), _event("compile", 10, 12), _event("measure", 16, 20)]


@pytest.mark.parametrize(
    ("events", "hosts", "cores", "ended", "waited"),
    [
        (COMPILES, 1, 2, 25, 0.0),
        # Half of the host up to 10, when the last compile begins; all of it from 12 to 16.
        (LATE, 1, 2, 20, (0.5 * 10 + 4) / 20),
        ([_event("measure", 0, 10)], 2, 1, 10, 0.5),  # one that gets nothing
    ],
)
def test_a_free_core_waits_while_compiles_have_not_begun_and_an_idle_host_after_that(
    events: list[Event], hosts: int, cores: int, ended: float, waited: float
) -> None:
    assert waits_of(events, hosts=hosts, cores=cores, began=0, ended=ended).waited == pytest.approx(waited)


@given(
    st.lists(
        st.tuples(st.sampled_from(["compile", "check", "measure"]), st.floats(0, 50), st.floats(0, 50)), min_size=1
    )
)
def test_waits_are_shares(pieces: list[tuple[str, float, float]]) -> None:
    events = [_event(what, min(one, other), max(one, other)) for what, one, other in pieces]
    waits = waits_of(events, hosts=2, cores=2, began=0, ended=60)
    assert 0 <= waits.waited <= 1
    assert 0 <= waits.after <= 1


def _run() -> Run:
    """A run of two generations with everything once."""
    rounds = tuple(
        replace(make_round(number), host="ash", generation=generation) for generation in (0, 1) for number in (0, 1)
    )
    check = Check(case="", against="", command=(), relative_tolerance=0.0, absolute_tolerance=0.0)
    return Run(
        header=make_header(),
        builds=tuple(Build(case=case, command=(), cache_key="") for case in _CASES),
        checks=tuple(replace(check, case=case) for case in _CASES),
        references=tuple(Reference(case=case, command=()) for case in _CASES),
        rounds=rounds,
        lost=(),
        placed=(Placed(group="net@cpu", host="ash"),),
    )


def test_what_is_missing_twice_or_of_another_host_is_named() -> None:
    run = _run()
    found = audit(run, 2)
    assert (found.generations, found.whole, found.reported, found.lost, found.twice) == (2, 2, 0, (), ())
    assert audit(replace(run, rounds=run.rounds[:2]), 2).lost == ("net@cpu generation 1: is not there",)
    assert audit(replace(run, rounds=run.rounds[1:]), 2).lost == ("net@cpu generation 0: has the rounds [1]",)
    assert audit(replace(run, rounds=(*run.rounds, run.rounds[0])), 2).twice == ("net@cpu generation 0: rounds [0]",)
    elsewhere = replace(run, placed=(*run.placed, Placed(group="net@cpu", host="elm", attempt=1)))
    assert audit(elsewhere, 2).lost[0] == "net@cpu generation 0: is not of elm alone"
    assert audit(elsewhere, 2).moved == 1
    assert audit(replace(run, checks=run.checks[:1]), 2).lost == ("net/fast@cpu: no check",)
    failure = Failure(stage="measure", message="host-a has gone")
    lost = tuple(Lost(case=case, generation=0, failure=failure) for case in _CASES)
    found = audit(replace(run, rounds=(), lost=lost), 2)
    assert (found.reported, found.whole, found.lost) == (2, 0, ())
