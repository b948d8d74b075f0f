"""Rows of a comparison on scripted hosts: which measures what, and what happens when hosts go."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.compare.engine import Outcome, StoppedEarly, decide
from harness.compare.remeasure import _going_on
from harness.compare.samplers import MeasurementPolicy
from harness.errors import PlaceGone
from harness.fleet import dispatch
from harness.fleet.bench import FleetRows, need_of_row
from harness.fleet.tasks import Answer, RowTask
from harness.records.run import Failure, Placed
from harness.store.work_directory import RECORD_FILE, Begun, ComparisonDirectory
from tests.builders import Notes, a_device, a_suite
from tests.compare.runs import TOOLCHAIN, a_build, a_case, a_side
from tests.compare.scripted import EQUAL, RULE, SLOWER, a_generation
from tests.fleet.scripted import Act, Died, ScriptedFleet, dies, pack_nothing, when

_BEGUN = Begun(created="", machine="", options={}, command=())
_CREATED = datetime(2026, 1, 1, tzinfo=timezone.utc)
_MODELS = ("a", "b", "c", "d")


class RowFleet(ScriptedFleet):
    """Hosts on which each row has these ratios, over and over."""

    def __init__(self, *names: str, ratios: Mapping[str, Sequence[float]] | None = None, act: Act = lambda *_: None):
        tools: Any = TOOLCHAIN
        super().__init__(tools, dict.fromkeys(names, "EPYC"), act)
        self.notes = Notes()
        self._ratios = ratios or {}
        self.ratios = self._measured

    def _measured(self, task: RowTask, number: int, *_: object) -> Any:
        steps = self._ratios.get(task.name, EQUAL)
        return a_generation(steps[number % len(steps)]), (), {"base": (1, 1.0)}

    @property
    def measured(self) -> list[tuple[str, str, int, bool]]:
        """What hosts were asked: row, host, generation, and whether the row was known there."""
        return [
            (task.name, host, number, bool(known))
            for (host, _), (task, number, known, _) in zip(self.asked, self.taken, strict=True)
        ]


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowTask, "packed", pack_nothing)
    monkeypatch.setattr(FleetRows, "_loaded_suite", lambda _: a_suite(devices=(a_device(),)))


def a_directory(results: Path) -> ComparisonDirectory:
    return ComparisonDirectory.create(results, "small", _CREATED, _BEGUN)


def works_of(models: Sequence[str], **changes: Any) -> list[Any]:
    """A row of each model."""
    cases = [a_case(model=model, **changes) for model in models]
    modules = [SimpleNamespace(case=case, build=a_build(case)) for case in cases]
    return [
        SimpleNamespace(name=case.model, pair=SimpleNamespace(case=case, both=(case, case)), base=module, head=module)
        for case, module in zip(cases, modules, strict=True)
    ]


def a_place(
    fleet: RowFleet, directory: ComparisonDirectory, works: Sequence[Any], checked: Mapping[str, str] | None = None
) -> FleetRows:
    """Where the rows of two runs of the same cases are measured, whose groups were checked on some hosts."""
    side = a_side(*(work.pair.case for work in works))
    placed = tuple(Placed(group=group, host=host) for group, host in (checked or {}).items())
    side = replace(side, run=replace(side.run, placed=placed))
    plan: Any = SimpleNamespace(base=side, head=side, options=SimpleNamespace())
    return FleetRows(fleet, plan, directory, fleet.notes)


def measure(
    fleet: RowFleet, directory: ComparisonDirectory, *, models: Sequence[str] = _MODELS, stop_at: int = -1
) -> dict[str, Outcome]:
    """Decide a row of each model; the user stops it after so many generations."""
    works = works_of(models)
    heard = [0]

    def on_sample(*_: object) -> None:
        heard[0] += 1
        if heard[0] == stop_at:
            raise KeyboardInterrupt

    with directory, fleet:
        place = a_place(fleet, directory, works)
        assert place.missing(works) == {}
        policy = MeasurementPolicy(rule=RULE, budget_s=16, seed=0, call_limit_s=1.0)
        rows = [(work, place.latencies(work, policy, lambda _: None)) for work in works]
        tasks = [_going_on(task, "latency", work, directory) for work, task in rows]
        with place.alone(wait=True) as together:
            outcomes = list(decide(tasks, on_sample, together=together))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rows of")]
    return {outcome.name: outcome for outcome in outcomes}


def hosts_of(outcome: Outcome) -> Counter[str]:
    return Counter(generation.host for generation in outcome.generations)


def test_each_row_is_measured_on_one_host_and_comes_to_what_it_comes_to_on_one_machine(tmp_path: Path) -> None:
    fleet = RowFleet("x", "y", ratios={"b": SLOWER, "d": SLOWER})
    found = measure(fleet, a_directory(tmp_path))
    assert {name: outcome.decision for name, outcome in found.items()} == {
        **dict.fromkeys("ac", "unchanged"),
        **dict.fromkeys("bd", "regressed"),
    }
    assert sorted(len(hosts_of(outcome)) for outcome in found.values()) == [1] * 4
    assert {host for outcome in found.values() for host in hosts_of(outcome)} == {"x", "y"}
    for name, outcome in found.items():
        asked = [(number, known) for row, _, number, known in fleet.measured if row == name]
        assert asked == [(number, number > 0) for number in range(len(outcome.generations))]


def test_what_a_lost_host_has_not_measured_the_others_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "RETURN_S", 0.0)

    def act(fleet: ScriptedFleet, host: str, words: str) -> Answer | None:
        return dies("y", comes_back_as="Xeon")(fleet) if host == "y" and int(words.split()[-1]) >= 3 else None

    found = measure(RowFleet("x", "y", "z", act=act), a_directory(tmp_path))
    for outcome in found.values():
        assert outcome.decision == "unchanged"
        assert hosts_of(outcome)["y"] <= 3
    kept = (next(tmp_path.iterdir()) / RECORD_FILE).read_text().count('"generation/')
    assert kept == sum(len(outcome.generations) for outcome in found.values())


_CRASH = Answer(value=Failure(stage="measure", message="the head's module: it crashed"))


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        (dies("x", comes_back_as="EPYC"), "x: its worker ended 3 times while it did this"),
        (lambda _: Answer(trouble="it is tired"), "x: it is tired; no other host of the fleet can do it"),
        (lambda _: _CRASH, "x: the head's module: it crashed"),
    ],
)
def test_a_row_that_cannot_be_measured_says_why(tmp_path: Path, does: Any, reason: str) -> None:
    fleet = RowFleet("x", act=when("measure a ", "x", does))
    (outcome,) = measure(fleet, a_directory(tmp_path), models="a").values()
    assert (outcome.decision, outcome.reason) == ("failed", reason)


def test_one_that_goes_on_repeats_nothing_and_says_which_host_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = measure(RowFleet("x", "y"), a_directory(tmp_path / "whole"))
    directories = [a_directory(tmp_path / name) for name in ("first", "second")]
    for directory in directories:
        with pytest.raises(StoppedEarly):
            measure(RowFleet("x", "y"), directory, stop_at=9)
    first, second = directories
    kept = (first.path / RECORD_FILE).read_text().count('"generation/')
    later = RowFleet("x", "y", "z")
    assert measure(later, ComparisonDirectory.resume(first.path)) == whole
    assert kept >= 9
    assert len(later.measured) == sum(len(outcome.generations) for outcome in whole.values()) - kept
    assert {host for _, host, *_ in later.measured} == {"x", "y"}
    monkeypatch.setattr(dispatch, "RETURN_S", 0.0)
    later = RowFleet("x", "z")
    found = measure(later, ComparisonDirectory.resume(second.path))
    assert {outcome.decision for outcome in found.values()} == {"unchanged"}
    assert {host for _, host, *_ in later.measured} <= {"x", "z"}
    assert later.notes.lines[0] == "y is not here; its rows wait for it for 0 s"


def test_a_fleet_that_has_gone_ends_it_with_how_to_go_on(tmp_path: Path) -> None:
    def go(fleet: ScriptedFleet) -> Answer | None:
        fleet.client.status = "closed"
        raise Died

    directory = a_directory(tmp_path)
    with pytest.raises(PlaceGone) as caught:
        measure(RowFleet("x", act=when("measure a 2", "x", go)), directory)
    assert str(caught.value) == (
        "tls://bench:8786: the scheduler has gone; what has arrived is kept: go on with "
        f"`harness compare --resume {directory.path}`"
    )
    assert directory.can_go_on


# --- which hosts ---

_HOST = "--iree-llvmcpu-target-cpu=host"


def needed_by(*environments: dict[str, Any], **case: Any) -> Any:
    base, head = (a_side(a_case(**case), environment=environment) for environment in environments)
    sides: Any = SimpleNamespace(base=base, head=head)
    return need_of_row(works_of("a", **case)[0], sides)


def test_a_module_is_measured_on_the_cpu_that_it_is_made_for() -> None:
    epyc, xeon = ({"cpu": {"model": model, "flags": "avx2"}} for model in ("EPYC", "Xeon"))
    assert needed_by(epyc, xeon).cpu == ""
    assert needed_by(epyc, epyc, compile_flags=(_HOST,)).cpu == "EPYC avx2"
    assert needed_by(epyc, xeon, compile_flags=(_HOST,)) == (
        "its two modules are made for two CPUs; make both runs again, with --fleet"
    )


def test_a_row_goes_where_its_head_was_checked_and_one_that_fits_nowhere_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = works_of("abcd")
    checked = {work.pair.case.group: "z" for work in works}
    with a_directory(tmp_path) as directory, RowFleet("x", "y", "z") as fleet:
        place = a_place(fleet, directory, works, checked)
        assert place.missing(works) == {}
        assert set(directory.placed().values()) == {"z"}
        monkeypatch.setattr(FleetRows, "_loaded_suite", lambda _: a_suite(devices=(a_device("gpu"),)))
        (known,) = a_place(fleet, directory, works).missing(works[:1]).values()
        assert known.reason == "suites/small.toml no longer has the device cpu; put it back"
        monkeypatch.setattr(FleetRows, "_loaded_suite", lambda _: a_suite(devices=(a_device(on="w"),)))
        (known,) = a_place(fleet, a_directory(tmp_path / "other"), works).missing(works[:1]).values()
    assert known.reason == "a: no host can measure it (x, y, z: it is not what on = 'w' asks for)"
