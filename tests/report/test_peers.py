"""Peers in a report: rows of the same table, a ratio to the best of them, no part in what is said of variants."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from harness.records.run import Run
from harness.report import render
from harness.report.run_report import build_report
from harness.report.run_rows import Row
from tests.builders import make_header
from tests.report.made import make_build, make_case, make_check, make_rounds

STOCK = make_case("net", "stock", "cpu")
FAST = make_case("net", "fast", "cpu")
ONNXRUNTIME = replace(make_case("net", "onnxruntime", "cpu", toolchain="", compile_flags=()), peer="onnxruntime")
PYTORCH = replace(make_case("net", "pytorch", "cpu", toolchain="", compile_flags=()), peer="pytorch")
HALIDE = replace(
    make_case("net", "halide", "cpu", toolchain="", compile_flags=(), skip="halide is not installed; get it"),
    peer="halide",
)
TIMES = {STOCK.name: 8e6, FAST.name: 6e6, ONNXRUNTIME.name: 4e6, PYTORCH.name: 5e6}


@pytest.fixture
def run() -> Run:
    """A model with two variants of IREE and three peers, one of which is not there."""
    return Run(
        header=make_header(
            cases=(STOCK, FAST, ONNXRUNTIME, PYTORCH, HALIDE),
            environment={"peers": {"onnxruntime": "ONNX Runtime 1.31.1", "pytorch": "PyTorch 2.13.0"}},
        ),
        builds=(
            make_build(STOCK, code="a1", dispatches=3, copies=0, transient=0),
            make_build(FAST, code="b2", dispatches=2, copies=0, transient=0),
        ),
        checks=tuple(make_check(case, "ONNX Runtime 1.31.1") for case in (STOCK, FAST, ONNXRUNTIME, PYTORCH)),
        rounds=tuple(make_rounds("net@cpu", TIMES, generations=5, rounds=8)),
        finished=True,
    )


def rows(run: Run) -> dict[str, Row]:
    return {row.variant: row for row in build_report(run).rows()}


def test_every_row_has_its_ratio_to_the_fastest_peer(run: Run) -> None:
    (section,) = build_report(run).sections
    assert section.best_peer == "onnxruntime"
    ratios = {name: row.peer_estimate.ratio for name, row in rows(run).items() if row.peer_estimate is not None}
    assert ratios == pytest.approx({"stock": 2.0, "fast": 1.5, "pytorch": 1.25}, rel=0.02)


def test_peers_have_a_ratio_to_the_baseline_too(run: Run) -> None:
    found = {name: row.estimate.ratio for name, row in rows(run).items() if row.estimate is not None}
    assert found == pytest.approx({"fast": 0.75, "onnxruntime": 0.5, "pytorch": 0.625}, rel=0.02)


def test_the_sentence_above_counts_variants_only(run: Run) -> None:
    summary = build_report(run).summary
    assert (summary.faster, summary.slower) == (1, 0)
    assert (summary.planned, summary.measured, summary.skipped) == (5, 4, 1)


def test_a_peer_that_was_not_measured_is_not_the_best_one(run: Run) -> None:
    left = replace(
        run,
        rounds=tuple(
            replace(one, turns=tuple(turn for turn in one.turns if turn.case != ONNXRUNTIME.name)) for one in run.rounds
        ),
    )
    assert build_report(left).sections[0].best_peer == "pytorch"


def test_without_a_measured_baseline_the_best_peer_still_stands(run: Run) -> None:
    left = replace(
        run,
        rounds=tuple(
            replace(one, turns=tuple(turn for turn in one.turns if turn.case != STOCK.name)) for one in run.rounds
        ),
    )
    estimate = rows(left)["fast"].peer_estimate
    assert estimate is not None
    assert estimate.ratio == pytest.approx(1.5, rel=0.02)


def test_versions_stand_beside_irees(run: Run) -> None:
    assert "IREE 3.13.0, ONNX Runtime 1.31.1, PyTorch 2.13.0" in render(run, "markdown")


def test_the_markdown_table(run: Run) -> None:
    table = [line for line in render(run, "markdown").splitlines() if line.startswith("| ")]
    head = next(line for line in table if "vs stock" in line)
    assert "| vs onnxruntime |" in head
    by_variant = {line.split("|")[1].strip(): line for line in table}
    assert "best peer" in by_variant["onnxruntime"]
    assert "2.000 [" in by_variant["stock"]


def test_a_peers_case_is_repeated_by_the_harness(run: Run) -> None:
    assert rows(run)["onnxruntime"].repro == ("harness run suites/small.toml --filter net/onnxruntime@cpu",)


def test_json_names_the_engine_and_the_ratio(run: Run) -> None:
    found = {row["variant"]: row for row in json.loads(render(run, "json"))["rows"]}
    assert found["pytorch"]["peer"] == "pytorch"
    assert found["stock"]["peer"] is None
    assert found["stock"]["ratio_to_best_peer"] == pytest.approx(2.0, rel=0.02)
    assert found["stock"]["ratio_to_best_peer_low"] <= found["stock"]["ratio_to_best_peer_high"]
    assert found["onnxruntime"]["ratio_to_best_peer"] is None


def test_a_faster_peer_is_no_improvement_of_irees(run: Run) -> None:
    changes = render(run, "markdown").split("### Results")[0]
    assert "`net/fast@cpu`" in changes
    assert "onnxruntime@cpu" not in changes
    assert "pytorch@cpu" not in changes
