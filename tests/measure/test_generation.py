"""One generation: who may measure, which turns run in which order and process, and what happens when one goes wrong.

A scripted worker stands in for the real one, so that orders and failures are exact.
"""

import itertools
import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure import Calibration, Group, LoadableModule, Settings, measure_generation
from harness.measure import session as room
from harness.measure.generation import balanced_orders, load_order
from harness.records.run import Lost, Round
from tests.builders import a_loadable, a_toolchain

CASES = st.lists(st.text(min_size=1), min_size=1, max_size=8, unique=True)


@given(CASES, st.text())
def test_rounds_have_every_case_once_and_in_a_pair_the_same_mean_position(cases: list[str], seed: str) -> None:
    orders, again = (list(itertools.islice(balanced_orders(cases, seed), 6)) for _ in range(2))
    assert orders == again, "the seed decides"
    assert sorted(load_order(cases, seed)) == sorted(cases)
    for forth, back in zip(orders[::2], orders[1::2], strict=True):
        assert sorted(forth) == sorted(cases)
        assert back == forth[::-1]


# --------------------------------------------------------------------------------------------------------- a generation

_FAKE_WORKER = Path(__file__).parents[1] / "fakes" / "fake_worker.py"
_TOOLCHAIN = a_toolchain(python=Path(sys.executable))
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

    def requests(self, *ops: str) -> list[dict[str, Any]]:
        """All requests of these kinds, in order, each with the process that got it."""
        log = self.folder / "log.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        return [request for request in map(json.loads, lines) if request["op"] in ops]


def _case(name: str, run_flags: tuple[str, ...] = ()) -> LoadableModule:
    return a_loadable(name, _TOOLCHAIN, run_flags=run_flags)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Replace the worker by the scripted one."""
    monkeypatch.setattr(room, "WORKER", _FAKE_WORKER)
    return Script(tmp_path)


def _rounds(items: list[Round | Lost]) -> list[Round]:
    return [item for item in items if isinstance(item, Round)]


def _lost(items: list[Round | Lost]) -> dict[str, str]:
    return {item.case: item.failure.message for item in items if isinstance(item, Lost)}


def test_a_generation_has_a_pair_of_rounds_however_small_its_budget(script: Script) -> None:
    first, second = _rounds(list(measure_generation(script.group("a", "b", "c"), 0, _NO_TIME)))
    assert [turn.case for turn in second.turns] == [turn.case for turn in reversed(first.turns)]
    assert (first.round, second.round) == (0, 1)
    assert first.turns[0].counters == {"instructions": 7}
    # Nothing comes between the turns of a round, which is one request; and in one process nothing is warmed up.
    assert [(len(request["turns"]), request["warm"]) for request in script.requests("round")] == [(3, {}), (3, {})]


def test_calls_under_a_millisecond_are_batched_alike_for_cases_that_are_alike(script: Script) -> None:
    script.answers["per_call_ns"] = {"short": 20_000, "alike": 25_000, "other": 100_000, "long": 5_000_000}
    first, *_ = _rounds(list(measure_generation(script.group("short", "alike", "other", "long"), 0, _NO_TIME)))
    calls = {turn.case: turn.calls for turn in first.turns}
    assert calls == {"short": 50, "alike": 50, "other": 10, "long": 1}
    assert {turn.wall_ns for turn in first.turns} == {1_000_000, 1_250_000, 5_000_000}


def _under(toolchain: str, name: str) -> LoadableModule:
    """A case of another toolchain: its interpreter is another file, and what it is started with is its own."""
    python = Path(sys.executable)
    other = replace(_TOOLCHAIN, version=toolchain, python=python.parent / ".." / python.parent.name / python.name)
    return replace(_case(name), toolchain=replace(other, python_options=("-I",)))


def test_each_toolchain_and_each_set_of_flags_has_a_worker_and_they_take_turns_round_by_round(script: Script) -> None:
    flagged = _case("e", ("--task_topology_group_count=1",))
    cases = (_case("a"), _under("3.12.0", "b"), _case("c"), _under("3.12.0", "d"), flagged)
    rounds = _rounds(
        list(measure_generation(replace(script.group(), cases=cases), 0, replace(_NO_TIME, least_rounds=6)))
    )
    home = {request["case"]: request["pid"] for request in script.requests("load")}
    assert home["a"] == home["c"] != home["b"] == home["d"]
    assert len(set(home.values())) == 3, "cases with other run flags live in another process too"
    opened = sorted(request["flags"] for request in script.requests("open"))  # in no order: they start side by side
    assert opened == [[], [], ["--task_topology_group_count=1"]]
    orders = [[turn.case for turn in round_.turns] for round_ in rounds]
    assert all(sorted(order) == ["a", "b", "c", "d", "e"] for order in orders)
    assert [order[::-1] for order in orders[::2]] == orders[1::2]
    asked = [(request["pid"], [case for case, _ in request["turns"]]) for request in script.requests("round")]
    assert [case for _, cases in asked for case in cases] == [case for order in orders for case in order]
    assert all(home[case] == pid for pid, cases in asked for case in cases)


def test_turns_that_may_follow_another_process_come_after_calls_that_are_not_timed(script: Script) -> None:
    script.answers["per_call_ns"] = {"short": 20_000, "middle": 9_000_000, "long": 10_000_000}
    cases = (_case("short"), _under("3.12.0", "middle"), _case("long"))
    list(measure_generation(replace(script.group(), cases=cases), 0, _NO_TIME))
    warm = [item for request in script.requests("round") for item in request["warm"].items()]
    assert sorted(warm) == [("middle", 1)] * 2 + [("short", 15)] * 2  # in each of the two rounds; long calls need none


def test_a_long_round_is_the_only_one_of_its_generation_and_orders_still_alternate(script: Script) -> None:
    script.answers["per_call_ns"] = {"a": 2_000_000_000, "b": 3_000_000_000}
    settings = replace(_NO_TIME, long_round_s=4.0)
    orders = []
    for generation in range(8):
        (only,) = _rounds(list(measure_generation(script.group("a", "b"), generation, settings)))
        orders.append([turn.case for turn in only.turns])
    assert [order[::-1] for order in orders[::2]] == orders[1::2]
    assert orders[::2] != orders[:1] * 4, "which order comes first is drawn anew"
    pair = list(measure_generation(script.group("a", "b"), 0, replace(settings, long_round_s=6.0)))
    assert len(pair) == 2


def test_what_an_earlier_generation_told_is_not_found_out_again(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(a_ns: float, b_ns: float) -> list[tuple[str, str, int | None]]:
        before = len(script.requests("calibrate", "warm"))
        known = {"a": Calibration(calls=3, per_call_ns=a_ns), "b": Calibration(calls=1, per_call_ns=b_ns)}
        known = {name: case for name, case in known.items() if case.per_call_ns}
        rounds = _rounds(list(measure_generation(script.group("a", "b"), 1, _NO_TIME, known=known)))
        if len(known) == 2:
            assert {turn.case: turn.calls for turn in rounds[0].turns} == {"a": 3, "b": 1}
        requests = script.requests("calibrate", "warm")[before:]
        return [(request["op"], request["case"], request.get("calls")) for request in requests]

    assert asked(1e6, 2e9) == [("warm", "a", 3), ("warm", "b", 1)]
    assert asked(0, 2e9) == [("calibrate", "a", None), ("calibrate", "b", None)], "all of them, or none"
    assert asked(0.2e9, 2e9) == [("warm", "a", 1), ("warm", "b", 1)], "another device needs it"
    monkeypatch.setattr(Group, "on_calling_thread", True)
    assert asked(0.2e9, 2e9) == []
    assert asked(0.05e9, 2e9) == [("warm", "a", 1), ("warm", "b", 1)], "or one side's first call costs more"


def test_a_case_that_does_not_load_or_crashes_its_worker_is_lost_and_the_others_go_on(script: Script) -> None:
    script.answers |= {"refuse_load": ["b"], "die_at_load": ["c"]}
    items = list(measure_generation(script.group("a", "b", "c", "d"), 0, _NO_TIME))
    assert _lost(items) == {
        "b": "module not for this device",
        "c": "the worker was ended by SIGABRT while it was at work on c",
    }
    (crash,) = (item for item in items if isinstance(item, Lost) and item.case == "c")
    assert "free(): invalid pointer" in crash.failure.stderr
    assert {turn.case for round_ in _rounds(items) for turn in round_.turns} == {"a", "d"}


def test_a_call_that_hangs_is_stopped_at_the_limit(script: Script) -> None:
    script.answers["hang_in_round"] = "b"
    items = list(measure_generation(script.group("a", "b"), 0, replace(_NO_TIME, call_limit_s=0.5)))
    assert _lost(items) == {
        "b": "the worker took longer than the limit of 1 s and was stopped (--call-timeout) while it was at work on b"
    }
    assert _rounds(items)


def test_a_worker_that_dies_before_its_first_load_is_begun_again_once(script: Script) -> None:
    script.answers["die_at_open"] = {"": 1, "--bad": 100}
    group = replace(script.group(), cases=(_case("a"), _case("b", ("--bad",)), _case("c", ("--bad",))))
    items = list(measure_generation(group, 0, _NO_TIME))
    reason = "the worker was ended by SIGABRT while it opened the device"
    assert _lost(items) == {"b": reason, "c": reason}
    assert {turn.case for round_ in _rounds(items) for turn in round_.turns} == {"a"}
    assert [request["flags"] for request in script.requests("open")].count(["--bad"]) == 2
