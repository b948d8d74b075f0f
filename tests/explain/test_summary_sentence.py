"""One sentence of an explanation: how much, where, and what the compiler did differently there."""

from typing import Any

from syrupy.assertion import SnapshotAssertion

from harness.explain.summary_sentence import explanation_sentence
from harness.records.comparison import SideFacts
from harness.records.explanation import Elsewhere, Explanation, Part
from tests.builders import make_row

PIPELINE = (
    "the pipeline goes from CPUDoubleTilingExpert with vector_common_parallel = [1, 1, 8] "
    "to ConvTileAndDecomposeExpert with [1, 4, 1, 2]"
)


def a_side(release: str = "3.10.0", **fields: Any) -> SideFacts:
    facts: dict[str, Any] = {"label": f"iree=={release}", "run": "r", "suite": "s.toml", "started": "", "machine": ""}
    return SideFacts(**{**facts, "toolchains": (release,), **fields})


def parts(*texts: str) -> tuple[Part, ...]:
    """`matmul_8 5>6 regressed: what differs` in milliseconds, 0 where a side has none, `-` where they are not known."""
    return tuple(map(_part, texts))


def _part(text: str) -> Part:
    facts, _, what = text.partition(": ")
    operation, times, verdict = facts.rsplit(" ", 2)
    names = [(f"main_dispatch_{operation}",) * (1 + operation.count(" + "))] * 2
    base_ms, head_ms = (0.0, 0.0) if times == "-" else map(float, times.split(">"))
    if times != "-":
        names = [name if ms else () for name, ms in zip(names, (base_ms, head_ms), strict=True)]
    return Part(
        base=names[0],
        head=names[1],
        matched_by="operation and shape",
        operation=operation,
        base_ns=base_ms * 1e6,
        head_ns=head_ms * 1e6,
        verdict=verdict,  # type: ignore[arg-type]
        differs_at="flow" if what else "",
        what=(what, "and more") if what else (),
        is_timed=times != "-",
    )


def elsewhere(host_ms: float, **device_ms: float) -> Elsewhere:
    device_ns = {name: value * 1e6 for name, value in device_ms.items()}
    return Elsewhere(device_ns=device_ns, host_ns=host_ms * 1e6, profiled_ratio=1.0)


def explained(times: str, *texts: str, outside: tuple[Elsewhere, Elsewhere] | None = None, **fields: Any) -> str:
    """The sentence of an explanation, `10>13 regressed` of such parts."""
    ms, _, said = times.partition(" ")
    verdict: Any = said
    values = [None if text == "?" else float(text) * 1e6 for text in ms.split(">")]
    ratio = values[1] / values[0] if values[0] and values[1] else None
    base_elsewhere, head_elsewhere = outside or (elsewhere(1), elsewhere(1))
    facts: dict[str, Any] = {"base": a_side("3.10.0"), "head": a_side("3.12.0"), "method": "profile", **fields}
    explanation = Explanation(
        id="",
        created="",
        case="rdb/stock@cpu",
        latency=make_row(verdict, base_value=values[0], head_value=values[1], ratio=ratio, unit="ns"),
        parts=parts(*texts),
        base_elsewhere=base_elsewhere,
        head_elsewhere=head_elsewhere,
        **facts,
    )
    return explanation_sentence(explanation)


CONVOLUTIONS = [f"conv_32x90x62x{n}x3x3_f32 146>36.4 improved: {PIPELINE}" for n in range(5)]
UNTIMED = [f"conv_32x90x62x{n}x3x3_f32 - inconclusive: {PIPELINE}" for n in range(5)]
COPIES = ("copies: 1 on iree==3.10.0, 5 on iree==3.12.0",)
SAME = "matmul_8 8>8 unchanged"
UNSURE = ("matmul_8 5>6 inconclusive: why", "conv_8 3>3.1 unchanged")
LEFT = (elsewhere(-5), elsewhere(260))
TILES = "matmul_8 3.84>97.2 regressed: tiles go from [8, 8] to [1, 1]"

SAID = {
    "one change in several dispatches": explained(
        "733>183 improved", *CONVOLUTIONS, "slow_memcpy 0.5>0.4 unchanged: x"
    ),
    "several changes, and one against them": explained(
        "20>25 regressed",
        "matmul_8x8_f32 10>14 regressed: vector_common_parallel goes from [8, 8] to [1, 8]",
        "reduction_8_f32 3>5 regressed",
        "elementwise_8_f32 2>1 improved: only 3.12.0 fuses a copy into it",
        "elementwise_9_f32 2>1.99 improved: too small to be told",
    ),
    "only one side has it": explained("10>13 regressed", "matmul_8 0>3 new: only 3.12.0 has this dispatch"),
    "they make up for each other": explained(
        "10>10 unchanged", "matmul_8 5>6 regressed: slow", "conv_8 3>2 improved: fast"
    ),
    "a kind beside copies": explained(
        "100>40 improved", "conv_8 + slow_memcpy 40>10 improved: why", "conv_9 + slow_memcpy 40>10 improved: why"
    ),
    "outside of dispatches": explained(
        "10>13 regressed",
        "matmul_8 5>5 unchanged",
        outside=(elsewhere(4, copy=1, fill=0.5), elsewhere(3.5, copy=4.5, fill=0.5)),
        schedule=COPIES,
    ),
    "beside dispatches alone": explained(
        "733>183 improved", *CONVOLUTIONS, outside=(elsewhere(151), elsewhere(1)), method="alone"
    ),
    "beside dispatches alone, and against them": explained(
        "733>183 improved", *CONVOLUTIONS, outside=(elsewhere(1), elsewhere(151)), method="alone"
    ),
    "not timed, of several kinds": explained(
        *("733>183 improved", *UNTIMED, "pad_8 - inconclusive"),
        outside=(elsewhere(733), elsewhere(183)),
        schedule=COPIES,
    ),
    "alone more than the call": explained(
        "1.87>54.7 regressed",
        TILES,
        "pad 0.3>0.3 improved",
        outside=(elsewhere(-2.3), elsewhere(-42.8)),
        method="alone",
    ),
    "alone less than the change": explained(
        "165>800 regressed", "conv_8 170>540 regressed: why", outside=LEFT, method="alone"
    ),
    "no dispatch is certain": explained("10>11 regressed", *UNSURE),
    "nothing is certain between variants": explained(
        "10>10.1 inconclusive", *UNSURE, base=a_side(variants=("stock",)), head=a_side(variants=("fast",))
    ),
    "nothing is known": explained("?>? failed", *UNSURE),
    "passes and what is in none": explained(
        *("1000>1900 regressed", "Tile 100>700 regressed", "CSE 100>70 improved", "Fold 200>400 regressed"),
        *("Link 0>10 new", "Inline 90>90 unchanged"),
        method="passes",
    ),
    "no pass is certain": explained("1000>1200 regressed", *UNSURE, method="passes"),
    "nothing differs": explained("10>12 regressed", SAME),
    "nothing differs within a release": explained("10>12 regressed", SAME, head=a_side("3.10.0", label="b")),
    "nothing differs or changes": explained("10>12 unchanged", SAME),
}


def test_sentences(snapshot: SnapshotAssertion) -> None:
    assert snapshot == SAID
