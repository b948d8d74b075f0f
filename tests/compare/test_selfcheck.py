"""Modules against themselves, scripted: how alarms are counted, and what later reports are told of them."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.compare import selfcheck as selfcheck_module
from harness.compare.engine import Generation, Task
from harness.compare.options import SelfcheckOptions
from harness.compare.pairs import Side
from harness.compare.samplers import MeasurementPolicy
from harness.compare.selfcheck import Selfcheck, check_machine
from harness.errors import CaseError, RunError
from harness.machine.environment import last_selfcheck, selfcheck_file
from harness.progress import Progress
from harness.records.run import Failure
from tests.compare.runs import a_case, a_side

MACHINE = "3f2a91c04b7e"
STOCK, FAST, LOST = a_case("stock"), a_case("fast"), a_case("lost")
QUIET = np.random.default_rng(0).normal(0, 0.001, 8).tolist()


@dataclass
class Machine:
    """A machine on which each case's generations are scripted, by log ratio; () fails, and all others are quiet."""

    log_ratios: dict[str, Sequence[float]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)  # Of the cases, as their rows began

    def task(self, name: str, _base: Any, _head: Any, policy: MeasurementPolicy) -> Task:
        """In place of the real one."""

        def sample(number: int) -> Generation:
            if number == 0:
                self.order.append(name)
            if not (script := self.log_ratios.get(name, QUIET)):
                raise CaseError("measure", "it crashed")
            return Generation(log_ratio=script[number % len(script)], base=1000.0, head=1000.0, rounds=20, seconds=1.0)

        return Task(name=name, sample=sample, rule=policy.rule, budget_s=policy.budget_s)

    def check(self, side: Side, *, rows: int = 2) -> Selfcheck:
        """Rows of ten seconds, which have room for ten generations."""
        options = SelfcheckOptions(Path("net.toml"), rows=rows, row_budget=10)
        toolchains: Any = dict.fromkeys(side.toolchains.values())
        return check_machine(side, toolchains, {"machine": {"id": MACHINE}}, options, Progress())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    scripted = Machine()
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(selfcheck_module, "find_module", lambda *_: None)
    monkeypatch.setattr(selfcheck_module, "latency_task", scripted.task)
    monkeypatch.setattr(selfcheck_module, "only_one_measures", lambda *_, **__: contextlib.nullcontext())
    return scripted


def test_each_module_is_checked_once_for_its_flags_in_turns_and_as_often_as_the_others(machine: Machine) -> None:
    inert, flagged, skipped = a_case("inert"), a_case("flagged", run_flags=("--x",)), a_case("skipped", skip="no GPU")
    wrong, late = a_case("wrong"), a_case("late")
    side = a_side(
        *(STOCK, inert, flagged, skipped, wrong, late),
        code={inert.name: STOCK.name, flagged.name: STOCK.name},
        failures={wrong.name: Failure(stage="compile", message="it crashed")},
        uncompiled=[late.name],
    )
    check = machine.check(side, rows=5)
    assert machine.order == [STOCK.name, flagged.name] * 3  # at least five
    assert (check.facts.rows, {case.rows for case in check.cases}) == (6, {3})
    with pytest.raises(RunError, match="no case of it can be measured here; `harness list` says why each is skipped"):
        machine.check(a_side(skipped))


def test_a_quiet_machine_has_no_alarms_which_is_kept_for_this_machine_alone(machine: Machine) -> None:
    assert not selfcheck_file().exists()
    check = machine.check(a_side(STOCK), rows=20)
    kept = last_selfcheck(MACHINE) or {}
    assert (kept["rows"], kept["flagged"], kept["when"]) == (20, 0, check.facts.when)
    assert last_selfcheck("0123456789ab") is None  # a cache may be shared, and a machine's noise is not
    (case,) = check.cases
    assert (case.rows, case.flagged, case.inconclusive, case.failed) == (20, 0, 0, 0)
    assert (case.latency_ns, check.budget_s, check.floor) == (1000.0, 10, 0.01)
    assert case.spread == pytest.approx(0.001, rel=0.5)
    assert case.detects is not None
    assert 0.01 < case.detects < 0.03  # nothing below the floor is ever called changed
    assert check.facts.detects == case.detects
    assert check.facts.upper_bound == pytest.approx(1 - 0.05 ** (1 / 20))


def test_rows_that_are_called_changed_are_false_alarms_and_those_that_failed_say_nothing(machine: Machine) -> None:
    machine.log_ratios = {FAST.name: [0.05, 0.051, 0.049, 0.052], LOST.name: ()}
    check = machine.check(a_side(STOCK, FAST, LOST), rows=6)
    assert [(case.flagged, case.failed) for case in check.cases] == [(0, 0), (2, 0), (0, 2)]
    assert (check.facts.flagged, check.facts.rows) == (2, 4)
