"""One generation: which turns run, in which order, in which processes, and what happens when one goes wrong.

A scripted worker stands in for the real one, so that orders and failures can be told exactly.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from harness.measure import Group, LoadableModule, Settings, measure_generation
from harness.measure import session as values_module
from harness.records.run import Lost, Round
from harness.toolchain import Toolchain

_FAKE_WORKER = Path(__file__).parents[1] / "fakes" / "fake_worker.py"
_TOOLCHAIN = Toolchain(
    version="3.13.0",
    revision="",
    compiler_sha256="",
    python=Path(sys.executable),
    compiler_tools=Path(),
    runtime_tools=Path(),
)
_NO_TIME = Settings(seconds=1e-9)


@dataclass
class Script:
    """A scripted group and what its workers were asked."""

    folder: Path
    answers: dict[str, Any] = field(default_factory=dict)

    def group(self, *names: str) -> Group:
        """A group of these cases, to be answered for as `answers` says."""
        script = {"log": str(self.folder / "log.jsonl"), "per_call_ns": {}, **self.answers}
        return Group(name="m@cpu", uri=json.dumps(script), cases=tuple(_case(name) for name in names), cpus=None)

    def requests(self, op: str) -> list[dict[str, Any]]:
        """All requests of that kind, in order, each with the process that got it."""
        lines = (self.folder / "log.jsonl").read_text().splitlines()
        return [request for request in map(json.loads, lines) if request["op"] == op]


def _case(name: str, run_flags: tuple[str, ...] = ()) -> LoadableModule:
    return LoadableModule(
        name=name,
        module=Path("module.vmfb"),
        function="main",
        arguments=(),
        parameters={},
        run_flags=run_flags,
        toolchain=_TOOLCHAIN,
    )


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Replace the worker by the scripted one."""
    monkeypatch.setattr(values_module, "WORKER", _FAKE_WORKER)
    return Script(tmp_path)


def _rounds(items: list[Round | Lost]) -> list[Round]:
    return [item for item in items if isinstance(item, Round)]


def _lost(items: list[Round | Lost]) -> dict[str, str]:
    return {item.case: item.failure.message for item in items if isinstance(item, Lost)}


def test_a_generation_has_at_least_a_pair_of_rounds_however_small_its_budget(script: Script) -> None:
    items = list(measure_generation(script.group("a", "b", "c"), 0, _NO_TIME))
    first, second = _rounds(items)
    assert [turn.case for turn in second.turns] == [turn.case for turn in reversed(first.turns)]
    assert (first.round, second.round) == (0, 1)


def test_all_cases_of_a_group_live_in_one_process_which_is_fresh_for_each_generation(script: Script) -> None:
    group = script.group("a", "b")
    for generation in range(3):
        list(measure_generation(group, generation, _NO_TIME))
    loads = script.requests("load")
    assert [request["case"] for request in loads] == ["a", "b"] * 3
    assert len({request["pid"] for request in loads}) == 3


def test_a_round_is_one_request_so_that_nothing_comes_between_its_turns(script: Script) -> None:
    list(measure_generation(script.group("a", "b", "c"), 0, _NO_TIME))
    assert [len(request["turns"]) for request in script.requests("round")] == [3, 3]


def test_calls_under_a_millisecond_are_batched_and_longer_ones_are_not(script: Script) -> None:
    script.answers["per_call_ns"] = {"short": 20_000, "long": 5_000_000}
    rounds = _rounds(list(measure_generation(script.group("short", "long"), 0, _NO_TIME)))
    calls = {turn.case: turn.calls for turn in rounds[0].turns}
    assert calls == {"short": 50, "long": 1}
    assert {turn.case: turn.wall_ns for turn in rounds[0].turns} == {"short": 1_000_000, "long": 5_000_000}


def test_cases_with_other_run_flags_live_in_another_process_and_take_turns_with_it(script: Script) -> None:
    group = script.group()
    group = replace(group, cases=(_case("a"), _case("b", ("--task_topology_group_count=1",)), _case("c")))
    rounds = _rounds(list(measure_generation(group, 0, _NO_TIME)))
    home = {request["case"]: request["pid"] for request in script.requests("load")}
    assert home["a"] == home["c"] != home["b"]
    assert all({turn.case for turn in one.turns} == {"a", "b", "c"} for one in rounds)
    assert [request["flags"] for request in script.requests("open")] == [[], ["--task_topology_group_count=1"]]


def _under(toolchain: str, name: str) -> LoadableModule:
    """A case of another toolchain: its interpreter is another file, and what it is started with is its own."""
    python = Path(sys.executable)
    other = replace(_TOOLCHAIN, version=toolchain, python=python.parent / ".." / python.parent.name / python.name)
    return replace(_case(name), toolchain=replace(other, python_options=("-I",)))


def test_each_toolchain_has_a_worker_of_its_own_and_they_take_turns_round_by_round(script: Script) -> None:
    group = replace(script.group(), cases=(_case("a"), _under("3.12.0", "b"), _case("c"), _under("3.12.0", "d")))
    rounds = _rounds(list(measure_generation(group, 0, replace(_NO_TIME, least_rounds=6))))
    home = {request["case"]: request["pid"] for request in script.requests("load")}
    assert home["a"] == home["c"] != home["b"] == home["d"]
    orders = [[turn.case for turn in one.turns] for one in rounds]
    assert all(sorted(order) == ["a", "b", "c", "d"] for order in orders)
    assert [order[::-1] for order in orders[::2]] == orders[1::2]
    asked = [(request["pid"], [case for case, _ in request["turns"]]) for request in script.requests("round")]
    assert [case for _, cases in asked for case in cases] == [case for order in orders for case in order]
    assert all(home[case] == pid for pid, cases in asked for case in cases)


def test_turns_that_may_follow_another_process_come_after_calls_that_are_not_timed(script: Script) -> None:
    script.answers["per_call_ns"] = {"short": 20_000, "middle": 9_000_000, "long": 10_000_000}
    cases = (_case("short"), _under("3.12.0", "middle"), _case("long"))
    list(measure_generation(replace(script.group(), cases=cases), 0, _NO_TIME))
    warm = [one for request in script.requests("round") for one in request["warm"].items()]
    assert sorted(warm) == [("middle", 1)] * 2 + [("short", 15)] * 2  # in each of the two rounds; long calls need none


def test_in_one_process_nothing_needs_that(script: Script) -> None:
    list(measure_generation(script.group("a", "b"), 0, _NO_TIME))
    assert [request["warm"] for request in script.requests("round")] == [{}, {}]


def test_counters_are_kept_with_each_turn(script: Script) -> None:
    rounds = _rounds(list(measure_generation(script.group("a"), 0, _NO_TIME)))
    assert rounds[0].turns[0].counters == {"instructions": 7}


def test_a_case_that_does_not_load_is_lost_and_the_others_go_on(script: Script) -> None:
    script.answers["refuse_load"] = ["b"]
    items = list(measure_generation(script.group("a", "b", "c"), 0, _NO_TIME))
    assert _lost(items) == {"b": "module not for this device"}
    assert {turn.case for one in _rounds(items) for turn in one.turns} == {"a", "c"}


def test_a_case_at_which_the_worker_crashes_while_loading_is_lost_and_the_others_get_a_fresh_worker(
    script: Script,
) -> None:
    script.answers["die_at_load"] = ["b"]
    items = list(measure_generation(script.group("a", "b", "c"), 0, _NO_TIME))
    assert _lost(items) == {"b": "the worker was ended by SIGABRT while it was at work on b"}
    (lost,) = [item for item in items if isinstance(item, Lost)]
    assert "free(): invalid pointer" in lost.failure.stderr
    assert {turn.case for one in _rounds(items) for turn in one.turns} == {"a", "c"}


def test_a_crash_in_the_middle_of_timing_loses_only_the_guilty_case_and_keeps_the_rounds_before(
    script: Script,
) -> None:
    script.answers["die_in_round"] = {"b": 1}
    items = list(measure_generation(script.group("a", "b"), 0, _NO_TIME))
    assert _lost(items) == {"b": "the worker was ended by SIGABRT while it was at work on b"}
    rounds = _rounds(items)
    assert [one.round for one in rounds] == [0, 1, 2]
    assert [len(one.turns) for one in rounds] == [2, 1, 1]


def test_a_call_that_hangs_is_stopped_at_the_limit(script: Script) -> None:
    script.answers["hang_in_round"] = "b"
    items = list(measure_generation(script.group("a", "b"), 0, replace(_NO_TIME, call_limit_s=0.5)))
    assert _lost(items) == {
        "b": "the worker took longer than the limit of 1 s and was stopped (--call-timeout) while it was at work on b"
    }
    assert _rounds(items)


def test_a_device_that_does_not_open_loses_every_case_with_the_reason(script: Script) -> None:
    script.answers["refuse_open"] = "NOT_FOUND; no device"
    items = list(measure_generation(script.group("a", "b"), 0, _NO_TIME))
    assert _lost(items) == {"a": "NOT_FOUND; no device", "b": "NOT_FOUND; no device"}
    assert not _rounds(items)
