"""A run becomes rows: what it was, what became of each case, and every figure."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.case import Case
from harness.records.run import Failure, IrCounts, Lost, Reference, Run
from harness.report.rows import machine_class, rows_of, series_id, toolchain_role
from harness.report.run_report import build_report
from harness.store.run_directory import load_run
from tests.history.made import NEWEST, REFERENCE, make_night, step

PUBLISHED = Path(__file__).parents[2] / "results" / "published" / "esrgan"


def tables_of(run: Run, **options: Any) -> Any:
    """The rows of a run, by table; a row's columns are its attributes."""
    rows = rows_of(run, **options)
    return SimpleNamespace(**{table: [SimpleNamespace(**row) for row in rows[table]] for table in rows})


def point(run: Run, metric: str, case: str = "net/tiled@cpu", role: str = "newest") -> Any:
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


# --- What makes points one series, and what makes them two ---

texts = st.text(max_size=12)
definitions = st.tuples(texts, texts, texts, texts, st.sampled_from(["newest", "reference", "other"]), texts)


@given(definitions)
def test_the_same_definition_is_the_same_series_in_every_process(definition: tuple[str, ...]) -> None:
    found = series_id(*definition)  # type: ignore[arg-type]  # hypothesis gives text where a role is wanted

    assert found == series_id(*definition)  # type: ignore[arg-type]
    assert len(found) == 16
    assert set(found) <= set("0123456789abcdef")


def test_an_id_stays_what_it_is_since_histories_are_kept() -> None:
    assert series_id("esrgan", "c0bca5be6afb3971", "latency", "AMD EPYC, 2 cores", "newest") == "a335a65fb23408a2"


@given(definitions, definitions)
def test_whatever_differs_makes_another_series(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    same = series_id(*one) == series_id(*other)  # type: ignore[arg-type]  # as above

    assert same == (one == other)


@pytest.mark.parametrize(
    ("places", "roles"), [(1, ["newest"]), (2, ["reference", "newest"]), (3, ["reference", "other", "newest"])]
)
def test_the_last_toolchain_is_the_newest_and_the_first_of_several_the_reference(places: int, roles: list[str]) -> None:
    assert [toolchain_role(place, places) for place in range(places)] == roles


def points(**given: Any) -> list[Any]:
    return list(tables_of(make_night(**given)).points)


def series_of(found: list[Any], role: str, metric: str = "latency") -> set[str]:
    return {point.series for point in found if point.role == role and point.metric == metric}


def test_the_newest_release_may_change_within_a_series_and_the_reference_may_not() -> None:
    before, after = points(toolchains=("3.11.0", "3.12.0")), points(toolchains=("3.12.0", "3.13.0"))

    assert series_of(before, "newest") == series_of(after, "newest")
    assert not series_of(before, "reference") & series_of(after, "reference")
    assert not series_of(before, "newest", "latency-vs-reference") & series_of(after, "newest", "latency-vs-reference")


def test_two_other_toolchains_of_one_run_are_two_series() -> None:
    found = points(toolchains=("3.10.0", "3.11.0", "3.12.0", "3.13.0"))

    others = [point for point in found if point.role == "other" and point.metric == "latency"]
    assert len({point.series for point in others}) == len(others) == 4


def test_no_run_has_two_points_of_one_series_even_where_two_variants_have_the_same_flags() -> None:
    run = make_night(toolchains=(REFERENCE, NEWEST))
    alike = tuple(replace(case, id="c0bca5be6afb3971") for case in run.header.cases)

    found = tables_of(replace(run, header=replace(run.header, cases=alike))).points

    assert len({point.series for point in found}) == len(found)


def test_a_renamed_variant_goes_on_with_its_series() -> None:
    run = make_night(toolchains=(NEWEST,))
    renamed = {
        case.name: replace(case, name=f"net/new-{case.variant}@cpu", variant=f"new-{case.variant}")
        for case in run.header.cases
    }

    def swapped(case: Case) -> Case:
        return renamed[case.name]

    other = replace(
        run,
        header=replace(run.header, cases=tuple(map(swapped, run.header.cases)), baseline="new-stock"),
        builds=tuple(replace(build, case=renamed[build.case].name) for build in run.builds),
        rounds=tuple(
            replace(one, turns=tuple(replace(turn, case=renamed[turn.case].name) for turn in one.turns))
            for one in run.rounds
        ),
    )

    before, after = tables_of(run).points, tables_of(other).points
    assert [point.series for point in before] == [point.series for point in after]
    assert before != after


# --- Machines whose figures may be compared: the same processor, cores and system ---

EPYC: dict[str, dict[str, Any]] = {
    "machine": {"id": "3f2a91c04b7e", "system": "Linux", "architecture": "x86_64", "kernel": "6.1.0", "virtual": True},
    "cpu": {"model": "AMD EPYC 7B13", "usable_cores": 2},
}


def changed(section: str, **given: Any) -> dict[str, dict[str, Any]]:
    return {**EPYC, section: {**EPYC.get(section, {}), **given}}


def test_it_is_in_words() -> None:
    assert machine_class(EPYC) == "AMD EPYC 7B13, 2 cores, Linux x86_64 (virtual)"


def test_another_processor_or_number_of_cores_is_another_class() -> None:
    assert machine_class(changed("cpu", model="Intel Xeon")) != machine_class(EPYC)
    assert machine_class(changed("cpu", usable_cores=1)) == "AMD EPYC 7B13, 1 core, Linux x86_64 (virtual)"


def test_another_kernel_or_another_machine_of_the_same_kind_is_the_same_class_so_that_its_effect_is_seen() -> None:
    assert machine_class(changed("machine", kernel="6.18.0", id="0123456789ab")) == machine_class(EPYC)


def test_a_device_that_the_run_knows_by_name_is_in_the_class_of_its_points() -> None:
    beside = changed("device_names", gpu="NVIDIA H200")

    assert machine_class(beside, "gpu") == "AMD EPYC 7B13, 2 cores, Linux x86_64 (virtual), NVIDIA H200"
    assert machine_class(beside, "cpu") == machine_class(beside) == machine_class(EPYC)


def test_what_a_hostile_run_says_is_one_line_of_text() -> None:
    assert machine_class({"cpu": {"model": "a\nb\x1b[31m", "usable_cores": {"x": 1}}}) == "a b, {'x': 1} cores"


def test_a_run_that_says_nothing_has_a_class_too() -> None:
    assert machine_class({}) == "a machine of which nothing is known"
