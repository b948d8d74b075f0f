"""What a terminal shows, at the widths people have."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from harness.records.run import Run
from harness.report.run_terminal import render_terminal
from harness.report.table import build_report

# Commands and next steps stay on one line each, however long, so that they can be copied.
UNWRAPPED = re.compile(r"  (harness|iree-\S+) |- ")


def shown(run: Run, width: int, *, color: bool = False) -> str:
    return render_terminal(build_report(run), width=width, color=color)


@pytest.mark.parametrize("width", [80, 120])
def test_everything_that_can_happen(full_run: Run, width: int, snapshot: SnapshotAssertion) -> None:
    assert shown(full_run, width) == snapshot


def test_a_wide_terminal_has_remarks_beside_the_figures(small_run: Run, snapshot: SnapshotAssertion) -> None:
    assert shown(small_run, 160) == snapshot


@pytest.mark.parametrize("name", ["one_generation_run", "unfinished_run", "nasty_run"])
def test_odd_runs(name: str, request: pytest.FixtureRequest, snapshot: SnapshotAssertion) -> None:
    assert shown(request.getfixturevalue(name), 100) == snapshot


@pytest.mark.parametrize("name", ["full_run", "small_run", "nasty_run"])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 240])
def test_no_line_is_wider_than_the_terminal(name: str, width: int, request: pytest.FixtureRequest) -> None:
    for line in shown(request.getfixturevalue(name), width).splitlines():
        assert cell_len(line) <= width or UNWRAPPED.match(line), line
        assert line == line.rstrip()


@pytest.mark.parametrize("width", [40, 80, 240])
def test_whatever_the_width_no_case_and_no_remark_is_left_out(full_run: Run, width: int) -> None:
    words = " ".join(shown(full_run, width).split())
    for row in build_report(full_run).rows():
        assert row.variant in words or width == 40
    for remark in ("inert: this flag changes nothing here", "but works now", "missing: planned", "skipped: no Vulkan"):
        assert remark in words


def test_colours_only_repeat_what_is_written(full_run: Run) -> None:
    colored = shown(full_run, 120, color=True)
    assert "\x1b[32m▼ 0.600" in colored
    plain = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert "".join(f"{line.rstrip()}\n" for line in plain.splitlines()) == shown(full_run, 120)


def test_the_surroundings_do_not_matter(small_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shown(small_run, 100)
    for name, value in (("COLUMNS", "30"), ("NO_COLOR", "1"), ("FORCE_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
    assert shown(small_run, 100) == before


def test_tools_cannot_write_escape_sequences_into_the_report(nasty_run: Run) -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", shown(nasty_run, 100))
