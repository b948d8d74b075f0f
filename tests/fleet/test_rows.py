"""Rows of a comparison on scripted hosts: what is measured where, and what happens when hosts go."""

from __future__ import annotations

import itertools
import queue
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.compare.engine import Outcome, StoppedEarly, Task, decide
from harness.compare.remeasure import _going_on
from harness.errors import PlaceGone
from harness.fleet import patience, rows
from harness.fleet.connection import Fleet, Hosts
from harness.fleet.desk import Answered, Died, Event, HostsChanged, HostWaits
from harness.fleet.files import Luggage
from harness.fleet.offer import Offer, OfferedToolchain
from harness.fleet.orders import Trouble
from harness.fleet.row_orders import RowMeasured
from harness.fleet.rows import FleetRows
from harness.fleet.waits import Waits
from harness.records.run import Failure
from harness.store.journal import Begun
from harness.store.sides_directory import ComparisonDirectory
from tests.builders import Notes, a_device, a_suite
from tests.compare.runs import TOOLCHAIN, a_build, a_case, a_side
from tests.compare.scripted import EQUAL, RULE, SLOWER, a_generation
from tests.fleet.hosts import make_offer

_BEGUN = Begun(created="", machine="", options={}, command=())
_CREATED = datetime(2026, 1, 1, tzinfo=timezone.utc)
_MODELS = ("a", "b", "c", "d")
Act = Callable[["FakeFleet", int, str, str, int], Sequence[Event] | None]


def an_offer(name: str, **changes: Any) -> Offer:
    tools = {TOOLCHAIN.version: OfferedToolchain(compiler_sha256=TOOLCHAIN.compiler_sha256, revision="", cpu=None)}
    return make_offer(name, address=f"tcp://{name}/1", toolchains=tools, **changes)


class FakeFleet:
    """Hosts that answer at once, unless `act` says what happens instead."""

    def __init__(
        self, *hosts: str, ratios: Mapping[str, Sequence[float]] | None = None, act: Act | None = None
    ) -> None:
        self.offers = {name: an_offer(name) for name in hosts}
        self.access = SimpleNamespace(address="tls://bench:8786")
        self.is_connected = True
        self.events: queue.Queue[Event] = queue.Queue()
        self.asked: list[tuple[str, str, int, bool]] = []
        self.takes = itertools.count()
        self.stop_at = -1
        self.refused: dict[str, str] = {}
        self.notes, self.told = Notes(), list[Sequence[Waits]]()
        self._said: dict[str, str] = {}
        self._ratios, self._act = ratios or {}, act
        self._tickets = itertools.count(1)

    def hosts(self) -> Hosts:
        """Those that are there."""
        return Hosts(offers=dict(self.offers), refused=self.refused)

    unsaid: Any = Fleet.unsaid

    def tell_waits(self, waits: Sequence[Waits]) -> None:
        """What `harness fleet status` shows; where a host is away, somebody starts x again."""
        self.told.append(waits)
        if any(each["why"] == "away" for each in waits):
            self.come("x")

    def await_host(self, _patience_s: float) -> None:
        """They are there."""

    def go(self, host: str) -> None:
        """A host leaves."""
        self.offers.pop(host, None)
        self.events.put(HostsChanged())

    def come(self, host: str, **changes: Any) -> None:
        """A host is back, in a process of its own."""
        self.offers[host] = replace(an_offer(host, **changes), address=f"tcp://{host}/2")
        self.events.put(HostsChanged())

    def give(self, host: str, _address: str, _task: object, order: Any, number: int, known: Any, **_: object) -> int:
        """The desk's."""
        ticket = next(self._tickets)
        self.asked.append((order.row, host, number, bool(known)))
        events = self._act(self, ticket, host, order.row, number) if self._act is not None else None
        for event in [self.measured(ticket, host, order.row, number)] if events is None else events:
            self.events.put(event)
        return ticket

    def measured(self, ticket: int, host: str, row: str, number: int) -> Event:
        """A generation as it is written."""
        steps = self._ratios.get(row, EQUAL)
        generation = replace(a_generation(steps[number % len(steps)]), host=host)
        return Answered(ticket=ticket, value=RowMeasured(generation=generation, known={"base": (1, 1.0)}))  # type: ignore[dict-item]

    def take(self, timeout_s: float) -> Event | None:
        """The desk's."""
        if next(self.takes) == self.stop_at:
            raise KeyboardInterrupt
        try:
            return self.events.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def __enter__(self) -> FakeFleet:
        return self

    def __exit__(self, *_: object) -> None:
        """Closed."""


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "Desk", lambda fleet: fleet)
    monkeypatch.setattr(rows, "latency_order", lambda work, *_, **__: (SimpleNamespace(row=work.name), Luggage()))
    monkeypatch.setattr(FleetRows, "_loaded_suite", lambda _: a_suite(devices=(a_device(),)))


def a_directory(results: Path) -> ComparisonDirectory:
    return ComparisonDirectory.create(results, "small", _CREATED, _BEGUN)


def works_of(models: Sequence[str]) -> list[Any]:
    """A row of each model."""
    cases = [a_case(model=model) for model in models]
    modules = [SimpleNamespace(case=case, build=a_build(case)) for case in cases]
    return [
        SimpleNamespace(name=case.model, pair=SimpleNamespace(case=case, both=(case, case)), base=module, head=module)
        for case, module in zip(cases, modules, strict=True)
    ]


def a_place(fleet: FakeFleet, directory: ComparisonDirectory, works: Sequence[Any], *, spread: bool) -> FleetRows:
    """Where the rows of two runs of the same cases are measured."""
    side = a_side(*(work.pair.case for work in works))
    plan: Any = SimpleNamespace(base=side, head=side, options=SimpleNamespace(spread=spread))
    return FleetRows(fleet, plan, directory, fleet.notes)  # type: ignore[arg-type]


def measure(
    fleet: FakeFleet, directory: ComparisonDirectory, *, models: Sequence[str] = _MODELS, spread: bool = False
) -> dict[str, Outcome]:
    """Decide a row of each model."""
    works = works_of(models)
    with directory:
        place = a_place(fleet, directory, works, spread=spread)
        assert place.missing(works) == {}
        tasks = []
        for work in works:
            sampling = place.latencies(work, seed=0, call_limit_s=1.0, on_round=lambda _: None)
            task = Task(name=work.name, rule=RULE, budget_s=16, **vars(sampling))
            tasks.append(_going_on(task, "latency", work, directory))
        with place.alone(wait=True) as together:
            outcomes = list(decide(tasks, lambda *_: None, together=together))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rows of")]
    return {outcome.name: outcome for outcome in outcomes}


def hosts_of(outcome: Outcome) -> Counter[str]:
    return Counter(generation.host for generation in outcome.generations)


def test_each_row_is_measured_on_one_host_and_comes_to_what_it_comes_to_on_one_machine(tmp_path: Path) -> None:
    fleet = FakeFleet("x", "y", ratios={"b": SLOWER, "d": SLOWER})
    found = measure(fleet, a_directory(tmp_path))
    assert {name: outcome.decision for name, outcome in found.items()} == {
        **dict.fromkeys("ac", "unchanged"),
        **dict.fromkeys("bd", "regressed"),
    }
    assert sorted(len(hosts_of(outcome)) for outcome in found.values()) == [1] * 4
    assert {host for outcome in found.values() for host in hosts_of(outcome)} == {"x", "y"}
    for name, outcome in found.items():
        asked = [(number, known) for row, _, number, known in fleet.asked if row == name]
        assert asked == [(number, number > 0) for number in range(len(outcome.generations))]


def test_a_row_that_is_spread_has_pairs_of_generations_on_each_host(tmp_path: Path) -> None:
    fleet = FakeFleet("x", "y", ratios={"a": SLOWER})
    outcome = measure(fleet, a_directory(tmp_path), models="a", spread=True)["a"]
    assert outcome.decision == "regressed"
    assert [generation.host for generation in outcome.generations[:8]] == ["x", "x", "y", "y"] * 2
    assert [known for *_, known in fleet.asked].count(False) == 2  # the first of each host tells the others there


def goes_at(number: int, host: str) -> Act:
    """A host leaves for good when it is asked for a generation."""

    def act(fleet: FakeFleet, ticket: int, asked: str, row: str, asked_number: int) -> Sequence[Event] | None:
        if asked == host and asked_number >= number:
            fleet.go(host)
            return [Died(ticket=ticket, address=f"tcp://{host}/1")]
        return None

    return act


def refuses_at(number: int, host: str) -> Act:
    """A host can measure no more."""

    def act(fleet: FakeFleet, ticket: int, asked: str, row: str, asked_number: int) -> Sequence[Event] | None:
        if asked == host and asked_number >= number:
            return [Answered(ticket=ticket, value=Trouble(message="its disk is full"))]
        return None

    return act


def comes_back_as_another_at(number: int, host: str) -> Act:
    """Somebody else's machine has its name from now on."""

    def act(fleet: FakeFleet, ticket: int, asked: str, row: str, asked_number: int) -> Sequence[Event] | None:
        if asked == host and asked_number >= number:
            fleet.come(host, host_cpu="Xeon", environment={"cpu": {"model": "Xeon"}})
            return [Died(ticket=ticket, address=f"tcp://{host}/1")]
        return None

    return act


@pytest.mark.parametrize("act", [goes_at(3, "y"), refuses_at(6, "y"), comes_back_as_another_at(3, "y")])
@pytest.mark.parametrize("spread", [False, True])
def test_what_a_lost_host_has_not_measured_the_others_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spread: bool, act: Act
) -> None:
    monkeypatch.setattr(patience, "RETURN_S", 0.0)
    fleet = FakeFleet("x", "y", "z", act=act)
    found = measure(fleet, a_directory(tmp_path), spread=spread)
    for outcome in found.values():
        assert outcome.decision == "unchanged"
        assert hosts_of(outcome)["y"] <= 6
    directory = next(tmp_path.iterdir())
    kept = (directory / "generations.jsonl").read_text().splitlines()
    assert len(kept) == sum(len(outcome.generations) for outcome in found.values())


def test_a_host_that_does_not_come_to_an_end_gets_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "RETURN_S", 0.0)
    monkeypatch.setattr(patience, "BESIDE_CALLS_S", 1.0 - patience.CALLS)

    def act(fleet: FakeFleet, ticket: int, host: str, row: str, number: int) -> Sequence[Event] | None:
        return [] if host == "x" and number else None

    fleet = FakeFleet("x", "y", act=act)
    (outcome,) = measure(fleet, a_directory(tmp_path), models="a", spread=True).values()
    assert outcome.decision == "unchanged"
    assert hosts_of(outcome)["x"] == [host for _, host, *_ in fleet.asked].count("x") - 1 == 1
    assert "a goes on without x: it has gone and did not come back within 0 s" in fleet.notes.lines


def test_rows_wait_for_a_host_that_may_come_back_and_status_shows_them(tmp_path: Path) -> None:
    def act(fleet: FakeFleet, ticket: int, host: str, row: str, number: int) -> Sequence[Event] | None:
        if (row, number) != ("a", 2) or "x has gone; its rows wait for it for 60 s" in fleet.notes.lines:
            return None
        fleet.go(host)
        return [Died(ticket=ticket, address="tcp://x/1")]

    fleet = FakeFleet("x", act=act)
    fleet.refused = {"z": "z: its clock is 2.0 h behind the scheduler's; set both by one time server"}
    fleet.events.put(HostWaits(name="x"))
    found = measure(fleet, a_directory(tmp_path), models="ab")
    assert {outcome.decision for outcome in found.values()} == {"unchanged"}
    (waits,) = [each for waits in fleet.told for each in waits if each["why"] == "away"]
    assert (waits["host"], waits["first"][0], fleet.told[-1]) == ("x", "a", [])
    said = Counter(fleet.notes.lines)
    assert said[f"Not used: {fleet.refused['z']}"] == said["x is back"] == 1
    assert said["x waits for another harness that measures there"] == 1


def test_a_row_that_ends_its_worker_three_times_fails(tmp_path: Path) -> None:
    starts = itertools.count(2)

    def act(fleet: FakeFleet, ticket: int, host: str, row: str, number: int) -> Sequence[Event] | None:
        if row != "a":
            return None
        address = fleet.offers[host].address
        fleet.offers[host] = replace(fleet.offers[host], address=f"tcp://x/{next(starts)}")
        return [Died(ticket=ticket, address=address), HostsChanged()]

    found = measure(FakeFleet("x", act=act), a_directory(tmp_path), models="ab")
    assert (found["a"].decision, found["b"].decision) == ("failed", "unchanged")
    assert found["a"].reason == "x: its worker ended, or came to no end, 3 times while it measured this row"


def test_a_row_that_no_host_can_measure_says_what_each_says(tmp_path: Path) -> None:
    def act(fleet: FakeFleet, ticket: int, host: str, row: str, number: int) -> Sequence[Event]:
        return [Answered(ticket=ticket, value=Trouble(message="its disk is full"))]

    (outcome,) = measure(FakeFleet("x", "y", act=act), a_directory(tmp_path), models="a").values()
    said = outcome.reason.removesuffix("; no other host of its class is there").split("; ")
    assert sorted(said) == ["x: its disk is full", "y: its disk is full"]


def test_a_side_that_fails_fails_the_row(tmp_path: Path) -> None:
    def act(fleet: FakeFleet, ticket: int, host: str, row: str, number: int) -> Sequence[Event]:
        failure = Failure(stage="measure", message="the head's module: it crashed")
        return [Answered(ticket=ticket, value=RowMeasured(failure=failure))]

    (outcome,) = measure(FakeFleet("x", act=act), a_directory(tmp_path), models="a").values()
    assert (outcome.decision, outcome.reason) == ("failed", "x: the head's module: it crashed")


@pytest.mark.parametrize("spread", [False, True])
def test_one_that_goes_on_repeats_nothing_and_has_as_many_hosts_as_before(tmp_path: Path, spread: bool) -> None:
    whole = measure(FakeFleet("x", "y"), a_directory(tmp_path / "whole"), spread=spread)
    fleet, directory = FakeFleet("x", "y"), a_directory(tmp_path)
    fleet.stop_at = 9
    with pytest.raises(StoppedEarly):
        measure(fleet, directory, spread=spread)
    later = FakeFleet("x", "y", "z")
    found = measure(later, ComparisonDirectory.resume(directory.path), spread=spread)
    assert found == whole
    before = {(row, host, number) for row, host, number, _ in fleet.asked}
    again = [(row, host, number) for row, host, number, _ in later.asked]
    answered = len((directory.path / "generations.jsonl").read_text().splitlines()) - len(again)
    assert 0 < answered <= len(before)
    assert not {host for _, host, _ in again} & {"z"}


def test_one_that_goes_on_without_a_host_says_that_its_rows_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "RETURN_S", 0.0)
    fleet, directory = FakeFleet("x", "y"), a_directory(tmp_path)
    fleet.stop_at = 9
    with pytest.raises(StoppedEarly):
        measure(fleet, directory, spread=True)
    later = FakeFleet("x", "z")
    found = measure(later, ComparisonDirectory.resume(directory.path), spread=True)
    assert {outcome.decision for outcome in found.values()} == {"unchanged"}
    assert {host for _, host, *_ in later.asked} == {"x"}
    assert later.notes.lines[0] == "y is not here; its rows wait for it for 0 s"


def test_a_row_whose_device_the_suite_no_longer_has_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet, directory = FakeFleet("x"), a_directory(tmp_path)
    fleet.stop_at = 9
    with pytest.raises(StoppedEarly):
        measure(fleet, directory)
    monkeypatch.setattr(FleetRows, "_loaded_suite", lambda _: a_suite(devices=(a_device("gpu"),)))
    with ComparisonDirectory.resume(directory.path) as resumed:
        (known,) = a_place(FakeFleet("x"), resumed, works := works_of("a"), spread=False).missing(works).values()
    assert known.reason == "suites/small.toml no longer has the device cpu; put it back"


def test_a_fleet_that_has_gone_ends_it_with_how_to_go_on(tmp_path: Path) -> None:
    def act(fleet: FakeFleet, ticket: int, host: str, row: str, number: int) -> Sequence[Event] | None:
        fleet.is_connected = number < 2
        return None

    directory = a_directory(tmp_path)
    with pytest.raises(PlaceGone) as caught:
        measure(FakeFleet("x", act=act), directory)
    assert str(caught.value) == (
        "tls://bench:8786: the scheduler has gone; what has arrived is kept: go on with "
        f"`harness compare --resume {directory.path}`"
    )
    assert directory.can_go_on
