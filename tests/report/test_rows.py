"""A run becomes rows: what it was, what became of each case, and every figure."""

from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.run import Failure, Lost, Run
from harness.report.rows import rows_of, series_id
from tests.history.made import NEWEST, REFERENCE, make_night, step
from tests.report.builders import make_refused_run, with_turns, without

ALONE = make_night(toolchains=(NEWEST,))
STOCK, TILED = "net/stock@cpu", "net/tiled@cpu"


def tables_of(run: Run, **options: Any) -> Any:
    """The rows of a run, by table; a row's columns are its attributes."""
    rows = rows_of(run, **options)
    return SimpleNamespace(**{table: [SimpleNamespace(**row) for row in rows[table]] for table in rows})


def point(run: Run, metric: str, case: str = TILED) -> Any:
    found = [row for row in tables_of(run).points if (row.case, row.metric, row.role) == (case, metric, "newest")]
    assert len(found) == 1
    return found[0]


def metrics_of(run: Run, **facts: str) -> set[str]:
    """The metrics of the points with these facts."""
    return {row.metric for row in tables_of(run).points if facts.items() <= vars(row).items()}


def test_a_run_of_two_toolchains_says_which_is_the_reference() -> None:
    (row,) = tables_of(make_night(), now=datetime(2025, 1, 1, tzinfo=timezone.utc)).runs
    assert (row.toolchain, row.reference) == (NEWEST, REFERENCE)
    assert (row.suite, row.suite_file, row.started) == ("nightly", "suites/nightly.toml", "2026-01-01T02:00:00+00:00")
    assert (row.cases, row.measured, row.failed, row.missing) == (4, 4, 0, 0)
    assert row.noise is not None
    assert 0 < row.noise < 0.05
    assert row.clock == "it started on 2026-01-01, which is in the future"


def test_ratios_to_the_reference_and_to_the_baseline_are_of_the_same_rounds() -> None:
    run = make_night(compiler=step(0, 1.25), generations=3, rounds=4)
    found = point(run, "latency-vs-reference")
    assert found.low < 1.25 < found.high < 1.03 * found.low
    assert found.unit == "ratio"
    assert point(run, "latency-vs-baseline").value == pytest.approx(0.6, rel=0.02)  # under the same toolchain
    reference = metrics_of(run, role="reference")
    assert "latency" in reference and "latency-vs-reference" not in reference
    assert "compile-time" not in reference, "its builds come out of the cache, and were not timed"


def test_a_case_with_the_module_of_another_shows_its_figures_so_that_its_series_goes_on() -> None:
    module = ALONE.builds[0].module_sha256
    builds = tuple(replace(build, module_sha256=module, compile_ns=-5) for build in ALONE.builds)
    inert = replace(without(ALONE, TILED), builds=builds)
    assert [row.status for row in tables_of(inert).cases] == ["measured", "same"]
    assert point(inert, "latency").value == point(inert, "latency", STOCK).value
    assert point(inert, "latency").module_sha256 == module
    assert point(inert, "latency-vs-baseline").value == 1.0
    assert "compile-time" not in metrics_of(inert), "it cannot be negative"


def test_a_ratio_to_what_stands_for_a_refused_baseline_is_of_no_series() -> None:
    found = metrics_of(make_refused_run(), variant="quick")
    assert "latency" in found and "latency-vs-baseline" not in found


def test_a_case_that_failed_or_was_skipped_says_why() -> None:
    lost = Lost(case=TILED, generation=0, failure=Failure(stage="measure", message="the worker died"))
    run = replace(without(ALONE, TILED), lost=(lost,))
    _, row = tables_of(run).cases
    assert (row.status, row.stage, row.message) == ("failed", "measure", "the worker died")
    assert "iree-compile" in row.repro
    metrics = metrics_of(run, case=TILED)
    assert "dispatches" in metrics and "latency" not in metrics
    cases = (ALONE.header.cases[0], replace(ALONE.header.cases[1], skip="there is no GPU"))
    _, row = tables_of(replace(ALONE, header=replace(ALONE.header, cases=cases))).cases
    assert (row.status, row.message) == ("skipped", "there is no GPU")


# --- What makes points one series, and what makes them two ---

texts = st.text(max_size=12)
definitions = st.tuples(texts, texts, texts, texts, st.sampled_from(["newest", "reference", "other"]), texts)


@given(definitions, definitions)
def test_whatever_differs_makes_another_series_and_an_id_stays(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    assert (series_id(*first) == series_id(*second)) == (first == second)
    assert series_id("esrgan", "c0bca5be6afb3971", "latency", "AMD EPYC, 2 cores", "newest") == "a335a65fb23408a2"


def series_of(role: str, metric: str, *toolchains: str) -> list[str]:
    points = tables_of(make_night(toolchains=toolchains)).points
    return [row.series for row in points if (row.role, row.metric) == (role, metric)]


def test_the_newest_release_may_change_within_a_series_and_the_reference_may_not() -> None:
    before, after = ("3.11.0", "3.12.0"), ("3.12.0", "3.13.0")
    assert series_of("newest", "latency", *before) == series_of("newest", "latency", *after)
    for role, metric in (("reference", "latency"), ("newest", "latency-vs-reference")):
        assert not set(series_of(role, metric, *before)) & set(series_of(role, metric, *after))
    for metric in ("latency", "latency-vs-reference"):
        others = series_of("other", metric, "3.10.0", *before, "3.13.0")
        assert len(set(others)) == len(others) == 4


def test_a_renamed_variant_goes_on_with_its_series() -> None:
    names = {case.name: f"net/new-{case.variant}@cpu" for case in ALONE.header.cases}
    cases = tuple(replace(c, name=names[c.name], variant=f"new-{c.variant}") for c in ALONE.header.cases)
    other = replace(
        with_turns(ALONE, lambda turn, _: replace(turn, case=names[turn.case])),
        header=replace(ALONE.header, cases=cases, baseline="new-stock"),
        builds=tuple(replace(build, case=names[build.case]) for build in ALONE.builds),
    )
    assert [row.series for row in tables_of(ALONE).points] == [row.series for row in tables_of(other).points]
