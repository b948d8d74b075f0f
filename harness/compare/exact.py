"""Two builds of a case -> rows of what needs no statistics: sizes, static counts and peak memory."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harness.metrics import BUILD_FACTS, REFERENCE_FACTS, Metric, ir_metric
from harness.records.case import Case
from harness.records.comparison import Row, Verdict, altered
from harness.records.run import Build, Reference

# One and many of what a metric counts; sizes count bytes.
_NOUNS = {"dispatches": ("dispatch", "dispatches"), "copies": ("copy", "copies"), "fills": ("fill", "fills")}
_BYTES = ("byte", "bytes")
_OPS = ("op", "ops")


def exact_rows(
    case: Case,
    base_build: Build | None,
    head_build: Build | None,
    base_reference: Reference | None,
    head_reference: Reference | None,
    base_ir: Mapping[str, int] = MappingProxyType({}),
    head_ir: Mapping[str, int] = MappingProxyType({}),
    *,
    name: str = "",
) -> tuple[Row, ...]:
    """One row for each exact metric of a case that both sides have a value of, in the order of the metrics.

    A value that only one side has gives no row: it comes from a tool that may not print it, and says nothing of the
    code. What a case lacks altogether is told by its latency row.

    Args:
        case: Whose name, model, variant and device the rows get.
        base_build: None where that side has none; likewise the others.
        base_ir: Op counts by `phase/op`.
        name: The rows', where it is not the case's.
    """
    blank = Row(
        case=name or case.name,
        model=case.model,
        variant=case.variant,
        device=case.device,
        metric="",
        verdict="unchanged",
    )
    rows = []
    if base_build is not None and head_build is not None:
        for metric, of_build in BUILD_FACTS.items():
            rows.append(_row(blank, metric, of_build(base_build), of_build(head_build)))
    if base_reference is not None and head_reference is not None:
        for metric, of_reference in REFERENCE_FACTS.items():
            rows.append(_row(blank, metric, of_reference(base_reference), of_reference(head_reference)))
    rows += [_row(blank, ir_metric(op), base_ir[op], head_ir[op]) for op in base_ir if op in head_ir]
    return tuple(row for row in rows if row is not None)


def _row(blank: Row, metric: Metric, base: float | None, head: float | None) -> Row | None:
    if base is None or head is None:
        return None
    return altered(
        blank,
        metric=metric.name,
        verdict=_verdict(base, head),
        ratio=head / base if base else None,
        base_value=base,
        head_value=head,
        unit=metric.unit,
        reason=_reason(metric, base, head),
    )


def _verdict(base: float, head: float) -> Verdict:
    if head == base:
        return "unchanged"
    return "regressed" if head > base else "improved"


def _reason(metric: Metric, base: float, head: float) -> str:
    one, many = _NOUNS.get(metric.name, _OPS if metric.unit == "count" else _BYTES)
    text = f"{head:,.0f} {one if head == 1 else many}"
    if head == base:
        return f"{text} on both sides"
    return f"{text} where there {'was' if base == 1 else 'were'} {base:,.0f}"
