"""Bars of variants: which there are, and how they look."""

from __future__ import annotations

import pytest

from harness.plots.look import LIGHT, THEMES, Theme
from harness.plots.variant_bars import BarPanel, bar_panels
from harness.plots.variants import draw_variants
from harness.records.run import Build, Failure, Lost, Run
from harness.report.table import build_report
from tests.plots.conftest import NASTY_NAME, assert_readable, texts_of
from tests.report.made import make_build, make_case, make_header, make_rounds


def make_run(*, variants: int = 0, name: str = "tiled") -> Run:
    """A fast variant, a slow one, a peer, one with the baseline's module, and one that failed."""
    stock, fast, slow = make_case("mm", "stock"), make_case("mm", name), make_case("mm", "slow")
    twin, broken = make_case("mm", "twin"), make_case("mm", "broken")
    peer = make_case("mm", "onnxruntime", peer="onnxruntime", toolchain="")
    more = tuple(make_case("mm", f"v{number}") for number in range(variants))
    times = {stock.name: 9e6, fast.name: 4e6, slow.name: 12e6, peer.name: 3e6}
    times |= {case.name: 20e6 + 1e5 * number for number, case in enumerate(more)}
    builds: tuple[Build, ...] = tuple(
        make_build(case, code=code, dispatches=3, copies=0, transient=2**20)
        for case, code in ((stock, "aa"), (twin, "aa"), (fast, "bb"), (slow, "cc"))
    )
    failure = Failure(stage="measure", message="no")
    return Run(
        header=make_header((stock, fast, slow, twin, broken, peer, *more)),
        builds=builds,
        lost=(Lost(case=broken.name, generation=0, failure=failure),),
        rounds=tuple(make_rounds(stock.group, times, generations=4, rounds=3)),
        finished=True,
    )


def panels(run: Run) -> list[BarPanel]:
    return bar_panels(build_report(run))


def test_a_bar_for_each_variant_the_fastest_first() -> None:
    (panel,) = panels(make_run())
    assert panel.title == "mm @ local-sync"
    assert [bar.label for bar in panel.bars] == ["onnxruntime", "tiled", "stock", "twin", "slow"]
    peer, fast, stock, twin, slow = panel.bars
    assert peer.peer
    assert (fast.tone, slow.tone, stock.tone) == ("better", "worse", None)
    assert stock.baseline
    assert stock.note == "baseline"
    assert twin.shared
    assert twin.note == "= same module as stock"
    assert fast.note.startswith("▼ 0.44")
    assert fast.low_ns <= fast.latency_ns <= fast.high_ns
    assert panel.rest == "without a bar: 1 failed"


def test_of_many_the_fastest_and_the_baseline_are_drawn() -> None:
    run = make_run(variants=40)
    (panel,) = panels(run)
    assert len(panel.bars) == 24
    assert any(bar.baseline for bar in panel.bars)
    assert panel.rest.startswith("without a bar: 21 slower")


def test_models_of_which_nothing_was_measured_are_left_out() -> None:
    run = make_run()
    assert panels(Run(header=run.header, builds=run.builds, finished=True)) == []
    assert bar_panels(build_report(run), keep=lambda case: "twin" in case) == []


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_picture_in_both_themes(theme: Theme) -> None:
    svg = draw_variants(panels(make_run()), "matmuls", ["fast enough"], theme, "svg")
    assert_readable(svg)
    texts = texts_of(svg)
    for shown in (
        "matmuls",
        "mm @ local-sync",
        "stock",
        "baseline",
        "= same module as stock",
        "faster than the baseline",
    ):
        assert shown in texts
    assert any("Hatched: other engines." in text for text in texts)
    assert b"<pattern" in svg


def test_equal_runs_give_equal_bytes() -> None:
    for picture in ("svg", "png"):
        first, second = (draw_variants(panels(make_run()), "t", [], LIGHT, picture) for _ in range(2))
        assert first == second


def test_names_of_any_kind_stay_names() -> None:
    for name in (NASTY_NAME, "y" * 10_000):
        svg = draw_variants(panels(make_run(name=name)), name, [name], LIGHT, "svg")
        assert_readable(svg)
        assert b"<script" not in svg


def test_more_models_than_fit_are_counted() -> None:
    (panel,) = panels(make_run())
    svg = draw_variants([panel] * 5, "t", [], LIGHT, "svg", top=2)
    assert "Not drawn: 3 more models or devices." in texts_of(svg)
