"""What a run does next, on scripted hosts: refusals, workers that go, and runs that go on."""

from __future__ import annotations

import itertools
import queue
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.errors import PlaceGone, UsageError
from harness.files import file_sha256
from harness.fleet import patience
from harness.fleet.connection import Hosts
from harness.fleet.desk import Answered, Died, Event, HostsChanged, HostWaits
from harness.fleet.line import Line
from harness.fleet.offer import Offer, OfferedToolchain
from harness.fleet.orders import Checked, Compiled, CompileOrder, Measured, Trouble
from harness.fleet.state import compile_limits
from harness.fleet.waits import Reason, Waits
from harness.process import Limits
from harness.records.run import Build, Check, Failure, Lost, Reference, Round, Run, Sizes, Turn
from harness.stages.context import unchecked
from harness.stages.options import RunOptions
from harness.store.files import adapter
from harness.store.run_directory import load_run
from tests.fleet.asking import CASES, Asking
from tests.fleet.hosts import make_offer

TIED = {case.name for case in CASES if any(flag.endswith("=host") for flag in case.compile_flags)}
Act = Callable[["Scripted", str, str, str], Sequence[Event] | None]


class Scripted:
    """A fleet and its desk: hosts that do at once what they are asked to, unless `act` says what happens instead."""

    def __init__(self, asking: Asking, act: Act | None = None, /, **cpus: str) -> None:
        tools = asking.toolchain
        offered = {tools.version: OfferedToolchain(compiler_sha256=tools.compiler_sha256, revision="", cpu=None)}
        self.offers: dict[str, Offer] = {}
        for name, cpu in cpus.items():
            facts = {"environment": {"cpu": {"model": cpu}}, "host_cpu": f"{cpu} ", "toolchains": offered}
            self.offers[name] = make_offer(name, address=f"tcp://{name}/1", cores=1, **facts)
        self.access, self.is_connected = SimpleNamespace(address="tls://bench:8786"), True
        self.client = SimpleNamespace()
        self.given: list[tuple[str, str]] = []
        self.orders: list[Any] = []
        self.told: list[Reason] = []
        self.events: queue.Queue[Event] = queue.Queue()
        self.tickets = itertools.count(1)
        self.idle: Callable[[], Event | None] = lambda: None
        self._asking, self._act = asking, act

    def run(self) -> Run:
        """Do all that is left."""
        context = self._asking.context()
        Line(self, self, context, self._asking.artifacts).run()  # type: ignore[arg-type]
        return load_run(context.directory.path)

    def hosts(self) -> Hosts:
        """Those that are there."""
        return Hosts(offers=dict(self.offers), refused={})

    def await_host(self, _seconds: float) -> None:
        """The fleet's."""

    def unsaid(self, _refused: object) -> list[str]:
        """The fleet's."""
        return []

    def tell_waits(self, waits: list[Waits]) -> None:
        """The fleet's."""
        self.told += [Reason(each["why"], each["host"]) for each in waits]

    def give(self, host: str, address: str, _task: object, order: Any, *args: Any, name: str, **_: object) -> int:
        """The desk's."""
        ticket = next(self.tickets)
        self.given.append((host, name))
        self.orders.append(order)
        events = self._act(self, ticket, address, name) if self._act is not None else None  # type: ignore[arg-type]
        answer = _answer(host, name.split()[0], order, *args) if events is None else None
        for event in [Answered(ticket=ticket, value=answer)] if events is None else events:
            self.events.put(event)
        return ticket

    def take(self, timeout_s: float) -> Event | None:
        """The desk's."""
        try:
            return self.events.get(timeout=timeout_s)
        except queue.Empty:
            return self.idle()

    def forget(self, address: str) -> None:
        """The desk's."""


def _answer(host: str, kind: str, order: Any, *args: Any) -> Any:
    if kind == "compile":
        module = BuildCache(cache_root()).folder(order.key) / "module.vmfb"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(order.key)
        sizes = Sizes(module_bytes=len(order.key), vm_bytes=0, constant_bytes=0, dispatch_bytes={})
        build = Build(case="", command=(), cache_key=order.key, module_sha256=file_sha256(module), sizes=sizes)
        (module.parent / BuildCache.FACTS_FILE).write_bytes(adapter(Build).dump_json(build))
        return Compiled(build=build, stderr="")
    if kind == "check":
        first = Check(case="", against="", command=(), relative_tolerance=0.0, absolute_tolerance=0.0)
        return Checked(checks=tuple(replace(first, case=case.name) for case in order.cases))
    if kind == "measure":
        turns = tuple(Turn(case=case.name, calls=1, wall_ns=10**9, cpu_ns=1) for case in order.cases)
        timed = Round(group=order.group, generation=args[0].generation, round=0, started_unix_ns=0, turns=turns)
        return Measured(results=(replace(timed, host=host),))
    return tuple(Reference(case=case.name, command=()) for case in order.cases) if kind == "reference" else None


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asking:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(patience, "RETURN_S", 3.0)
    return Asking(tmp_path, "")


def test_progress_counts_each_case_and_each_step_once(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    totals, steps = [], []
    monkeypatch.setattr(asking.notes, "stage", lambda _, total: totals.append(total))
    monkeypatch.setattr(asking.notes, "step", lambda _, advance=1: steps.append(advance))
    asking.prepared = replace(asking.prepared, cases=(*CASES, replace(CASES[0], name="a/same@cpu", baseline=False)))
    Scripted(asking, a="EPYC", b="EPYC").run()
    assert totals == [sum(steps)]


def test_a_compile_may_use_what_its_host_gives_unless_the_user_says_how_much(asking: Asking) -> None:
    fleet = Scripted(asking, a="EPYC")
    fleet.run()
    limits = {order.limits for order in fleet.orders if isinstance(order, CompileOrder)}
    assert limits == {Limits(seconds=900.0)}
    assert compile_limits(RunOptions(compile_memory_gib=2)).memory_bytes == 2**31


def test_a_host_does_not_take_back_what_it_refused(asking: Asking) -> None:
    def act(fleet: Scripted, ticket: Any, address: str, name: str) -> Sequence[Event] | None:
        refused = Trouble(message="it has no network")
        return [Answered(ticket=ticket, value=refused)] if name.startswith("check") and "//a/" in address else None

    fleet = Scripted(asking, act, a="EPYC", b="EPYC")
    run = fleet.run()
    assert {timed.host for timed in run.rounds} == {"b"}
    checks = [name for host, name in fleet.given if host == "a" and name.startswith("check")]
    assert len(checks) == len(set(checks))


def test_a_worker_that_cannot_be_reached_costs_each_of_its_groups_one_try(asking: Asking) -> None:
    def act(_: Scripted, ticket: Any, address: str, name: str) -> Sequence[Event] | None:
        is_cut_off = name.startswith("measure") and "//a/" in address
        return [Died(ticket=ticket, address=address)] if is_cut_off else None

    fleet = Scripted(asking, act, a="EPYC", b="EPYC")
    run = fleet.run()
    assert not run.lost
    assert {timed.host for timed in run.rounds} == {"b"}
    assert sum(host == "a" and name.startswith("measure") for host, name in fleet.given) <= 2


def test_who_says_that_a_case_is_wrong_is_kept_also_where_nothing_is_timed(asking: Asking) -> None:
    def act(_: Scripted, ticket: Any, __: str, name: str) -> Sequence[Event] | None:
        failure = Failure(stage="verify", message="it crashed")
        wrong = [unchecked(case, failure) for case in CASES if case.group == "a@cpu"]
        return [Answered(ticket=ticket, value=Checked(checks=tuple(wrong)))] if name == "check a@cpu" else None

    run = Scripted(asking, act, h="EPYC").run()
    assert {timed.group for timed in run.rounds} == {"b@cpu", "c@cpu", "d@cpu"}
    assert run.host_of_group["a@cpu"] == "h"


def test_a_case_that_is_lost_is_in_no_later_order_of_its_group(asking: Asking) -> None:
    failure = Failure(stage="measure", message="it crashed")
    lost = Measured(results=((Lost(case="a/fast@cpu", generation=0, failure=failure),),))

    def act(fleet: Scripted, ticket: Any, _: str, name: str) -> Sequence[Event] | None:
        is_first = name == "measure a@cpu" and fleet.given.count(("h", name)) == 1
        return [Answered(ticket=ticket, value=lost)] if is_first else None

    fleet = Scripted(asking, act, h="EPYC")
    fleet.run()
    named = zip(fleet.given, fleet.orders, strict=True)
    orders = [order for (_, name), order in named if name == "measure a@cpu"]
    assert [[case.variant for case in order.cases] for order in orders] == [["stock", "fast"], ["stock"], ["stock"]]
    assert orders[1].builds is orders[2].builds  # it is made once


def test_a_host_that_waits_for_another_harness_is_told_of(asking: Asking) -> None:
    fleet = Scripted(asking, a="EPYC")
    fleet.events.put(HostWaits(name="a"))
    fleet.run()
    assert "a waits for another harness that measures there" in asking.notes.lines


def test_a_compile_waits_for_the_one_host_that_may_do_it(asking: Asking) -> None:
    gone: list[Offer] = []
    seconds = itertools.count(1)

    def act(fleet: Scripted, ticket: Any, address: str, name: str) -> Sequence[Event] | None:
        if address != "tcp://a/1" or name.split()[1] not in TIED:  # hosts do not say what `host` means to them
            return None
        gone.extend(offer for offer in [fleet.offers.pop("a", None)] if offer is not None)
        return [Died(ticket=ticket, address=address)]

    def come_back() -> Event | None:
        if next(seconds) < 2:
            return None
        fleet.offers["a"] = replace(gone[0], address="tcp://a/2")
        return HostsChanged()

    fleet = Scripted(asking, act, a="EPYC", b="Xeon")
    fleet.idle = come_back
    run = fleet.run()
    assert gone
    assert Reason("away", "a") in fleet.told
    assert not any(build.failure for build in run.builds)
    assert asking.notes.lines[-1] == "a is back"


def test_a_group_goes_on_where_the_cpu_is_that_its_modules_are_made_for(asking: Asking) -> None:
    def stop(fleet: Scripted, *_: object) -> Sequence[Event] | None:
        if len(fleet.given) > len(CASES):
            raise KeyboardInterrupt
        return None

    with pytest.raises(KeyboardInterrupt):
        Scripted(asking, stop, a="EPYC", b="Xeon").run()
    made = load_run(asking.directory.path)
    assert set(made.host_of_group.values()) == {"a", "b"}
    fleet = Scripted(asking, c="EPYC", d="Xeon")
    run = fleet.run()
    same = {"a": "c", "b": "d"}
    groups = {case.group for case in CASES for build in made.builds if build.case == case.name}
    assert groups
    assert {group: run.host_of_group[group] for group in groups} == {
        group: same[made.host_of_group[group]] for group in groups
    }


def test_another_machine_under_a_hosts_name_measures_nothing_of_its_groups(asking: Asking) -> None:
    def stop(fleet: Scripted, *_: object) -> Sequence[Event] | None:
        if sum(name.startswith("measure") for _, name in fleet.given) > len(CASES):
            raise KeyboardInterrupt
        return None

    with pytest.raises(KeyboardInterrupt):
        Scripted(asking, stop, a="EPYC", b="EPYC").run()
    assert {timed.host for timed in load_run(asking.directory.path).rounds} == {"a", "b"}
    fleet = Scripted(asking, a="Xeon", b="EPYC")
    run = fleet.run()
    assert {timed.host for timed in run.rounds} == {"b"}
    assert {host for host, _ in fleet.given} == {"b"}
    assert any(line.startswith("a is another machine than before, Xeon") for line in asking.notes.lines)


def test_a_scheduler_that_goes_while_it_is_told_something_ends_the_run_with_how_to_go_on(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    def act(fleet: Scripted, ticket: Any, address: str, _: str) -> Sequence[Event] | None:
        fleet.offers.pop("a", None)
        return [Died(ticket=ticket, address=address)] if "//a/" in address else None

    def gone(_: object, __: object) -> None:
        raise UsageError("tls://bench:8786: the scheduler has gone")

    monkeypatch.setattr(Scripted, "tell_waits", gone)
    with pytest.raises(PlaceGone, match="the scheduler has gone; what has arrived is kept: go on with"):
        Scripted(asking, act, a="EPYC", b="Xeon").run()
