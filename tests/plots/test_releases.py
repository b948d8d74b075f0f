"""Cases over releases: what has a point, what has a mark instead, and what is drawn of many."""

import math
from dataclasses import replace
from typing import Any

import pytest

from harness.plots.canvas import LIGHT
from harness.plots.releases import draw_releases, release_panels
from harness.records.run import Failure
from harness.report.run_report import Report
from harness.report.run_rows import Row, Section
from harness.stats import Estimate, Latency
from harness.stats.intervals import Location
from tests.plots.conftest import assert_readable, make_report, texts_of

LATENCY = Latency(median_ns=1e6, low_ns=1e6, high_ns=1e6, spread=0.0, generations=5, rounds=40)


def a_row(variant: str, toolchain: str, ratio: float | None, **given: Any) -> Row:
    """A case under a release; its ratio is to the baseline, and None where it has none."""
    where = Location(centre=math.log(ratio or 1), low=math.log((ratio or 1) / 1.1), high=math.inf, p=0.01, size=5)
    facts: dict[str, Any] = {
        "case": f"net/{variant}@cpu:{toolchain}", "group": "net@cpu", "model": "net", "variant": variant,
        "device": "cpu", "toolchain": toolchain, "baseline": False, "status": "measured", "latency": LATENCY,
        "estimate": Estimate(where=where, confidence=0.95, rounds=40),
    }  # fmt: skip
    if ratio is None:
        facts |= {"status": "failed", "latency": None, "estimate": None}
    return Row(**{**facts, **given})


def a_report(*rows: Row) -> Report:
    section = Section(group="net@cpu", model="net", device="cpu", device_facts="", call="", baseline="stock:3.6.0",
                      rounds=(40,), rows=rows)  # fmt: skip
    return replace(make_report({"stock": 1.0}), sections=(section,))


ABORTED = Failure(stage="compile", message="it aborts")
ROWS = (
    a_row("stock", "3.6.0", 1.0, baseline=True, estimate=None),
    a_row("stock", "3.7.0", 1.5),
    a_row("stock", "3.8.0", None, failure=ABORTED, remarks=("failed at compile: it aborts", "and more")),
    a_row("tiled", "3.6.0", None, failure=Failure(stage="verify", message="it is wrong", mismatch=True)),
    a_row("tiled", "3.7.0", 0.5),
    a_row("tiled", "3.8.0", None, status="skipped", remarks=("skipped: IREE 3.8.0 has no flag --a",)),
    a_row("late", "3.8.0", None, status="skipped"),
    a_row("onnxruntime", "", 0.2, peer="onnxruntime"),
)


def test_a_line_for_each_variant_and_a_mark_where_it_fails_or_is_wrong() -> None:
    (panel,) = release_panels(a_report(*ROWS))
    assert list(panel.lines) == ["stock", "tiled"]
    stock, tiled = panel.lines.values()
    assert [point.ratio for point in stock] == [1.0, pytest.approx(1.5), None]
    assert [point.mark for point in (*stock, *tiled)] == ["", "", "✗", "≠", "", "∅"]
    assert (stock[1].high, panel.rest) == (None, 0)
    svg = draw_releases(a_report(*ROWS)).file(LIGHT, "svg")
    assert_readable(svg)
    texts = texts_of(svg)
    assert {"net @ cpu, beside stock:3.6.0", "stock", "tiled", "3.6.0", "3.7.0", "3.8.0", "✗", "≠"} <= set(texts)
    said = " ".join(texts)
    assert "✗: fails. ≠: wrong outputs. ∅: skipped." in said
    assert "✗ stock 3.8.0: failed at compile: it aborts" in said
    assert "∅ tiled 3.8.0: skipped: IREE 3.8.0 has no flag --a" in said


def test_a_line_alone_says_what_a_call_takes() -> None:
    rows = [
        replace(row, latency=replace(LATENCY, median_ns=ns)) for row, ns in zip(ROWS[:2], (1e6, 1.5e6), strict=True)
    ]
    assert {"1.000", "1.500", "above the points: ms"} <= set(
        texts_of(draw_releases(a_report(*rows)).file(LIGHT, "svg"))
    )


def test_of_many_variants_and_releases_what_fits_is_drawn() -> None:
    rows = [
        a_row(f"variant-{number}", f"3.{release}.0", 1 + number / 10) for number in range(10) for release in range(60)
    ]
    (panel,) = release_panels(a_report(*rows))
    assert (len(panel.lines), panel.rest) == (8, 2)
    svg = draw_releases(a_report(*rows)).file(LIGHT, "svg")
    assert_readable(svg)
    texts = texts_of(svg)
    assert "3.59.0" in texts
    assert "3.58.0" not in texts
    assert "Not drawn: 2 more variants." in texts


def test_a_variant_that_fails_everywhere_has_its_marks_alone() -> None:
    rows = [a_row("stock", "3.6.0", None, failure=ABORTED), a_row("tiled", "3.6.0", 1.0, baseline=True, estimate=None)]
    assert {"stock", "tiled", "✗"} <= set(texts_of(draw_releases(a_report(*rows)).file(LIGHT, "svg")))
