"""Which parts of two sides differ: rows that share generations, and what parts leave of the latency."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.compare.engine import Generation, Task, decide
from harness.compare.samplers import MeasurementPolicy
from harness.errors import CaseError
from harness.explain import attribute as attributing
from harness.explain.attribute import (
    Attribution,
    Generations,
    ProgramSide,
    Sampled,
    Turns,
    attribute,
    judge_parts,
    sides_ns,
)
from harness.explain.profile import Profile, Unprofiled
from harness.ir.differences import Executable
from harness.process import Limits
from harness.records.explanation import Method, Part
from harness.stats.rule import Rule
from tests.explain.modules import a_module, an_executable, with_profiler
from tests.fakes.fake_toolchain import make_fake_toolchain

CONV, MATMUL, PAD = "m_dispatch_0_conv_8x8_f32", "m_dispatch_1_matmul_4x4_f32", "m_dispatch_2_pad_f32"
EXECUTABLES = [an_executable(CONV), an_executable(MATMUL)]
# Over and over: so small that 1 % is seen at the first look.
NOISE = (0.0004, -0.0003, 0.0001, -0.0002)

Nanoseconds = Mapping[str, float]


class Script:
    """Latencies and profiles that are written down, with noise; it keeps which generations were asked for."""

    def __init__(
        self,
        base: Nanoseconds,
        head: Nanoseconds,
        *,
        host_ns: float = 20,
        device_ns: Nanoseconds | None = None,
        profiled_ratio: float = 1.0,
        untimed: Mapping[str, str] | None = None,
        at: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.asked: list[int] = []
        self._sides = base, head
        self._host_ns = host_ns
        self._device_ns = device_ns or {}
        self._ratio = profiled_ratio
        self._untimed = untimed or {}
        self._at = at

    def latency(self, number: int) -> Generation:
        """Of all that is written, and the host."""
        self.asked.append(number)
        self._at(number)
        base, head = (sum(side.values()) + sum(self._device_ns.values()) + self._host_ns for side in self._sides)
        noise = NOISE[number % len(NOISE)]
        return Generation(
            log_ratio=math.log(head / base) + noise, base=base, head=head * math.exp(noise), rounds=20, seconds=0.1
        )

    def turns(self, number: int) -> tuple[Profile, Profile]:
        """Of both sides."""
        base, head = (
            self._profile(side, noise) for side, noise in zip(self._sides, (0.0, NOISE[number % 4]), strict=True)
        )
        return base, head

    def _profile(self, dispatch_ns: Nanoseconds, noise: float) -> Profile:
        taken = {name: ns * math.exp(noise) for name, ns in dispatch_ns.items()}
        call_ns = math.fsum(taken.values()) + self._host_ns
        untimed = {name: why for name, why in self._untimed.items() if name in taken}
        return Profile(
            calls=10,
            call_ns=self._ratio * call_ns,
            dispatch_ns={name: 0.0 if name in untimed else ns for name, ns in taken.items()},
            device_ns=self._device_ns,
            plain_ns=call_ns,
            untimed=untimed,
        )


def judged(
    script: Script, base: Sequence[Executable] = EXECUTABLES, head: Sequence[Executable] = EXECUTABLES
) -> Attribution:
    like = Task(name="", sample=script.latency, rule=Rule(), budget_s=60)
    return judge_parts((base, head), Generations(script.latency, script.turns), like, method="profile")


def by_operation(attribution: Attribution) -> dict[str, Part]:
    return {part.operation: part for part in attribution.parts}


def test_the_part_that_differs_is_found_and_others_are_unchanged() -> None:
    found = judged(Script({CONV: 100, MATMUL: 50}, {CONV: 150, MATMUL: 50}))
    conv, matmul = found.parts
    assert (conv.base, conv.head, conv.matched_by) == ((CONV,), (CONV,), "same code")
    assert conv.operation == "conv_8x8_f32"
    assert conv.verdict == "regressed"
    assert conv.ratio == pytest.approx(1.5, rel=1e-3)
    assert conv.ci_low is not None
    assert conv.ci_high is not None
    assert conv.ci_low < 1.5 < conv.ci_high
    assert conv.p is not None
    assert conv.p < 0.05
    assert (conv.base_ns, conv.head_ns) == pytest.approx((100, 150), rel=1e-3)
    assert matmul.verdict == "unchanged"
    assert found.latency.decision == "regressed"
    assert found.method == "profile"
    assert not found.is_stopped
    assert found.notes == ()


def test_all_rows_share_generations_and_each_is_measured_once() -> None:
    script = Script({CONV: 100, MATMUL: 50}, {CONV: 150, MATMUL: 40})
    found = judged(script)
    assert script.asked == list(range(len(found.generations)))
    assert all(part.verdict in ("regressed", "improved") for part in found.parts)
    # Found and confirmed over the same generations.
    assert {part.generations for part in found.parts} == {len(found.generations)}


def test_parts_device_and_host_add_up_to_the_latency() -> None:
    found = judged(Script({CONV: 100, MATMUL: 50}, {CONV: 150, MATMUL: 50}, device_ns={"alloca": 7, "execute": 3}))
    calls = sides_ns(found.latency)
    assert calls is not None
    elsewhere = found.base_elsewhere
    assert elsewhere.device_ns == {"alloca": 7, "execute": 3}
    in_all = sum(part.base_ns for part in found.parts) + sum(elsewhere.device_ns.values()) + elsewhere.host_ns
    assert in_all == pytest.approx(calls[0])
    assert elsewhere.host_ns == pytest.approx(20, abs=0.2)
    assert found.head_elsewhere.host_ns == pytest.approx(20, abs=0.2)


def test_a_machine_that_changes_its_speed_changes_both_sides() -> None:
    speeds = (1.0, 1.3, 1.0, 1.5, 1.4, 1.0, 1.6, 1.0)
    generations = tuple(
        Generation(log_ratio=math.log(1.02), base=speed, head=1.02 * speed * hiccup, rounds=9, seconds=1.0)
        for speed, hiccup in zip(speeds, (1.0, 1.2, 1.0, 0.7, 0.7, 1.3, 0.7, 1.0), strict=True)
    )
    (outcome,) = decide(
        [Task(name="row", sample=lambda number: generations[number % 8], rule=Rule(), budget_s=8)],
        lambda _name, _generation: None,
    )
    calls = sides_ns(outcome)
    assert calls is not None
    assert calls[1] / calls[0] == pytest.approx(1.02)


def test_what_one_side_alone_has() -> None:
    base = [an_executable(CONV), an_executable(PAD), an_executable(MATMUL)]
    parts = by_operation(judged(Script({CONV: 100, PAD: 30, MATMUL: 50}, {CONV: 100, MATMUL: 50}), base))
    assert parts["pad_f32"].verdict == "missing"
    assert parts["pad_f32"].base_ns == 30
    assert (parts["pad_f32"].ratio, parts["pad_f32"].p, parts["pad_f32"].matched_by) == (None, None, "")
    head = by_operation(judged(Script({CONV: 100, MATMUL: 50}, {CONV: 100, PAD: 30, MATMUL: 50}), EXECUTABLES, base))
    assert head["pad_f32"].verdict == "new"


def test_dispatches_that_were_fused_are_one_part() -> None:
    base = [an_executable(PAD), an_executable(CONV, "conv")]
    head = [an_executable(CONV, "conv with pad")]
    (part,) = judged(Script({PAD: 30, CONV: 100}, {CONV: 65}), base, head).parts
    assert (part.base, part.head, part.matched_by) == ((PAD, CONV), (CONV,), "fused or split")
    assert part.operation == "pad_f32 + conv_8x8_f32"
    assert part.ratio == pytest.approx(0.5, rel=1e-3)
    assert part.verdict == "improved"


def test_executables_stand_in_the_order_of_their_dispatch_and_those_that_do_not_run_are_left_out() -> None:
    never = an_executable("m_dispatch_9_pack_f32")
    found = judged(Script({MATMUL: 50, CONV: 50}, {MATMUL: 50, CONV: 50}), [never, *EXECUTABLES], EXECUTABLES)
    assert sorted(part.base for part in found.parts) == [(CONV,), (MATMUL,)]


def test_parts_that_do_the_same_have_rows_of_their_own() -> None:
    first, second = an_executable("m_dispatch_0_conv_4_f32", "a"), an_executable("m_dispatch_1_conv_4_f32", "b")
    script = Script({first.name: 10, second.name: 20}, {first.name: 10, second.name: 40})
    found = judged(script, [first, second], [first, second])
    assert [(part.head, part.verdict) for part in found.parts] == [
        ((second.name,), "regressed"),
        ((first.name,), "unchanged"),
    ]


def test_a_name_that_no_executable_has() -> None:
    with pytest.raises(CaseError) as caught:
        judged(Script({CONV: 1, "x": 2}, {CONV: 1}))
    assert str(caught.value) == (
        "the profile of the base's module names a dispatch 'x', which is none of its 2 executables; "
        "compile the case again"
    )


def test_what_is_not_timed_is_not_judged() -> None:
    script = Script({CONV: 100, MATMUL: 50}, {CONV: 150, MATMUL: 50}, untimed={CONV: "it has no program alone"})
    found = judged(script)
    conv = by_operation(found)["conv_8x8_f32"]
    assert (conv.verdict, conv.ratio, conv.is_timed) == ("inconclusive", None, False)
    assert (conv.base_ns, conv.head_ns) == (0, 0), "a part whose time is known on one side alone has no change"
    assert by_operation(found)["matmul_4x4_f32"].is_timed
    assert found.notes[0] == (
        "1 of 2 dispatches of the base is not timed: m_dispatch_0_conv_8x8_f32 (it has no program alone)"
    )
    assert len(found.notes) == 2


def test_dispatches_that_are_not_timed_for_one_reason_are_named_together() -> None:
    why = "it has no program alone"
    script = Script({CONV: 100, MATMUL: 50, PAD: 9}, {MATMUL: 50}, untimed={CONV: why, PAD: why})
    found = judged(script, [an_executable(name) for name in (CONV, MATMUL, PAD)], [an_executable(MATMUL)])
    assert found.notes == (f"2 of 3 dispatches of the base are not timed: {CONV} and {PAD} ({why})",)


def test_a_heavy_profile_is_said() -> None:
    found = judged(Script({CONV: 100, MATMUL: 50}, {CONV: 100, MATMUL: 50}, profiled_ratio=1.5))
    assert found.base_elsewhere.profiled_ratio == pytest.approx(1.5)
    assert found.notes[0].startswith("with the profile a call of the base takes 1.50 times as long as without it")


def fail_at(number: int, error: BaseException) -> Callable[[int], None]:
    def at(asked: int) -> None:
        if asked == number:
            raise error

    return at


def test_a_generation_that_fails_fails_all_rows_and_is_tried_once() -> None:
    script = Script({CONV: 1, MATMUL: 5}, {CONV: 2, MATMUL: 5}, at=fail_at(3, CaseError("measure", "it crashed")))
    found = judged(script)
    assert {part.verdict for part in found.parts} == {"failed"}
    assert found.latency.reason == "it crashed"
    assert script.asked == [0, 1, 2, 3]
    with pytest.raises(CaseError, match="it crashed"):
        judged(Script({CONV: 1}, {CONV: 1}, at=fail_at(0, CaseError("measure", "it crashed"))))


def test_who_stops_it_gets_what_there_is() -> None:
    found = judged(Script({CONV: 100, MATMUL: 50}, {CONV: 150, MATMUL: 50}, at=fail_at(20, KeyboardInterrupt())))
    assert found.is_stopped
    assert len(found.generations) == 20
    parts = by_operation(found)
    assert parts["conv_8x8_f32"].verdict == "inconclusive"
    assert parts["matmul_4x4_f32"].verdict == "unchanged"


def test_shared_generations_are_told_once() -> None:
    told: list[tuple[int, Sampled]] = []
    script = Script({CONV: 1}, {CONV: 1})
    generations = Generations(script.latency, script.turns, lambda number, sampled: told.append((number, sampled)))
    first = generations(0)
    assert generations(0) is first
    second = generations(1)
    assert told == [(0, first), (1, second)]
    assert generations.taken == (first, second)
    assert first.seconds >= 0


class Kept:
    """A journal in memory."""

    def __init__(self) -> None:
        self.generations: dict[tuple[Method, int], Sampled] = {}

    def recall(self, method: Method, number: int) -> Sampled | None:
        """As it was kept."""
        return self.generations.get((method, number))

    def keep(self, method: Method, number: int, sampled: Sampled) -> None:
        """For the next stretch."""
        self.generations[method, number] = sampled


def test_generations_of_an_earlier_stretch_are_not_measured_again() -> None:
    journal, script = Kept(), Script({CONV: 1}, {CONV: 1})
    first = Generations(script.latency, script.turns, method="alone", journal=journal)(0)
    told: list[Sampled] = []
    again = Generations(
        script.latency, script.turns, lambda _, sampled: told.append(sampled), method="alone", journal=journal
    )
    assert again(0) is first
    assert told == [first, again(1)]
    assert script.asked == [0, 1]
    assert list(journal.generations) == [("alone", 0), ("alone", 1)]
    Generations(script.latency, script.turns, method="profile", journal=journal)(0)
    assert script.asked == [0, 1, 0]  # of another method nothing is known


def attributed_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profilers: int, profiled: Turns | None = None
) -> Attribution:
    """With so many sides whose runtime has a profile, which gives those turns."""
    toolchains = [make_fake_toolchain(tmp_path / name) for name in ("base tools", "head tools")]
    for toolchain in toolchains[:profilers]:
        with_profiler(toolchain)
    script = Script({CONV: 100, MATMUL: 50}, {CONV: 100, MATMUL: 50})
    like = Task(name="", sample=script.latency, rule=Rule(), budget_s=60)
    monkeypatch.setattr(attributing, "latency_task", lambda name, *_, **__: replace(like, name=name))
    monkeypatch.setattr(attributing, "ProfiledTurns", lambda *_, **__: profiled or script.turns)
    monkeypatch.setattr(attributing, "AloneTurns", lambda *_, **__: script.turns)
    base, head = (
        ProgramSide(module=a_module(toolchain, tmp_path), executables=tuple(EXECUTABLES)) for toolchain in toolchains
    )
    policy = MeasurementPolicy(rule=Rule(), budget_s=60, seed=0, call_limit_s=60, limits=Limits(seconds=60))
    return attribute(base, head, policy, tmp_path / "folder")


@pytest.mark.parametrize("profilers", [2, 1, 0])
def test_figures_of_two_methods_are_not_compared(
    profilers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = attributed_with(tmp_path, monkeypatch, profilers)
    assert found.method == ("profile" if profilers == 2 else "alone")
    assert len(found.parts) == 2


def test_what_cannot_be_profiled_is_timed_alone_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> tuple[Profile, Profile]:
        raise Unprofiled("the profile of 3 calls has nothing that the device did")

    found = attributed_with(tmp_path, monkeypatch, 2, profiled=refuse)
    assert found.method == "alone"
    assert found.notes == (
        "the runtime has no profile of local-sync: the profile of 3 calls has nothing that the device did",
    )
