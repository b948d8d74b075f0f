"""A run becomes rows: what it was, what became of each case, and every figure."""

import math
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.run import Failure, Lost, Run
from harness.report.rows import rows_of, series_id
from harness.report.run_report import build_report
from harness.store.run_directory import load_run
from tests.history.made import NEWEST, REFERENCE, make_night, step
from tests.report.builders import make_refused_run, with_turns, without

PUBLISHED = Path(__file__).parents[2] / "results" / "published" / "esrgan"
ALONE = make_night(toolchains=(NEWEST,))
STOCK, TILED = "net/stock@cpu", "net/tiled@cpu"


def tables_of(run: Run, **options: Any) -> Any:
    """The rows of a run, by table; a row's columns are its attributes."""
    rows = rows_of(run, **options)
    return SimpleNamespace(**{table: [SimpleNamespace(**row) for row in rows[table]] for table in rows})


def point(run: Run, metric: str, case: str = TILED, role: str = "newest") -> Any:
    found = [row for row in tables_of(run).points if (row.case, row.metric, row.role) == (case, metric, role)]
    assert len(found) == 1
    return found[0]


def metrics_of(run: Run, **facts: str) -> set[str]:
    """The metrics of the points with these facts."""
    return {row.metric for row in tables_of(run).points if facts.items() <= vars(row).items()}


def test_a_run_of_two_toolchains_says_which_is_the_reference() -> None:
    (row,) = tables_of(make_night()).runs
    assert (row.toolchain, row.reference) == (NEWEST, REFERENCE)
    assert (row.suite, row.suite_file, row.started) == ("nightly", "suites/nightly.toml", "2026-01-01T02:00:00+00:00")
    assert (row.cases, row.measured, row.failed, row.missing, row.clock) == (4, 4, 0, 0, "")
    assert row.noise is not None
    assert 0 < row.noise < 0.02
    (row,) = tables_of(make_night(), now=datetime(2025, 1, 1, tzinfo=timezone.utc)).runs
    assert row.clock == "it started on 2026-01-01, which is in the future"


def test_ratios_to_the_reference_and_to_the_baseline_are_of_the_same_rounds() -> None:
    run = make_night(compiler=step(0, 1.25))
    found = point(run, "latency-vs-reference")
    assert found.low < 1.25 < found.high
    assert found.high / found.low < 1.03
    assert found.unit == "ratio"
    assert point(run, "latency-vs-baseline").value == pytest.approx(0.6, rel=0.02)  # under the same toolchain
    reference = metrics_of(run, role="reference")
    assert "latency" in reference and "latency-vs-reference" not in reference


def test_a_case_with_the_module_of_another_shows_its_figures_so_that_its_series_goes_on() -> None:
    module = ALONE.builds[0].module_sha256
    builds = tuple(replace(build, module_sha256=module) for build in ALONE.builds)
    inert = replace(without(ALONE, TILED), builds=builds)
    assert [row.status for row in tables_of(inert).cases] == ["measured", "same"]
    assert point(inert, "latency").value == point(inert, "latency", STOCK).value
    assert point(inert, "latency").module_sha256 == module
    assert point(inert, "latency-vs-baseline").value == 1.0


def test_a_ratio_to_what_stands_for_a_refused_baseline_is_of_no_series() -> None:
    run = make_refused_run()
    assert {row.estimate is None for row in build_report(run).rows() if row.variant == "quick"} == {False}
    found = metrics_of(run, variant="quick")
    assert "latency" in found and "latency-vs-baseline" not in found


def test_what_was_not_timed_or_cannot_be_has_no_compile_time() -> None:
    roles = {row.role for row in tables_of(make_night()).points if row.metric == "compile-time"}
    assert roles == {"newest"}  # the reference's builds come out of the cache
    impossible = tuple(replace(build, compile_ns=-5) for build in ALONE.builds)
    assert "compile-time" not in metrics_of(replace(ALONE, builds=impossible))


def test_a_case_that_failed_or_was_skipped_says_why() -> None:
    lost = Lost(case=TILED, generation=0, failure=Failure(stage="measure", message="the worker died"))
    run = replace(without(ALONE, TILED), lost=(lost,))
    row = next(row for row in tables_of(run).cases if row.case == TILED)
    assert (row.status, row.stage, row.message) == ("failed", "measure", "the worker died")
    assert "iree-compile" in row.repro
    metrics = metrics_of(run, case=TILED)
    assert "dispatches" in metrics and "latency" not in metrics
    cases = (ALONE.header.cases[0], replace(ALONE.header.cases[1], skip="there is no GPU"))
    row = tables_of(replace(ALONE, header=replace(ALONE.header, cases=cases))).cases[1]
    assert (row.status, row.message) == ("skipped", "there is no GPU")


def test_the_published_run_becomes_the_rows_that_its_report_has() -> None:
    run = load_run(PUBLISHED)
    report, tables = build_report(run), tables_of(run)
    assert [row.status for row in tables.cases] == [row.status for row in report.rows()]
    latencies = {row.case: row.value for row in tables.points if row.metric == "latency"}
    assert latencies == {row.case: row.latency_ns for row in report.rows() if row.latency_ns is not None}
    assert all(math.isfinite(row.value) and row.value >= 0 for row in tables.points)
    assert len({row.series for row in tables.points}) == len(tables.points)
    assert tables.runs[0].machine_class == "AMD EPYC, 2 cores, Linux x86_64 (virtual)"
    assert "llvmpipe" in tables.runs[0].devices


# --- What makes points one series, and what makes them two ---

texts = st.text(max_size=12)
definitions = st.tuples(texts, texts, texts, texts, st.sampled_from(["newest", "reference", "other"]), texts)


@given(definitions, definitions)
def test_whatever_differs_makes_another_series(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    assert (series_id(*first) == series_id(*second)) == (first == second)
    assert len(series_id(*first)) == 16 and set(series_id(*first)) <= set("0123456789abcdef")


def test_an_id_stays_what_it_is_since_histories_are_kept() -> None:
    assert series_id("esrgan", "c0bca5be6afb3971", "latency", "AMD EPYC, 2 cores", "newest") == "a335a65fb23408a2"


def series_of(role: str, metric: str, *toolchains: str) -> list[str]:
    points = tables_of(make_night(toolchains=toolchains)).points
    return [row.series for row in points if (row.role, row.metric) == (role, metric)]


def test_the_newest_release_may_change_within_a_series_and_the_reference_may_not() -> None:
    before, after = ("3.11.0", "3.12.0"), ("3.12.0", "3.13.0")
    assert series_of("newest", "latency", *before) == series_of("newest", "latency", *after)
    for role, metric in (("reference", "latency"), ("newest", "latency-vs-reference")):
        assert not set(series_of(role, metric, *before)) & set(series_of(role, metric, *after))
    others = series_of("other", "latency", "3.10.0", *before, "3.13.0")
    assert len(set(others)) == len(others) == 4


def test_a_renamed_variant_goes_on_with_its_series() -> None:
    names = {case.name: f"net/new-{case.variant}@cpu" for case in ALONE.header.cases}
    cases = tuple(replace(c, name=names[c.name], variant=f"new-{c.variant}") for c in ALONE.header.cases)
    other = replace(
        with_turns(ALONE, lambda turn, _: replace(turn, case=names[turn.case])),
        header=replace(ALONE.header, cases=cases, baseline="new-stock"),
        builds=tuple(replace(build, case=names[build.case]) for build in ALONE.builds),
    )
    before, after = tables_of(ALONE).points, tables_of(other).points
    assert [row.series for row in before] == [row.series for row in after]
    assert before != after
