"""A run becomes rows: what it was, what became of each case, and every figure."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from harness.history.tables import comparison_rows, tables_of
from harness.history.values import Point
from harness.records.comparison import Comparison, MachineFacts, SideFacts
from harness.records.comparison import Row as ComparedRow
from harness.records.run import Failure, IrCounts, Lost, Reference, Run
from harness.report.table import build_report
from harness.store.run_directory import load_run
from tests.history.made import NEWEST, REFERENCE, make_night, step

PUBLISHED = Path(__file__).parents[2] / "results" / "published" / "esrgan"


def point(run: Run, metric: str, case: str = "net/tiled@cpu", role: str = "newest") -> Point:
    found = [one for one in tables_of(run).points if (one.case, one.metric, one.role) == (case, metric, role)]
    assert len(found) == 1
    return found[0]


def test_a_run_of_two_toolchains_says_which_is_the_reference() -> None:
    (row,) = tables_of(make_night()).runs

    assert (row.toolchain, row.reference) == (NEWEST, REFERENCE)
    assert (row.suite, row.suite_file, row.started) == ("nightly", "suites/nightly.toml", "2026-01-01T02:00:00+00:00")
    assert (row.cases, row.measured, row.failed, row.missing, row.clock) == (4, 4, 0, 0, "")
    assert row.noise is not None
    assert 0 < row.noise < 0.02


def test_latency_is_the_median_over_generations_between_the_fastest_and_the_slowest() -> None:
    run = make_night()
    reported = {row.case: row for row in build_report(run).rows()}[f"net/tiled@cpu:{NEWEST}"]

    found = point(run, "latency")

    assert (found.value, found.low, found.high) == (
        reported.latency_ns,
        reported.latency_low_ns,
        reported.latency_high_ns,
    )
    assert (found.unit, found.toolchain, found.module_sha256) == ("ns", NEWEST, reported.module_sha256)


def test_the_ratio_to_the_reference_is_taken_in_the_same_rounds_and_has_an_interval() -> None:
    found = point(make_night(compiler=step(0, 1.25)), "latency-vs-reference")

    assert found.low is not None
    assert found.high is not None
    assert found.low < 1.25 < found.high
    assert found.high / found.low < 1.03
    assert found.unit == "ratio"


def test_the_reference_has_no_ratio_to_itself() -> None:
    metrics = {one.metric for one in tables_of(make_night()).points if one.role == "reference"}

    assert "latency" in metrics
    assert "latency-vs-reference" not in metrics


def test_the_ratio_to_the_baseline_is_to_the_variant_under_the_same_toolchain() -> None:
    found = point(make_night(compiler=step(0, 1.25)), "latency-vs-baseline")

    assert found.value == pytest.approx(0.6, rel=0.02)


def test_one_toolchain_alone_is_the_newest_and_has_the_ratios_of_its_report() -> None:
    run = make_night(toolchains=(NEWEST,))
    reported = {row.case: row for row in build_report(run).rows()}["net/tiled@cpu"]
    assert reported.estimate is not None

    found = point(run, "latency-vs-baseline")

    assert (found.value, found.low, found.high) == (
        reported.estimate.ratio,
        reported.estimate.low,
        reported.estimate.high,
    )
    assert tables_of(run).runs[0].reference is None


def test_a_case_with_the_module_of_another_shows_its_figures_so_that_its_series_goes_on() -> None:
    run = make_night(toolchains=(NEWEST,))
    module = run.builds[0].module_sha256
    inert = replace(
        run,
        builds=tuple(replace(build, module_sha256=module) for build in run.builds),
        rounds=tuple(
            replace(one, turns=tuple(turn for turn in one.turns if turn.case == "net/stock@cpu")) for one in run.rounds
        ),
    )

    assert [row.status for row in tables_of(inert).cases] == ["measured", "same"]
    assert point(inert, "latency").value == point(inert, "latency", "net/stock@cpu").value
    assert point(inert, "latency").module_sha256 == module
    assert point(inert, "latency-vs-baseline").value == 1.0


def test_a_build_out_of_the_cache_has_no_compile_time_since_nothing_was_timed() -> None:
    roles = {one.role for one in tables_of(make_night()).points if one.metric == "compile-time"}

    assert roles == {"newest"}


def test_counted_figures_come_from_the_build_the_reference_and_the_ir() -> None:
    run = make_night(toolchains=(NEWEST,))
    name = "net/stock@cpu"
    run = replace(
        run,
        ir=(IrCounts(case=name, counts={"flow/flow.dispatch": 7}),),
        references=(Reference(case=name, command=(), real_time_ns=(1e6,), host_peak_bytes=64, device_peak_bytes=0),),
    )
    found = {one.metric: (one.value, one.unit) for one in tables_of(run).points if one.case == name}

    assert found["flow/flow.dispatch"] == (7.0, "count")
    assert found["device-peak-memory"] == (0.0, "bytes")
    assert found["host-peak-memory"] == (64.0, "bytes")
    assert found["dispatches"] == (7.0, "count")
    assert found["instructions"][1] == "instructions"


def test_a_case_that_failed_keeps_why_and_what_was_known_before() -> None:
    run = make_night(toolchains=(NEWEST,))
    lost = Lost(case="net/tiled@cpu", generation=0, failure=Failure(stage="measure", message="the worker died"))
    run = replace(
        run,
        lost=(lost,),
        rounds=tuple(replace(one, turns=tuple(t for t in one.turns if t.case != lost.case)) for one in run.rounds),
    )

    tables = tables_of(run)
    row = next(one for one in tables.cases if one.case == "net/tiled@cpu")
    assert (row.status, row.stage, row.message) == ("failed", "measure", "the worker died")
    assert "iree-compile" in row.repro
    metrics = {one.metric for one in tables.points if one.case == row.case}
    assert "dispatches" in metrics
    assert "latency" not in metrics


def test_a_skipped_case_says_why() -> None:
    run = make_night(toolchains=(NEWEST,))
    cases = (run.header.cases[0], replace(run.header.cases[1], skip="there is no GPU"))

    row = tables_of(replace(run, header=replace(run.header, cases=cases))).cases[1]

    assert (row.status, row.message) == ("skipped", "there is no GPU")


def test_figures_that_no_clock_and_no_compiler_can_give_are_left_out() -> None:
    run = make_night(toolchains=(NEWEST,))
    builds = tuple(replace(build, compile_ns=-5) for build in run.builds)

    assert "compile-time" not in {one.metric for one in tables_of(replace(run, builds=builds)).points}


def test_every_turn_is_a_row_in_the_order_they_ran() -> None:
    run = make_night(generations=2, rounds=3)

    turns = tables_of(run).turns

    assert len(turns) == 2 * 3 * 4
    assert [one.place for one in turns[:4]] == [0, 1, 2, 3]
    assert [one.case for one in turns[:4]] == [turn.case for turn in run.rounds[0].turns]


def test_a_run_from_the_future_says_so_in_its_row() -> None:
    (row,) = tables_of(make_night(), now=datetime(2025, 1, 1, tzinfo=timezone.utc)).runs

    assert row.clock == "it started on 2026-01-01, which is in the future"


def test_the_published_run_becomes_the_rows_that_its_report_has() -> None:
    run = load_run(PUBLISHED)
    report = build_report(run)

    tables = tables_of(run)

    assert [row.status for row in tables.cases] == [row.status for row in report.rows()]
    latencies = {one.case: one.value for one in tables.points if one.metric == "latency"}
    assert latencies == {row.case: row.latency_ns for row in report.rows() if row.latency_ns is not None}
    assert all(math.isfinite(one.value) and one.value >= 0 for one in tables.points)
    assert len({one.series for one in tables.points}) == len(tables.points)
    assert tables.runs[0].machine_class == "AMD EPYC, 2 cores, Linux x86_64 (virtual)"
    assert "llvmpipe" in tables.runs[0].devices


def test_a_comparison_becomes_a_row_for_each_of_its_own() -> None:
    side = SideFacts(label="a", run="20260101-020000-nightly", suite="s", started="", toolchains=(), machine="")
    compared = Comparison(
        id="20260102-020000-nightly-compare",
        created="2026-01-02T02:00:00Z",
        base=side,
        head=replace(side, run="20260102-020000-nightly"),
        within=False,
        mode="remeasured",
        rule="generations",
        machine=MachineFacts(description="a machine"),
        rows=(
            ComparedRow(
                case="net/stock@cpu",
                model="net",
                variant="stock",
                device="cpu",
                metric="latency",
                verdict="regressed",
                ratio=1.1,
                gate="violated",
                unit="ns",
            ),
        ),
        summary={},
    )

    (row,) = comparison_rows(compared)

    assert (row.comparison, row.created) == ("20260102-020000-nightly-compare", "2026-01-02T02:00:00+00:00")
    assert (row.base_run, row.head_run) == ("20260101-020000-nightly", "20260102-020000-nightly")
    assert (row.verdict, row.ratio, row.gate, row.ci_low) == ("regressed", 1.1, "violated", None)
