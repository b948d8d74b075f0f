"""The waterfall: bars that lead from base to head, in an axis that shows what changed."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.errors import RunError
from harness.plots.canvas import LIGHT
from harness.plots.waterfall import axis_begin_ns, draw_waterfall, waterfall_steps
from harness.records.explanation import Elsewhere
from harness.report.data import document_of
from harness.store.work_directory import ExplanationDirectory
from tests.plots.conftest import assert_readable, texts_of
from tests.report.explanations import PIPELINE, make_explanation, make_part


def test_each_bar_begins_where_the_last_one_ended_and_the_last_change_ends_at_head() -> None:
    base, *changes, head = waterfall_steps(make_explanation())
    assert [step.name for step in changes] == ["conv_a", "conv_b", "pad", "1 other part", "copies", "host and waits"]
    assert changes[0].start_ns == base.end_ns
    for step, following in pairwise(changes):
        assert following.start_ns == pytest.approx(step.end_ns)
    assert changes[-1].end_ns == pytest.approx(head.end_ns)
    assert [step.tone for step in changes[:4]] == ["better", "better", "worse", "same"]
    odd = Elsewhere(device_ns={}, host_ns=0.0, profiled_ratio=1.0)
    assert waterfall_steps(make_explanation(head_elsewhere=odd))[-2].name == "medians that do not add up"
    with pytest.raises(RunError, match="no bar can begin where another one ends"):
        waterfall_steps(make_explanation(base_elsewhere=replace(odd, host_ns=-1e8)))


def test_the_axis_begins_at_zero_unless_changes_would_be_too_small_to_see() -> None:
    assert axis_begin_ns(waterfall_steps(make_explanation())) == 0.0
    small = make_explanation(make_part("conv", 100.0, 101.0, "regressed", what=("x" * 2_000,)))
    steps = waterfall_steps(small)
    assert 0.9 * steps[0].end_ns < axis_begin_ns(steps) < steps[0].end_ns
    svg = draw_waterfall(small).file(LIGHT, "svg")
    assert_readable(svg)
    assert any("The axis begins at" in text for text in texts_of(svg))


def test_the_command_draws_one_that_is_kept_with_what_each_part_does(tmp_path: Path) -> None:
    folder = tmp_path / "20261122-140000-esrgan-explain"
    folder.mkdir()
    ExplanationDirectory(folder).finish(document_of(make_explanation()), "report")
    out = tmp_path / "waterfall.svg"
    for options in ([], ["--kind", "waterfall"]):
        assert run_command_line(["plot", str(tmp_path / "latest"), "--out", str(out), *options]) == 0
    texts = texts_of(out.read_bytes())
    assert {"rdb/stock@cpu: IREE 3.12.0 against IREE 3.10.0", "conv_a", PIPELINE} <= set(texts)
    assert any(text.startswith("-300.000 ms (-42.4 %)") for text in texts)
