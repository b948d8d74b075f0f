"""The run that the README shows: the figures there are those of the run, and the run can be read."""

from __future__ import annotations

import re
from pathlib import Path

from harness.report import render
from harness.store.run_directory import load_run

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "results" / "published" / "esrgan"


def test_the_readme_shows_lines_of_the_published_runs_report() -> None:
    (block,) = re.findall(r"\$ harness run suites/esrgan.toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = iter(render(load_run(PUBLISHED), "terminal", width=112).splitlines())
    shown = [line for line in block.splitlines() if line != "..."]
    assert len(shown) > 20
    for line in shown:
        assert any(line == printed for printed in lines), f"not in the report, or in another order: {line}"


def test_the_published_report_is_what_the_harness_prints_of_the_run() -> None:
    report = render(load_run(PUBLISHED), "markdown", full=True)
    assert (PUBLISHED / "report.md").read_text() == report, (
        "write it again: harness report results/published/esrgan --format markdown --full "
        "--out results/published/esrgan/report.md"
    )


def test_the_published_run_names_no_place_of_the_machine_it_was_made_on() -> None:
    for file in PUBLISHED.rglob("*"):
        if file.is_file() and file.suffix != ".parquet":  # the harness makes those of the other files
            assert not re.search(r"(?<![\w.-])/(?:home|root|tmp|Users|usr|opt|work)/", file.read_text()), file
