"""Bars of variants: which there are, and how they look."""

from __future__ import annotations

from harness.plots.canvas import LIGHT
from harness.plots.variants import bar_panels, draw_variants
from harness.records.run import Run
from harness.report.run_report import build_report
from tests.plots.conftest import make_report, make_run, texts_of

TIMES = {"stock": 9.0, "tiled": 4.0, "slow": 12.0, "onnxruntime": 3.0}


def make_variants(**more: float) -> Run:
    """A fast variant, a slow one, a peer, one with the baseline's module, and one that failed."""
    return make_run({**TIMES, **more}, peers=["onnxruntime"], twins=["twin"], broken=["broken"])


def test_a_bar_for_each_variant_the_fastest_first() -> None:
    (panel,) = bar_panels(build_report(make_variants()))
    assert [panel.section.label(row) for row in panel.rows] == ["onnxruntime", "tiled", "stock", "twin", "slow"]
    assert panel.rest == "without a bar: 1 failed"
    texts = texts_of(draw_variants(build_report(make_variants()), LIGHT, "svg"))
    assert {"mm @ local-sync", "baseline", "= same module as stock", "faster than the baseline", "slower"} <= set(texts)
    assert any(text.startswith("▼ 0.44") for text in texts)
    assert any(text.startswith("▲ 1.33") for text in texts)
    assert "the same" not in texts  # in the legend: no variant is


def test_a_peer_and_a_twin_look_different_and_the_foot_says_how() -> None:
    svg = draw_variants(build_report(make_variants()), LIGHT, "svg")
    foot = " ".join(texts_of(svg)[-3:])
    assert "Hatched: other engines. Pale: the module is another variant's." in foot
    assert b"<pattern" in svg
    assert b"opacity: 0.35" in svg
    plain = draw_variants(make_report({"stock": 2.0, "tiled": 1.0}), LIGHT, "svg")
    assert b"<pattern" not in plain
    assert b"opacity: 0.35" not in plain
    assert "Hatched" not in " ".join(texts_of(plain))


def test_of_many_the_fastest_and_the_baseline_are_drawn() -> None:
    slower = {f"v{number}": 20 + number / 10 for number in range(40)}
    (panel,) = bar_panels(build_report(make_variants(**slower)))
    assert len(panel.rows) == 24
    assert panel.rest.startswith("without a bar: 21 slower")
    faster = {f"v{number}": 1 + number / 10 for number in range(30)}
    (panel,) = bar_panels(build_report(make_variants(**faster)))
    assert len(panel.rows) == 25
    assert panel.rows[-1].baseline


def test_models_of_which_nothing_was_measured_are_left_out_and_more_than_fit_are_counted() -> None:
    run = make_variants()
    assert bar_panels(build_report(Run(header=run.header, builds=run.builds, finished=True))) == []
    svg = draw_variants(make_report(TIMES, models=["a", "b", "c", "d", "e"]), LIGHT, "svg", 2)
    assert "Not drawn: 3 more models or devices." in texts_of(svg)
