"""Which executables of two programs do the same work, and which of these parts differ, over generations they share."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compare.engine import Generation, Task, decide
from harness.compare.samplers import MeasurementPolicy
from harness.errors import CaseError
from harness.explain import attribute as attributing
from harness.explain.attribute import Attribution, Generations, Sampled, attribute, judge_parts, parts_of, sides_ns
from harness.explain.parts import match_parts
from harness.explain.profile import Profile, Unprofiled
from harness.ir.differences import Executable
from harness.process import Limits
from harness.records.explanation import Method, Part
from harness.stats.rule import Rule
from tests.explain.conftest import a_module, an_executable, with_profiler
from tests.fakes.fake_toolchain import make_fake_toolchain

# --- Parts ---


def matched(base: str, head: str) -> list[tuple[str, str, str]]:
    """Parts of executables that are written `name` or `name=code`, as names joined with blanks."""
    sides = [[an_executable(*each.split("=")) for each in side.split()] for side in (base, head)]
    return [
        (" ".join(each.name for each in part.base), " ".join(each.name for each in part.head), part.matched_by)
        for part in match_parts(*sides)
    ]


SAME, FUSED = "same code", "fused or split"
CONV_1, CONV_2 = "m_dispatch_0_conv_1", "n_dispatch_0_conv_1"


@pytest.mark.parametrize(
    ("base", "head", "parts"),
    [
        # What stands between the same neighbours is one part.
        (
            "first pad conv last",
            "first padded-conv last",
            [("first", "first", SAME), ("pad conv", "padded-conv", FUSED), ("last", "last", SAME)],
        ),
        # As many of a kind are pairs in their order, as convolutions in another layout with a copy between them.
        (
            "m_dispatch_0_conv_8 m_dispatch_1_slow_memcpy m_dispatch_2_conv_9",
            "n_dispatch_0_conv_2d_8 n_dispatch_1_conv_2d_9",
            [
                ("m_dispatch_0_conv_8 m_dispatch_1_slow_memcpy", "n_dispatch_0_conv_2d_8", FUSED),
                ("m_dispatch_2_conv_9", "n_dispatch_1_conv_2d_9", "operation"),
            ],
        ),
        # A leftover joins the neighbour whose code differs, the one before it first.
        (f"{CONV_1}=a pad same", f"{CONV_2}=b same", [(f"{CONV_1} pad", CONV_2, FUSED), ("same", "same", SAME)]),
        (f"same pad {CONV_1}=a", f"same {CONV_2}=b", [("same", "same", SAME), (f"pad {CONV_1}", CONV_2, FUSED)]),
        # Between equal code it is of one side.
        (
            "a gone b",
            "a b new newer",
            [("a", "a", SAME), ("gone", "", ""), ("b", "b", SAME), ("", "new", ""), ("", "newer", "")],
        ),
    ],
)
def test_which_executables_are_a_part(base: str, head: str, parts: list[tuple[str, str, str]]) -> None:
    assert matched(base, head) == parts


@given(
    st.lists(st.sampled_from("abcdef"), max_size=8, unique=True),
    st.lists(st.sampled_from("abcdef"), max_size=8, unique=True),
    st.sets(st.sampled_from("abcdef")),
)
def test_every_executable_is_in_exactly_one_part(base: list[str], head: list[str], changed: set[str]) -> None:
    sides = [
        [
            an_executable(f"{side}_dispatch_{place}_{code}_1", code * (which if code in changed else 1))
            for place, code in enumerate(codes)
        ]
        for which, (side, codes) in enumerate((("m", base), ("n", head)), start=1)
    ]
    parts = match_parts(*sides)
    for side, of_parts in zip(sides, ([part.base for part in parts], [part.head for part in parts]), strict=True):
        assert sorted(each.name for part in of_parts for each in part) == sorted(each.name for each in side)
        assert all([side.index(each) for each in part] == sorted(map(side.index, part)) for part in of_parts)
    assert all(bool(part.matched_by) == bool(part.base and part.head) for part in parts)


# --- Judging them ---

CONV, MATMUL, PAD = "m_dispatch_0_conv_8x8_f32", "m_dispatch_1_matmul_4x4_f32", "m_dispatch_2_pad_f32"
EXECUTABLES = [an_executable(CONV), an_executable(MATMUL)]
# Over and over: so small that 1 % is seen at the first look.
NOISE = (0.0004, -0.0003, 0.0001, -0.0002)

Nanoseconds = Mapping[str, float]


def scripted(
    base: Nanoseconds,
    head: Nanoseconds,
    *,
    device_ns: Nanoseconds | None = None,
    profiled_ratio: float = 1.0,
    untimed: Mapping[str, str] | None = None,
    fails: Mapping[int, BaseException] | None = None,
) -> Callable[[int], Sampled]:
    """Generations that are written down, with noise, and 20 ns of the host in each call."""
    device_ns, fails = device_ns or {}, fails or {}

    def profile(dispatch_ns: Nanoseconds, noise: float) -> Profile:
        taken = {name: ns * math.exp(noise) for name, ns in dispatch_ns.items()}
        call_ns = math.fsum(taken.values()) + 20
        unknown = {name: why for name, why in (untimed or {}).items() if name in taken}
        timed = {**taken, **dict.fromkeys(unknown, 0.0)}
        return Profile(
            calls=10,
            call_ns=profiled_ratio * call_ns,
            dispatch_ns=timed,
            device_ns=device_ns,
            untimed=unknown,
        )

    def sample(number: int) -> Sampled:
        if number in fails:
            raise fails[number]
        noise = NOISE[number % len(NOISE)]
        of_base, of_head = (math.fsum([*side.values(), *device_ns.values(), 20]) for side in (base, head))
        log, of_head = math.log(of_head / of_base) + noise, of_head * math.exp(noise)
        latency = Generation(log_ratio=log, base=of_base, head=of_head, rounds=20, seconds=0.1)
        return Sampled(latency=latency, base=profile(base, 0.0), head=profile(head, noise), seconds=0.1)

    return sample


def judged(
    sample: Callable[[int], Sampled], base: Sequence[Executable] = EXECUTABLES, head: Sequence[Executable] = EXECUTABLES
) -> Attribution:
    like = Task(name="", sample=lambda number: sample(number).latency, rule=Rule(), budget_s=60)
    generations = Generations(sample)
    return judge_parts(parts_of((base, head), generations(0)), generations, like, method="profile")


def by_operation(attribution: Attribution) -> dict[str, Part]:
    return {part.operation: part for part in attribution.parts}


def test_the_part_that_differs_is_found_and_all_parts_add_up_to_the_latency() -> None:
    found = judged(scripted({CONV: 100, MATMUL: 50}, {CONV: 150, MATMUL: 50}, device_ns={"alloca": 7, "execute": 3}))
    conv, matmul = found.parts
    assert (conv.base, conv.head, conv.matched_by, conv.operation) == ((CONV,), (CONV,), "same code", "conv_8x8_f32")
    assert (conv.verdict, matmul.verdict, found.latency.decision) == ("regressed", "unchanged", "regressed")
    assert conv.ratio == pytest.approx(1.5, rel=1e-3)
    assert conv.ci_low is not None and conv.ci_high is not None and conv.ci_low < 1.5 < conv.ci_high
    assert conv.p is not None and conv.p < 0.05
    assert (conv.base_ns, conv.head_ns) == pytest.approx((100, 150), rel=1e-3)
    calls, elsewhere = sides_ns(found.latency), found.base_elsewhere
    assert calls is not None
    assert elsewhere.device_ns == {"alloca": 7, "execute": 3}
    in_all = sum(part.base_ns for part in found.parts) + sum(elsewhere.device_ns.values()) + elsewhere.host_ns
    assert in_all == pytest.approx(calls[0])
    assert (elsewhere.host_ns, found.head_elsewhere.host_ns) == pytest.approx((20, 20), abs=0.2)
    assert (found.method, found.notes) == ("profile", ())


def test_a_machine_that_changes_its_speed_changes_both_sides() -> None:
    speeds = (1.0, 1.3, 1.0, 1.5, 1.4, 1.0, 1.6, 1.0)
    generations = tuple(
        Generation(log_ratio=math.log(1.02), base=speed, head=1.02 * speed * hiccup, rounds=9, seconds=1.0)
        for speed, hiccup in zip(speeds, (1.0, 1.2, 1.0, 0.7, 0.7, 1.3, 0.7, 1.0), strict=True)
    )
    task = Task(name="row", sample=lambda number: generations[number % 8], rule=Rule(), budget_s=8)
    (outcome,) = decide([task])
    calls = sides_ns(outcome)
    assert calls is not None
    assert calls[1] / calls[0] == pytest.approx(1.02)


def test_what_one_side_alone_has_and_what_was_fused() -> None:
    more = [an_executable("m_dispatch_9_pack_f32"), an_executable(CONV), an_executable(PAD), an_executable(MATMUL)]
    with_pad, without = {CONV: 100.0, PAD: 30.0, MATMUL: 50.0}, {CONV: 100.0, MATMUL: 50.0}
    parts = by_operation(judged(scripted(with_pad, without), more))
    assert set(parts) == {"pad_f32", "conv_8x8_f32", "matmul_4x4_f32"}, "what does not run is no part"
    pad = parts["pad_f32"]
    assert (pad.verdict, pad.base_ns, pad.ratio, pad.p, pad.matched_by) == ("missing", 30, None, None, "")
    assert by_operation(judged(scripted(without, with_pad), EXECUTABLES, more))["pad_f32"].verdict == "new"
    base, head = [an_executable(PAD), an_executable(CONV, "conv")], [an_executable(CONV, "conv with pad")]
    (part,) = judged(scripted({PAD: 30, CONV: 100}, {CONV: 65}), base, head).parts
    assert (part.base, part.head, part.matched_by) == ((PAD, CONV), (CONV,), "fused or split")
    assert (part.operation, part.verdict) == ("pad_f32 + conv_8x8_f32", "improved")
    assert part.ratio == pytest.approx(0.5, rel=1e-3)


def test_parts_that_do_the_same_have_rows_of_their_own() -> None:
    first, second = an_executable("m_dispatch_0_conv_4_f32", "a"), an_executable("m_dispatch_1_conv_4_f32", "b")
    sample = scripted({first.name: 10, second.name: 20}, {first.name: 10, second.name: 40})
    found = judged(sample, [first, second], [first, second])
    verdicts = [(part.head, part.verdict) for part in found.parts]
    assert verdicts == [((second.name,), "regressed"), ((first.name,), "unchanged")]


def test_what_is_not_timed_is_not_judged_and_named_with_the_reason() -> None:
    why = "it has no program alone"
    sample = scripted(
        {CONV: 100, MATMUL: 50, PAD: 9}, {CONV: 150, MATMUL: 50}, untimed={CONV: why, PAD: why}, profiled_ratio=1.5
    )
    found = judged(sample, [*EXECUTABLES, an_executable(PAD)])
    conv = by_operation(found)["conv_8x8_f32"]
    assert (conv.verdict, conv.ratio, conv.is_timed) == ("inconclusive", None, False)
    assert (conv.base_ns, conv.head_ns) == (0, 0), "a part whose time is known on one side alone has no change"
    assert by_operation(found)["matmul_4x4_f32"].is_timed
    heavy, untimed, *_ = found.notes
    assert heavy.startswith("with the profile a call of the base takes 1.50 times as long as without it")
    assert untimed == f"not timed of 3 dispatches of the base: {CONV} and {PAD} ({why})"


def test_a_generation_that_fails_fails_all_rows() -> None:
    crash = CaseError("measure", "it crashed")
    found = judged(scripted({CONV: 1, MATMUL: 5}, {CONV: 2, MATMUL: 5}, fails={3: crash}))
    assert ({part.verdict for part in found.parts}, found.latency.reason) == ({"failed"}, "it crashed")
    assert len(found.generations) == 3
    with pytest.raises(CaseError, match="it crashed"):
        judged(scripted({CONV: 1}, {CONV: 1}, fails={0: crash}))
    with pytest.raises(CaseError, match="names a dispatch 'x', which is none of its 2 executables; compile the case"):
        judged(scripted({CONV: 1, "x": 2}, {CONV: 1}))


@pytest.mark.parametrize(("profilers", "refuses"), [(2, False), (1, False), (2, True)])
def test_what_cannot_be_profiled_on_both_sides_is_timed_alone(
    profilers: int, refuses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turns(number: int) -> tuple[Profile, Profile]:
        return sample(number).base, sample(number).head

    def profiled(number: int) -> tuple[Profile, Profile]:
        if refuses:
            raise Unprofiled("it has nothing")
        return turns(number)

    def once(method: Method, number: int, measure: Callable[[], Sampled]) -> Sampled:
        asked.append((method, number))
        return measure()

    toolchains = [make_fake_toolchain(tmp_path / name) for name in ("base tools", "head tools")]
    for toolchain in toolchains[:profilers]:
        with_profiler(toolchain)
    sample = scripted({CONV: 100, MATMUL: 50}, {CONV: 100, MATMUL: 50})
    like = Task(name="", sample=lambda number: sample(number).latency, rule=Rule(), budget_s=60)
    for name, stand_in in (("latency_task", like), ("ProfiledTurns", profiled), ("AloneTurns", turns)):
        monkeypatch.setattr(attributing, name, lambda *_, made=stand_in: made)
    base, head = (a_module(toolchain, tmp_path) for toolchain in toolchains)
    policy = MeasurementPolicy(rule=Rule(), budget_s=60, seed=0, call_limit_s=60, limits=Limits(seconds=60))
    asked: list[tuple[Method, int]] = []
    folder, both = tmp_path / "folder", (EXECUTABLES, EXECUTABLES)
    found = attribute((base, head), both, policy, folder, once=once, on_beyond=lambda *_: None)
    assert found.method == ("profile" if profilers == 2 and not refuses else "alone")
    assert asked[refuses:] == [(found.method, number) for number in range(len(found.generations))]
    assert len(found.parts) == 2
    assert found.notes == (("the runtime has no profile of local-sync: it has nothing",) if refuses else ())
