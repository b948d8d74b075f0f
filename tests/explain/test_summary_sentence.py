"""Phrases that sentences share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.explain.phrases import bytes_text, enumerated, on, time_text
from harness.explain.summary_sentence import explanation_sentence, labels_of
from harness.records.comparison import SideFacts, Verdict
from harness.records.explanation import Elsewhere, Explanation, Method, Part
from tests.builders import make_row


@pytest.mark.parametrize(
    ("words", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_enumerations(words: list[str], text: str) -> None:
    assert enumerated(words) == text


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (733.4e6, "733 ms"),
        (-183e6, "183 ms"),
        (20_105.0, "20.1 µs"),
        (1.234e9, "1.23 s"),
        (1.5e12, "1,500 s"),
        (99.96, "100.0 ns"),
        (0.25, "0.25 ns"),
        (0.0, "0.00 ns"),
    ],
)
def test_times(time_ns: float, text: str) -> None:
    assert time_text(time_ns) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 bytes"), (10_239, "10,239 bytes"), (20_000, "19.5 KiB"), (19_796_992, "18.9 MiB"), (3 << 30, "3.00 GiB")],
)
def test_bytes(number: int, text: str) -> None:
    assert bytes_text(number) == text


def test_what_is_on_which() -> None:
    assert on(("a", "b"), "13", "1") == "13 on a, 1 on b"


PIPELINE = (
    "the pipeline goes from CPUDoubleTilingExpert with vector_common_parallel = [1, 1, 8] "
    "to ConvTileAndDecomposeExpert with [1, 4, 1, 2]"
)


def a_side(release: str = "3.10.0", **fields: Any) -> SideFacts:
    facts: dict[str, Any] = {"label": f"iree=={release}", "run": "r", "suite": "s.toml", "started": "", "machine": ""}
    return SideFacts(**{**facts, "toolchains": (release,), **fields})


def a_part(operation: str, base_ms: float, head_ms: float, verdict: Verdict = "improved", *what: str) -> Part:
    name = f"main_dispatch_{operation}"
    return Part(
        base=(name,) if base_ms else (),
        head=(name,) if head_ms else (),
        matched_by="operation and shape",
        operation=operation,
        base_ns=base_ms * 1e6,
        head_ns=head_ms * 1e6,
        verdict=verdict,
        differs_at="executable-configurations" if what else "",
        what=what,
    )


def elsewhere(host_ms: float = 1.0, **device_ms: float) -> Elsewhere:
    return Elsewhere(
        device_ns={name: value * 1e6 for name, value in device_ms.items()}, host_ns=host_ms * 1e6, profiled_ratio=1.0
    )


def an_explanation(
    base_ms: float | None, head_ms: float | None, verdict: Verdict, parts: Sequence[Part], **fields: Any
) -> Explanation:
    ratio = head_ms / base_ms if base_ms and head_ms else None
    values = [None if value is None else value * 1e6 for value in (base_ms, head_ms)]
    facts: dict[str, Any] = {
        "base": a_side("3.10.0"),
        "head": a_side("3.12.0"),
        "base_elsewhere": elsewhere(),
        "head_elsewhere": elsewhere(),
        **fields,
    }
    return Explanation(
        id="",
        created="",
        case="rdb/stock@cpu",
        method="profile",
        latency=make_row(verdict, base_value=values[0], head_value=values[1], ratio=ratio, unit="ns"),
        parts=tuple(parts),
        **facts,
    )


CONVOLUTIONS = [a_part(f"conv_32x90x62x{n}x3x3_f32", 146, 36.4, "improved", PIPELINE, "more") for n in range(5)]


def test_what_could_not_be_timed_is_not_called_outside_of_dispatches() -> None:
    parts = [replace(part, base_ns=0.0, head_ns=0.0, verdict="inconclusive", is_timed=False) for part in CONVOLUTIONS]
    sides = {"base_elsewhere": elsewhere(733), "head_elsewhere": elsewhere(183)}
    schedule = ("copies: 15 on iree==3.10.0, 13 on iree==3.12.0",)
    explanation = an_explanation(733, 183, "improved", parts, schedule=schedule, **sides)
    assert explanation_sentence(explanation) == (
        "rdb/stock@cpu goes from 733 ms on iree==3.10.0 to 183 ms on iree==3.12.0 (0.25 times): 550 ms less is outside "
        f"of dispatches or in 5 convolutions that could not be timed, where {PIPELINE}."
    )
    pad = replace(a_part("pad_8", 0, 0, "inconclusive"), base=("d",), head=("d",), is_timed=False)
    assert explanation_sentence(replace(explanation, parts=(*parts, pad))).endswith(
        f"in 6 dispatches that could not be timed, of which these differ: 5 convolutions ({PIPELINE})."
    )


def test_a_convolution_with_a_copy_is_a_convolution_and_other_mixtures_are_parts() -> None:
    what = "the head fuses it: 2 dispatches on the base, 1 on the head"
    for first, others in (("conv_8x8_f32 + slow_memcpy", "2 convolutions"), ("pad_f32 + matmul_f32", "2 parts")):
        parts = [replace(a_part(first, 40, 10, "improved", what), base=("a", "b")) for _ in range(2)]
        parts[1] = replace(parts[1], operation="conv_9x9_f32 + slow_memcpy")
        assert f" in {others}, where {what}" in explanation_sentence(an_explanation(100, 40, "improved", parts)), first


@pytest.mark.parametrize(
    ("method", "host_ms", "clause"),
    [
        ("profile", (1, 151), "; outside of dispatches it takes 150 ms more (host +150 ms)"),
        ("alone", (1, 151), "; beside what dispatches take alone it takes 150 ms more"),
        ("alone", (-30, -5), ""),
        ("profile", (-30, -5), ""),
    ],
)
def test_the_host_has_no_change_where_dispatches_add_up_to_a_little_more_than_the_call(
    method: Method, host_ms: tuple[float, float], clause: str
) -> None:
    sides = dict(zip(("base_elsewhere", "head_elsewhere"), map(elsewhere, host_ms), strict=True))
    explanation = replace(an_explanation(733, 183, "improved", CONVOLUTIONS, **sides), method=method)
    assert explanation_sentence(explanation).endswith(f"where {PIPELINE}{clause}.")


def test_dispatches_that_take_more_than_the_call_are_no_shares_of_it() -> None:
    parts = [a_part("matmul_8", 3.84, 97.2, "regressed", "tiles go from [8, 8] to [1, 1]"), a_part("pad", 0.3, 0.3)]
    sides = {"base_elsewhere": elsewhere(-2.3), "head_elsewhere": elsewhere(-42.8)}
    explanation = replace(an_explanation(1.87, 54.7, "regressed", parts, **sides), method="alone")
    assert explanation_sentence(explanation) == (
        "rdb/stock@cpu goes from 1.87 ms on iree==3.10.0 to 54.7 ms on iree==3.12.0 (29.3 times): timed alone, "
        "matmul_8 goes from 3.84 ms to 97.2 ms (25.3 times), where tiles go from [8, 8] to [1, 1]."
    )


def test_what_dispatches_that_are_timed_alone_leave_of_a_change_is_said() -> None:
    sides = {"base_elsewhere": elsewhere(-5), "head_elsewhere": elsewhere(260)}
    parts = [a_part("conv_8x8_f32", 170, 540, "regressed", PIPELINE)]
    explanation = replace(an_explanation(165, 800, "regressed", parts, **sides), method="alone")
    said = explanation_sentence(explanation)
    assert said.endswith(f"where {PIPELINE}; 265 ms show in no dispatch that is timed alone.")
    over = replace(explanation, parts=(a_part("conv_8x8_f32", 100, 900, "regressed", PIPELINE),))
    assert explanation_sentence(over).endswith(f"where {PIPELINE}.")


def test_five_convolutions_get_another_pipeline() -> None:
    parts = [*CONVOLUTIONS, a_part("slow_memcpy", 0.5, 0.4, "unchanged", "the IR differs")]
    assert explanation_sentence(an_explanation(733, 183, "improved", parts)) == (
        "rdb/stock@cpu goes from 733 ms on iree==3.10.0 to 183 ms on iree==3.12.0 (0.25 times): "
        f"548 ms of these 550 ms are in 5 convolutions, where {PIPELINE}."
    )


def test_groups_of_a_change_and_what_goes_against_it() -> None:
    parts = [
        a_part("matmul_8x8x8_f32", 10, 14, "regressed", "vector_common_parallel goes from [8, 8] to [1, 8]"),
        a_part("reduction_8_f32", 3, 5, "regressed"),
        a_part("elementwise_8_f32", 2, 1, "improved", "only 3.12.0 fuses a copy into it"),
        a_part("elementwise_9_f32", 2, 1.99, "improved", "too small to be told"),
    ]
    assert explanation_sentence(an_explanation(20, 25, "regressed", parts)) == (
        "rdb/stock@cpu goes from 20.0 ms on iree==3.10.0 to 25.0 ms on iree==3.12.0 (+25 %): "
        "4.00 ms of these 5.00 ms are in matmul_8x8x8_f32, where vector_common_parallel goes from [8, 8] to [1, 8]; "
        "2.00 ms are in reduction_8_f32; elementwise_8_f32 takes 1.00 ms less, where only 3.12.0 fuses a copy into it."
    )


def test_dispatches_of_several_kinds_and_all_of_a_change() -> None:
    parts = [a_part("matmul_8", 1, 3, "regressed", "why"), a_part("conv_8", 1, 2.5, "regressed", "why")]
    assert explanation_sentence(an_explanation(10, 13.4, "regressed", parts)).endswith(
        "(+34 %): all of that is in 2 dispatches, where why."
    )
    new = [a_part("matmul_8", 0, 3, "new", "only 3.12.0 has it")]
    assert explanation_sentence(an_explanation(10, 13, "regressed", new)).endswith(
        ": all of that is in matmul_8, where only 3.12.0 has it."
    )


def test_a_change_outside_of_dispatches() -> None:
    found = an_explanation(
        10,
        13,
        "regressed",
        [a_part("matmul_8", 5, 5, "unchanged")],
        base_elsewhere=elsewhere(4, copy=1, fill=0.5),
        head_elsewhere=elsewhere(3.5, copy=4.5, fill=0.5),
        schedule=("copies: 1 on iree==3.10.0, 5 on iree==3.12.0",),
    )
    assert explanation_sentence(found).endswith(
        "(+30 %): outside of dispatches it takes 3.00 ms more (copy +3.50 ms, host -500 µs), "
        "with copies: 1 on iree==3.10.0, 5 on iree==3.12.0."
    )


@pytest.mark.parametrize(
    ("verdict", "fields", "end"),
    [
        (
            "regressed",
            {},
            ": its dispatches have the same IR on both sides, and the same schedule, which leaves LLVM, the runtime "
            "(3.10.0 and 3.12.0) and the machine.",
        ),
        (
            "regressed",
            {"head": a_side("3.10.0", label="b")},
            ": its dispatches have the same code on both sides, and the same schedule, which leaves how it is run "
            "(its flags, the device) and the machine.",
        ),
        (
            "unchanged",
            {},
            "takes as long on both sides (10.0 ms on iree==3.10.0, 12.0 ms on iree==3.12.0): its dispatches have "
            "the same IR on both sides, and the same schedule.",
        ),
    ],
)
def test_nothing_differs(verdict: Verdict, fields: dict[str, Any], end: str) -> None:
    found = an_explanation(10, 12, verdict, [a_part("matmul_8", 8, 8, "unchanged")], **fields)
    assert explanation_sentence(found).endswith(end)


def test_nothing_is_certain() -> None:
    parts = [a_part("matmul_8", 5, 6, "inconclusive", "why"), a_part("conv_8", 3, 3.1, "unchanged")]
    assert explanation_sentence(an_explanation(10, 11, "regressed", parts)).endswith(
        ": no dispatch's change is certain by itself; matmul_8 seems to change most, by 1.00 ms, where why."
    )
    assert explanation_sentence(an_explanation(10, 10.1, "inconclusive", parts)) == (
        "rdb/stock@cpu may have changed or not (10.0 ms on iree==3.10.0, 10.1 ms on iree==3.12.0): the code of 1 of "
        "2 dispatches differs, and none of them is certain to take another time."
    )
    assert explanation_sentence(an_explanation(None, None, "failed", parts)).startswith(
        "rdb/stock@cpu has no latency on both sides: "
    )


def test_parts_that_make_up_for_each_other() -> None:
    parts = [a_part("matmul_8", 5, 6, "regressed", "slow"), a_part("conv_8", 3, 2, "improved", "fast")]
    assert explanation_sentence(an_explanation(10, 10, "unchanged", parts)).endswith(
        ": matmul_8 takes 1.00 ms more, where slow; conv_8 takes 1.00 ms less, where fast."
    )


def test_sides_are_called_by_their_variants() -> None:
    side = a_side(label="run", variants=("stock",))
    assert labels_of(side, replace(side, variants=("a", "b"))) == ("stock", "a and b")
    assert labels_of(side, a_side("3.12.0")) == ("stock", "iree==3.12.0")


def test_a_convolution_that_is_fused_is_one() -> None:
    parts = [a_part("pad_f32 + conv_8_f32", 3, 1, "improved", "why"), a_part("conv_9_f32", 3, 1, "improved", "why")]
    assert explanation_sentence(an_explanation(10, 6, "improved", parts)).endswith(
        ": all of that is in 2 convolutions, where why."
    )
