"""The runtime's profile of a module: how it is taken, what it says, and when it is not to be trusted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import CaseError
from harness.explain.profile import (
    Profile,
    ProfiledTurns,
    Span,
    Unprofiled,
    lay_out,
    mean_profile,
    per_call_ns,
    profile_module,
    read_profile,
    time_module,
)
from harness.records.run import Statistics
from harness.toolchain import Toolchain
from tests.explain.conftest import LIMITS, Row, a_device_event, a_group, a_module, an_event, lines, with_profiler
from tests.fakes.fake_toolchain import calls, make_fake_toolchain

REAL = Path(__file__).parent / "profiles"
CONV, MATMUL = "main_dispatch_0_conv_16x16x32x3x3x16_f32", "main_dispatch_1_matmul_256x32x32_f32"


# --- what it says ---


def test_a_call_as_a_release_prints_it() -> None:
    dispatches, queue = ((REAL / f"iree-3.13.0-{command}.jsonl").read_text() for command in ("dispatch", "queue"))
    profile = read_profile(dispatches, queue, calls=1, call_ns=60_000)
    # Two allocations; what a command buffer took besides its dispatches.
    device_ns = {"alloca": 17_186, "execute": 540, "barrier": 30}
    dispatch_ns = {CONV: 20_010, MATMUL: 4507}
    assert profile == Profile(calls=1, call_ns=60_000, dispatch_ns=dispatch_ns, device_ns=device_ns)
    assert list(profile.dispatch_ns) == [CONV, MATMUL]


def spans(text: str) -> list[Span]:
    """`a 0-10, all 0-30 around`."""
    words = [part.split() for part in text.split(", ") if part]
    return [
        Span(what=what, start_ns=int(times.split("-")[0]), end_ns=int(times.split("-")[1]), encloses=bool(around))
        for what, times, *around in words
    ]


def read(dispatches: Sequence[Row], queue: Sequence[Row] = (), calls: int = 1) -> Profile:
    return read_profile(lines(dispatches), lines(queue), calls=calls, call_ns=1000)


def test_of_a_device_of_its_own_the_first_call_does_not_count() -> None:
    """It may compile what it runs: the second call takes as long as the third."""
    times = spans("f 0-9000, g 9000-9010, f 9100-9200, g 9200-9210, f 9300-9400, g 9400-9410")
    rows = [a_device_event(each.what, each.start_ns, each.end_ns, ns_per_tick=2) for each in times]
    assert read(rows, calls=3) == Profile(calls=3, call_ns=1000, dispatch_ns={"f": 200, "g": 20})


def test_what_runs_several_times_and_on_several_devices_is_one_dispatch_and_several_profiles_are_one() -> None:
    elsewhere = {"executable_id": 2}  # the same on another device
    groups = [a_group("f"), {**a_group("f"), **elsewhere}]
    times = (0, 10), (30, 35), (40, 47)
    events: list[Row] = [an_event("dispatch", start, end, ordinal=0) for start, end in times]
    assert read(groups, [*events[:2], {**events[2], **elsewhere}]).dispatch_ns == {"f": 22}
    one = Profile(calls=3, call_ns=100, dispatch_ns={"f": 10, "g": 1}, device_ns={"copy": 4})
    mean = mean_profile([one, Profile(calls=5, call_ns=400, dispatch_ns={"f": 40, "h": 2})])
    assert (mean.calls, mean.device_ns) == (8, {"copy": 2})
    assert mean.call_ns == pytest.approx(200)
    assert mean.dispatch_ns == pytest.approx({"f": 20, "g": 0.5, "h": 1})


LOST = "the profile does not have all that happened"
EVENT, DEVICE = an_event("dispatch", 0, 10, ordinal=0), a_device_event("f", 0, 10)


@pytest.mark.parametrize(
    ("dispatches", "queue", "sentence"),
    [
        ([{"type": "dispatch_summary", "invalid_host_dispatches": 2}], [], f"{LOST} (invalid host dispatches: 2)"),
        ([a_group("f")], [{**EVENT, "valid": False}], "the profile has an operation without a valid time (dispatch)"),
        ([a_group("f")], [{**EVENT, "function_ordinal": 5}], "the profile has a dispatch that it does not name (func"),
        ([{**DEVICE, "clock_fit_available": False}], [], "the profile has no time of dispatch f: the device's clock "),
        ([{**DEVICE, "valid": False}], [], "the profile has a dispatch without a valid time (f)"),
        ([], [], "the profile of 1 call has nothing that the device did"),
        ([{"no": "type"}], [], "iree-profile printed rows of an unknown form (KeyError("),
    ],
)
def test_a_profile_that_is_not_to_be_trusted(dispatches: list[Row], queue: list[Row], sentence: str) -> None:
    with pytest.raises(CaseError) as caught:
        read(dispatches, queue)
    assert str(caught.value).startswith(sentence)
    assert caught.value.stage == "measure"


# --- how it is taken ---


def profiler(toolchain: Toolchain) -> Toolchain:
    """One that has seen three calls of one dispatch."""
    events = [an_event("dispatch", start, start + 10, ordinal=0) for start in (0, 100, 200)]
    return with_profiler(toolchain, dispatch=[a_group("f")], queue=events)


def commands(toolchain: Toolchain) -> list[tuple[str, ...]]:
    return [call.arguments for call in calls(toolchain, "iree-benchmark-module")]


def option(command: Sequence[str], name: str) -> str:
    return next((word.partition("=")[2] for word in command if word.startswith(f"--{name}=")), "")


def test_what_a_call_reads_is_laid_out(toolchain: Toolchain, tmp_path: Path) -> None:
    array, scalar, raw, weights = (tmp_path / name for name in ("a.npy", "s.npy", "r.bin", "w.irpa"))
    np.save(array, np.ones(4, np.float32))
    np.save(scalar, np.int32(7))
    arguments: list[dict[str, Any]] = [
        {"file": str(array)},
        {"file": str(scalar), "scalar": True},
        {"file": str(raw), "raw": True, "shape": [2, 3], "element_type": "BFLOAT_16"},
    ]
    module = a_module(toolchain, tmp_path, arguments=arguments, parameters={"net": weights, "": weights})
    for _ in range(2):
        call = lay_out(module, tmp_path / "folder")
    assert call.inputs == (f"@{array}", "7", f"2x3xbf16=@{raw}")
    assert call.parameters == (f"net={weights}", f"{weights}")
    assert (call.folder / "module.vmfb").read_bytes() == b"code"


@pytest.mark.parametrize(("uri", "mode"), [("local-task", "host-execution"), ("vulkan", "dispatch-events")])
def test_a_profile_has_as_many_calls_as_can_be_read_soon_and_is_of_the_kind_that_the_device_has(
    toolchain: Toolchain, tmp_path: Path, uri: str, mode: str
) -> None:
    device = profiler(toolchain)
    if mode == "dispatch-events":
        events = [a_device_event("f", start, start + 10) for start in (0, 100, 200)]
        device = with_profiler(device, dispatch=[{"type": "dispatch_summary", "invalid_dispatches": 0}, *events])
    counts = ("awaits", "submissions", "executables", "transient_bytes", "constant_bytes", "variable_bytes")
    counted = Statistics(dispatches=80, copies=10, fills=2, **dict.fromkeys(counts, 1))
    module = a_module(device, tmp_path, uri=uri, run_flags=["--fake_times_ns=50000000"], statistics=counted)
    profile = profile_module(module, tmp_path / "folder", 0.15, LIMITS, call_ns=5e7)
    assert profile == Profile(calls=3, call_ns=5e7, dispatch_ns={"f": 10})
    profile_module(module, tmp_path / "folder", 0.15, LIMITS, call_ns=1e3)
    first, second = commands(toolchain)
    assert [option(each, "benchmark_min_time") for each in (first, second)] == ["3x", "300x"]
    assert option(first, "device_profiling_mode") == f"{mode},executable-metadata"
    assert option(first, "device_profiling_output")


def test_a_tool_that_fails(toolchain: Toolchain, tmp_path: Path) -> None:
    module = a_module(profiler(toolchain), tmp_path, run_flags=["--fake_exit=3"])
    with pytest.raises(CaseError, match=r"^iree-benchmark-module exited with status 3") as caught:
        profile_module(module, tmp_path / "folder", 0.1, LIMITS, call_ns=1e9)
    assert (caught.value.stage, isinstance(caught.value, Unprofiled)) == ("measure", False)
    on_device = a_module(toolchain, tmp_path, run_flags=["--fake_exit=3"], uri="cuda")
    with pytest.raises(Unprofiled, match=r"^iree-benchmark-module exited with status 3"):
        profile_module(on_device, tmp_path / "folder", 0.1, LIMITS, call_ns=1e9)
    silent = a_module(toolchain, tmp_path, run_flags=["--fake_no_output"])
    with pytest.raises(CaseError, match="iree-benchmark-module printed JSON of an unknown form") as caught:
        time_module(silent, tmp_path / "folder", 0.1, LIMITS)
    assert caught.value.stage == "measure"


def test_sides_take_turns(tmp_path: Path) -> None:
    toolchains = [profiler(make_fake_toolchain(tmp_path / side)) for side in ("base tools", "head tools")]
    base, head = (
        a_module(toolchain, tmp_path / side, run_flags=[f"--fake_times_ns={ns}"])
        for toolchain, side, ns in zip(toolchains, ("b", "h"), (10**8, 2 * 10**8), strict=True)
    )
    turns = ProfiledTurns(base, head, tmp_path / "folder", LIMITS)
    for number in range(2):
        of_base, of_head = turns(number)
        assert (of_base.call_ns, of_head.call_ns) == pytest.approx((1e8, 2e8))
        assert of_base.calls == of_head.calls == 6
        assert dict(of_base.dispatch_ns) == {"f": pytest.approx(10)}
    # Twice with a profile, and before that to learn how long a call takes, without one.
    assert [len(calls(toolchain, "iree-benchmark-module")) for toolchain in toolchains] == [3 + 2, 3 + 2]
    failing = a_module(toolchains[1], tmp_path / "f", run_flags=["--fake_exit=3"])
    with pytest.raises(CaseError, match=r"^the head's module: iree-benchmark-module exited with status 3"):
        ProfiledTurns(base, failing, tmp_path / "other", LIMITS)(0)


CALLS = "f 0-900, g 900-990, f 991-1001, g 1001-1006, f 1007-1019, g 1019-1026"


@pytest.mark.parametrize(
    ("text", "calls", "found"),
    [
        (CALLS, 3, {"f": 12, "g": 7}),  # calls that do the same count with their median
        (CALLS.rpartition(", ")[0], 3, {"f": 922 / 3, "g": 95 / 3}),  # others with their mean
        ("f 0-4, g 4-10, f 20-22, f 30-32", 1, {"f": 8, "g": 6}),
        # Each moment is given once.
        ("a 0-10, b 5-25", 1, {"a": 7.5, "b": 17.5}),
        ("a 0-30, b 10-20, c 10-20", 1, {"a": 20 + 10 / 3, "b": 10 / 3, "c": 10 / 3}),
        ("all 0-30 around, a 5-10, b 12-20", 1, {"all": 17, "a": 5, "b": 8}),
    ],
)
def test_what_a_call_spends_in_each_thing(text: str, calls: int, found: dict[str, float]) -> None:
    assert per_call_ns(spans(text), calls) == pytest.approx(found)
