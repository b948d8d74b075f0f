"""How reports show what a case reaches: columns, and a line of what bounds it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.records.run import Failure, Peak, Run, Work
from harness.report import render
from harness.report.flat import flatten
from harness.report.roofline import roofline_columns, roofline_line
from harness.report.table import build_report
from tests.report.conftest import make_small_run

WORK = Work(model="mm", operations=268_435_456, compulsory_bytes=3_145_728, footprint_bytes=3_145_728)


@pytest.fixture
def counted_run() -> Run:
    run = make_small_run()
    peak = Peak(
        device=run.header.cases[0].device,
        threads=1,
        operations_per_s=117e9,
        operations_by="FMA loop",
        bytes_per_s=33e9,
        bytes_by="dot",
    )
    return replace(run, work=(WORK,), peaks=(peak,))


def test_rows_have_rates_and_shares(counted_run: Run) -> None:
    stock, fast, inert = build_report(counted_run).rows()
    flat = flatten(stock)
    assert flat["operations_per_s"] == pytest.approx(268_435_456 / 4.7e-3, rel=0.05)
    assert flat["share_of_roof"] == flat["share_of_peak"] == pytest.approx(0.49, abs=0.03)
    assert flat["operations_per_byte"] == pytest.approx(85.3, abs=0.1)
    assert fast.attained is not None
    assert inert.attained == stock.attained  # it has the timings of the same module


def test_the_section_says_what_bounds_it(counted_run: Run) -> None:
    (section,) = build_report(counted_run).sections
    assert roofline_line(section) == (
        "268 MFLOP a call on at least 3.15 MB; one core of this machine: 117 GFLOP/s in f32 (FMA loop), 33 GB/s (dot)"
    )
    heads = [column.head for column in roofline_columns(section)]
    assert heads[1:] == [
        "arithmetic (GFLOP/s)",
        "of the peak (%)",
        "memory (GB/s)",
        "intensity (FLOP/byte)",
        "of the roof (%)",
    ]


def test_the_terminal_has_two_columns_where_there_is_room_and_markdown_all(counted_run: Run) -> None:
    wide = render(counted_run, "terminal", width=160)
    assert "GFLOP/s" in wide
    assert "of the roof" in wide
    full, short = (render(counted_run, "markdown", full=full) for full in (True, False))
    assert "intensity (FLOP/byte)" in full
    assert "intensity" not in short


def test_what_is_not_in_the_count_is_named(counted_run: Run) -> None:
    def line(work: Work, peak: Peak | None = None) -> str:
        (section,) = build_report(replace(counted_run, work=(work,), peaks=(peak,) if peak else ())).sections
        return roofline_line(section)

    assert line(replace(WORK, uncounted={"iree_linalg_ext.topk": 2})).endswith(", without iree_linalg_ext.topk (2)")
    failure = Failure(stage="ir", message="a size does not follow from the inputs")
    assert line(Work(model="mm", failure=failure)) == (
        "its arithmetic is not counted: a size does not follow from the inputs"
    )
    broken = Peak(device=counted_run.header.cases[0].device, threads=2, failure=failure)
    assert "; the peaks of 2 cores are not known: a size does not" in line(WORK, broken)


def test_a_run_that_counted_nothing_shows_nothing_of_it() -> None:
    for text in (render(make_small_run(), "terminal", width=160), render(make_small_run(), "markdown", full=True)):
        assert "FLOP" not in text
