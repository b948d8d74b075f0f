"""Pictures of runs: what is in them, and that equal runs give equal bytes."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from harness.errors import RunError
from harness.plots.look import THEMES, Theme
from harness.plots.points import Panel, Point, panels_of
from harness.plots.roofline import draw_roofline
from harness.records.run import Failure, Peak, Run, Work
from harness.report.table import build_report
from tests.plots.conftest import SVG, size_of
from tests.report.conftest import make_small_run
from tests.report.made import make_case, make_header, make_rounds

PEAK = Peak(device="cpu", threads=1, operations_per_s=117e9, operations_by="FMA loop", bytes_per_s=33e9, bytes_by="dot")
WORK = Work(model="mm", operations=268_435_456, compulsory_bytes=3_145_728)


@pytest.fixture
def run() -> Run:
    """Two variants and a peer on one core, and one variant on a device without a peak."""
    stock, tiled = make_case("mm", "stock"), make_case("mm", "data-tiling")
    peer = make_case("mm", "onnxruntime", peer="onnxruntime", toolchain="")
    far = make_case("mm", "stock", "gpu", uri="cuda")
    return Run(
        header=make_header((stock, tiled, peer, far)),
        rounds=(
            *make_rounds(stock.group, {stock.name: 9e6, tiled.name: 4e6, peer.name: 3e6}, generations=2, rounds=2),
            *make_rounds(far.group, {far.name: 1e5}, generations=2, rounds=2),
        ),
        work=(WORK,),
        peaks=(replace(PEAK, device=stock.device),),
        finished=True,
    )


def panels(run: Run) -> list[Panel]:
    return panels_of(build_report(run), "results/it")


def test_a_panel_for_each_device_and_a_point_for_each_measured_case(run: Run) -> None:
    near, far = panels(run)
    assert [(point.label, point.peer) for point in near.points] == [
        ("stock", False),
        ("data-tiling", False),
        ("onnxruntime", True),
    ]
    assert near.points[0].operations_per_s == pytest.approx(268_435_456 / 9e-3, rel=0.1)
    assert near.points[0].intensity == pytest.approx(268_435_456 / 3_145_728)
    assert near.roof is not None
    assert near.roof.threads == 1
    assert far.roof is None


def test_a_picture_names_what_it_shows(run: Run) -> None:
    svg = draw_roofline(panels(run), "matmuls", "today", "svg").decode()
    texts = [text.text or "" for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314 (our own)
    for shown in ("matmuls", "mm", "stock", "data-tiling", "onnxruntime", "33 GB/s (dot)"):
        assert shown in texts
    assert "117 GFLOP/s, f32 (FMA loop)" in texts
    assert any(re.fullmatch(r".+: one core", text) for text in texts)
    assert any(text.endswith("(peak not measured)") for text in texts)


def test_fifteen_variants_have_as_many_marks_and_a_peer_has_a_ring(run: Run) -> None:
    (near, _) = panels(run)
    own, peer = near.points[0], near.points[-1]

    def marks(points: tuple[Point, ...]) -> int:
        root = ElementTree.fromstring(draw_roofline([replace(near, points=points)], "t", "s", "svg"))  # noqa: S314 (our own)
        shapes = {
            (path.attrib["d"], path.attrib.get("style", ""))
            for defs in root.iter(f"{SVG}defs")
            for path in defs.iter(f"{SVG}path")
        }
        used = {use.attrib["style"] for use in root.iter(f"{SVG}use")}
        return len(shapes) + len(used)

    variants = tuple(replace(own, label=f"v{number}") for number in range(15))
    assert marks(variants) > marks(variants[:12])
    assert marks((own, replace(peer, label="stock2"))) > marks((own, replace(own, label="stock2")))


def test_equal_runs_give_equal_bytes(run: Run) -> None:
    for picture in ("svg", "png"):
        first, second = (draw_roofline(panels(run), "t", "s", picture) for _ in range(2))
        assert first == second


def test_names_of_any_kind_and_number_can_be_drawn(run: Run) -> None:
    (near, _) = panels(run)
    odd = ["$x_1$", "a & b <c>", "a name that is a good deal longer than any that people would choose", "ü"]
    many = tuple(
        replace(near.points[0], model=f"{odd[number % 4]} {number}", label=odd[-number % 4], intensity=number / 7 + 0.1)
        for number in range(30)
    )
    ElementTree.fromstring(draw_roofline([replace(near, points=many)], "$ t", "", "svg"))  # noqa: S314 (our own)


def test_a_run_without_measurements_or_work_is_told_in_a_sentence(run: Run) -> None:
    with pytest.raises(RunError, match=r"^results/it: nothing was measured, so there is nothing to draw"):
        panels(replace(run, rounds=()))
    with pytest.raises(RunError, match=r"no arithmetic was counted; run its suite again with this harness, or"):
        panels(make_small_run())
    failed = Work(model="mm", failure=Failure(stage="ir", message="a size does not follow from the inputs"))
    with pytest.raises(RunError, match=r"no arithmetic was counted \(a size does not follow from the inputs\)"):
        panels(replace(run, work=(failed,)))


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_both_themes_can_be_read(run: Run, theme: Theme) -> None:
    svg = draw_roofline(panels(run), "matmuls", "today", "svg", theme)
    assert 900 <= size_of(svg)[0] <= 1000
    assert theme.ground in svg.decode()


def test_only_cases_that_are_wanted(run: Run) -> None:
    (near,) = panels_of(build_report(run), "results/it", keep=lambda case: case.endswith("stock@local-sync"))
    assert [point.label for point in near.points] == ["stock"]
