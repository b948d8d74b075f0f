"""The roofline: points, roofs, and marks that tell variants and peers apart."""

import re
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import RunError
from harness.plots.canvas import LIGHT
from harness.plots.roofline import draw_roofline, panels_of, roofline_of
from harness.records.run import Failure, Peak, Run, Work
from harness.report.run_report import Report, build_report
from tests.plots.conftest import SVG, assert_readable, make_run, root_of, texts_of
from tests.report.builders import make_case, make_header, make_rounds

PEAK = Peak(
    device="local-sync", threads=1, operations_per_s=117e9, operations_by="FMA loop", bytes_per_s=33e9, bytes_by="dot"
)
WORK = Work(model="mm", operations=268_435_456, compulsory_bytes=3_145_728)
TIMES = {"stock": 9.0, "data-tiling": 4.0, "onnxruntime": 3.0}


def make_report(**given: Any) -> Report:
    """Two variants and a peer on one core, and one variant on a device without a peak."""
    run: Run = make_run(TIMES, peers=["onnxruntime"], **{"work": (WORK,), "peaks": {}, **given})
    far = make_case("mm", "stock", "gpu", uri="cuda")
    rounds = (*run.rounds, *make_rounds(far.group, {far.name: 1e5}, generations=2, rounds=2))
    run = replace(run, header=make_header((*run.header.cases, far)), rounds=rounds if run.rounds else ())
    return build_report(replace(run, peaks=(PEAK,)))


def test_a_panel_for_each_device_and_a_point_for_each_measured_case() -> None:
    near, far = panels_of(make_report())
    assert [(point.label, point.peer) for point in near.points] == [
        ("stock", False),
        ("data-tiling", False),
        ("onnxruntime", True),
    ]
    assert near.points[0].operations_per_s == pytest.approx(268_435_456 / 9e-3, rel=0.1)
    assert near.points[0].intensity == pytest.approx(268_435_456 / 3_145_728)
    assert near.peak == PEAK
    assert far.peak is None


def test_a_picture_names_what_it_shows() -> None:
    svg = draw_roofline(make_report()).file(LIGHT, "svg")
    assert_readable(svg)
    texts = texts_of(svg)
    assert {"esrgan", "mm", *TIMES, "33 GB/s (dot)", "117 GFLOP/s, f32 (FMA loop)"} <= set(texts)
    assert any(re.fullmatch(r".+: one core", text) for text in texts)
    assert any(text.endswith("(peak not measured)") for text in texts)


def test_variants_are_told_apart_by_their_marks_and_a_peer_has_a_ring() -> None:
    (near, _) = panels_of(make_report())
    own, peer = near.points[0], near.points[-1]

    def marks(*labels: str, is_peer: bool = False) -> int:
        """How many different marks there are."""
        points = tuple(replace(peer if is_peer else own, label=label) for label in labels)
        svg = roofline_of([replace(near, points=points)], "t", "s").file(LIGHT, "svg")
        uses = root_of(svg).iter(f"{SVG}use")
        return len({value for use in uses for name, value in use.attrib.items() if name.endswith("href")})

    assert marks(*(f"v{number}" for number in range(12))) > marks("v")
    assert marks("v", is_peer=True) > marks("v")


def test_names_of_any_kind_and_number_can_be_drawn() -> None:
    (near, _) = panels_of(make_report())
    odd = ["$x_1$", "a & b <c>", "a name that is a good deal longer than any that people would choose", "ü"]
    many = tuple(
        replace(near.points[0], model=f"{odd[number % 4]} {number}", label=odd[-number % 4], intensity=number / 7 + 0.1)
        for number in range(30)
    )
    assert_readable(roofline_of([replace(near, points=many)] * 3, "$ t", "").file(LIGHT, "svg"))


def test_a_run_without_work_says_why() -> None:
    with pytest.raises(RunError, match=r"^no arithmetic was counted; run its suite again with this harness, or"):
        panels_of(make_report(work=()))
    failed = Work(model="mm", failure=Failure(stage="ir", message="a size does not follow from the inputs"))
    with pytest.raises(RunError, match=r"no arithmetic was counted \(a size does not follow from the inputs\)"):
        panels_of(make_report(work=(failed,)))
