"""What the fleet's benchmark finds in run folders: what is missing, twice, or of another host."""

from dataclasses import replace

from benchmarks.fleet.audit import audit
from harness.records.run import Build, Check, Failure, Lost, Placed, Reference, Run
from tests.builders import make_header, make_round

_CASES = ("net/stock@cpu", "net/fast@cpu")


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
