"""Runs of several toolchains and of other engines: which row each ratio is to, and what a row says of its tools."""

from dataclasses import replace

import pytest

from harness.records.run import Run, ToolchainRecord
from harness.report import render
from harness.report.run_report import build_report
from harness.suite.cases import across_toolchains
from tests.report.builders import make_build, make_case, make_check, make_header, make_rounds, row_of

NEW, OLD = "3.13.0", "3.12.0"
LATENCIES = {("stock", NEW): 2e6, ("stock", OLD): 2.2e6, ("tiled", NEW): 1e6, ("tiled", OLD): 1.1e6}


def test_of_several_toolchains_every_row_but_one_is_compared_with_the_firsts_baseline() -> None:
    """Under each toolchain one variant is inert, and both make the same module of stock."""
    of_each = [
        tuple(make_case("net", variant, toolchain=version) for variant in ("stock", "tiled", "inert"))
        for version in (NEW, OLD)
    ]
    cases = across_toolchains(of_each)
    codes = {"stock": "50", "tiled": "71", "inert": "50"}
    times = {case.name: LATENCIES[case.variant, case.toolchain] for case in cases if case.variant != "inert"}
    toolchains = tuple(ToolchainRecord(version=version, revision="", compiler_sha256="c0") for version in (NEW, OLD))
    run = Run(
        header=make_header(cases, toolchains=toolchains),
        builds=tuple(make_build(case, code=codes[case.variant]) for case in cases),
        rounds=tuple(make_rounds("net@local-sync", times)),
        finished=True,
    )
    report = build_report(run)
    (section,) = report.sections
    assert section.baseline == report.baseline == "stock:3.13.0"
    assert [row.case for row in report.rows() if row.baseline] == ["net/stock@local-sync:3.13.0"]
    for variant, toolchain, ratio in (("stock", OLD, 1.1), ("tiled", NEW, 0.5), ("tiled", OLD, 0.55)):
        estimate = row_of(report, variant, toolchain=toolchain).estimate
        assert estimate is not None
        assert estimate.ratio == pytest.approx(ratio, rel=0.01)
    # The same bytes under another runtime are another thing.
    statuses = {(row.variant, row.toolchain): row.status for row in report.rows()}
    assert statuses == dict.fromkeys(LATENCIES, "measured") | {("inert", NEW): "same", ("inert", OLD): "same"}
    inert = row_of(report, "inert", toolchain=OLD)
    assert inert.latency_ns == row_of(report, "stock", toolchain=OLD).latency_ns
    assert inert.remarks[0] == "inert: it changes nothing in 3.12.0 (same module as stock)"
    assert inert.kind == "slower"  # than the baseline, as the stock of its toolchain is


# --- Peers ---

TIMES = {"stock": 8e6, "fast": 6e6, "onnxruntime": 4e6, "pytorch": 5e6}


def peers_run(*left_out: str) -> Run:
    """A model with two variants of IREE and three peers, of which one is not there; some may not have been timed."""
    own = {variant: make_case("net", variant, "cpu") for variant in ("stock", "fast")}
    peers = {
        peer: make_case("net", peer, "cpu", peer=peer, toolchain="", compile_flags=())
        for peer in ("onnxruntime", "pytorch", "halide")
    }
    peers["halide"] = replace(peers["halide"], skip="halide is not installed; get it")
    cases = {**own, **peers}
    times = {cases[name].name: ns for name, ns in TIMES.items() if name not in left_out}
    versions = {"peers": {"onnxruntime": "ONNX Runtime 1.31.1", "pytorch": "PyTorch 2.13.0"}}
    return Run(
        header=make_header(tuple(cases.values()), suite="suites/small.toml", environment=versions),
        builds=(make_build(own["stock"], code="a1"), make_build(own["fast"], code="b2")),
        checks=tuple(make_check(cases[name], "ONNX Runtime 1.31.1") for name in TIMES),
        rounds=tuple(make_rounds("net@cpu", times)),
        finished=True,
    )


def test_every_row_has_its_ratio_to_the_fastest_peer_and_to_the_baseline() -> None:
    report = build_report(peers_run())
    assert report.sections[0].best_peer == "onnxruntime"
    to_peer = {row.variant: row.peer_estimate.ratio for row in report.rows() if row.peer_estimate is not None}
    assert to_peer == pytest.approx({"stock": 2.0, "fast": 1.5, "pytorch": 1.25}, rel=0.02)
    to_baseline = {row.variant: row.estimate.ratio for row in report.rows() if row.estimate is not None}
    assert to_baseline == pytest.approx({"fast": 0.75, "onnxruntime": 0.5, "pytorch": 0.625}, rel=0.02)
    # What was not measured is not the best peer; without a measured baseline the best peer still stands.
    assert build_report(peers_run("onnxruntime")).sections[0].best_peer == "pytorch"
    fast = row_of(peers_run("stock"), "fast")
    assert fast.peer_estimate is not None
    assert fast.peer_estimate.ratio == pytest.approx(1.5, rel=0.02)


def test_what_is_said_of_variants_counts_no_peer_and_the_table_names_the_best_one() -> None:
    summary = build_report(peers_run()).summary
    counts = (summary.planned, summary.measured, summary.skipped, summary.faster, summary.slower)
    assert counts == (5, 4, 1, 1, 0)
    text = render(peers_run(), "markdown")
    changes = text.split("### Results")[0]
    assert "`net/fast@cpu`" in changes and "onnxruntime@cpu" not in changes and "pytorch@cpu" not in changes
    assert "IREE 3.13.0 (e4a3b04d7a), ONNX Runtime 1.31.1, PyTorch 2.13.0" in text
    by_variant = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    assert "best peer" in by_variant["onnxruntime"] and "2.000 [" in by_variant["stock"]
    assert row_of(peers_run(), "onnxruntime").repro == ("harness run suites/small.toml --filter net/onnxruntime@cpu",)
