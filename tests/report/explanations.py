"""Explanations as `harness explain` finds them; each argument is a test's subject."""

from dataclasses import replace
from typing import Any

from harness.records.comparison import Verdict
from harness.records.explanation import Elsewhere, Explanation, Part
from tests.report.builders import make_side, make_timed

PIPELINE = "the pipeline goes from CPUDoubleTilingExpert to ConvTileAndDecomposeExpert"
LINES = ("- lowering_config = [1, 1, 8]", "+ lowering_config = [1, 4, 1, 2]")


def make_part(name: str, base_ms: float, head_ms: float, verdict: str = "unchanged", **facts: Any) -> Part:
    """A dispatch of either side that does the same; its interval reaches half a percent either way."""
    dispatch = f"main_dispatch_{name}"
    ratio = head_ms / base_ms if base_ms and head_ms else None
    defaults: dict[str, Any] = {
        "base": (dispatch,) if base_ms else (),
        "head": (dispatch,) if head_ms else (),
        "matched_by": "operation and shape",
        "operation": name,
        "base_ns": base_ms * 1e6,
        "head_ns": head_ms * 1e6,
        "ratio": ratio,
        "ci_low": ratio and ratio * 0.995,
        "ci_high": ratio and ratio * 1.005,
        "p": 0.001,
        "verdict": verdict,
        "generations": 8,
    }
    return Part(**{**defaults, **facts})


def make_explanation(*parts: Part, **facts: Any) -> Explanation:
    """Of the block of ESRGAN under two releases: two convolutions and what is around them, unless parts are given."""
    differs: dict[str, Any] = {"differs_at": "executable-configurations", "what": (PIPELINE,), "lines": LINES}
    given = parts or (
        make_part("conv_a", 400.0, 100.0, "improved", **differs),
        make_part("conv_b", 300.0, 60.0, "improved", **differs),
        make_part(
            "pad",
            0.0,
            2.0,
            "new",
            matched_by="",
            p=None,
            differs_at="flow",
            what=("only 3.12.0 has this dispatch: a pad",),
        ),
        make_part("slow_memcpy", 5.0, 5.01),
    )
    spent = sum(part.base_ns for part in given), sum(part.head_ns for part in given)
    base, head = (
        Elsewhere(device_ns={"copy": copies_ms * 1e6}, host_ns=host_ms * 1e6, profiled_ratio=ratio)
        for copies_ms, host_ms, ratio in ((1.0, 2.0, 1.012), (0.5, 1.5, 1.02))
    )
    base_ns, head_ns = spent[0] + 3e6, spent[1] + 2e6
    verdict: Verdict = "improved" if head_ns < base_ns else "regressed"
    latency = make_timed("rdb/stock@cpu", base_ns / 1e6, head_ns / base_ns, verdict)
    explanation = Explanation(
        id="20261122-140000-esrgan-explain",
        created="2026-11-22T14:00:00+00:00",
        case="rdb/stock@cpu",
        base=make_side("iree==3.10.0", "3.10.0"),
        head=make_side("iree==3.12.0", "3.12.0"),
        method="profile",
        latency=replace(latency, head_value=head_ns),
        parts=tuple(given),
        base_elsewhere=base,
        head_elsewhere=head,
        schedule=("copies: 3 on 3.10.0, 5 on 3.12.0",),
        sentence="rdb/stock@cpu goes from 708 ms on 3.10.0 to 169 ms on 3.12.0: nearly all of that is in two places.",
        settings={"floor": 0.01, "alpha": 0.05, "budget_s": 120.0},
        command=("harness", "explain", "iree==3.10.0", "iree==3.12.0", "--case", "rdb/stock@cpu"),
    )
    return replace(explanation, **facts)
