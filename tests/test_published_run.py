"""What the README and docs/explain.md show: their figures and sentences are those of the runs that are kept."""

import re
from pathlib import Path

import pytest

from benchmarks import releases
from harness.progress import Progress
from harness.report import render
from harness.store.folders import kind_at, load_result
from harness.store.merging import verify
from harness.store.place import open_place
from harness.store.run_directory import load_run

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "results" / "published"
README = (ROOT / "README.md").read_text()


def test_the_readme_shows_lines_of_the_published_runs_report() -> None:
    (block,) = re.findall(r"\$ harness run suites/esrgan.toml\n(.*?)```", README, re.DOTALL)
    lines = iter(render(load_run(PUBLISHED / "esrgan"), "terminal", width=112).splitlines())
    shown = [line for line in block.splitlines() if line != "..."]
    assert len(shown) > 20
    for line in shown:
        assert any(line == printed for printed in lines), f"not in the report, or in another order: {line}"


def test_the_page_says_of_all_releases_what_was_measured() -> None:
    _, _, rest = releases.DOCUMENT.read_text().partition(releases.BEGIN)
    said, _, _ = rest.partition(releases.END)
    assert said.strip() == releases.render(), "write it again: python -m benchmarks.releases --no-measure"


RESULTS = [folder for folder in sorted(PUBLISHED.iterdir()) if kind_at(folder) is not None]


@pytest.mark.parametrize("folder", RESULTS, ids=lambda folder: folder.name)
def test_a_published_report_is_what_the_harness_prints(folder: Path) -> None:
    report = render(load_result(folder), "markdown", full=True)
    assert (folder / "report.md").read_text() == report, (
        f"write it again: harness report {folder.relative_to(ROOT)} --format markdown --full "
        f"--out {folder.relative_to(ROOT)}/report.md"
    )


def test_what_is_published_is_whole() -> None:
    assert {finding.state for finding in verify(open_place(str(PUBLISHED)), Progress())} == {"ok"}


def test_what_is_published_names_no_place_of_the_machine_it_was_made_on() -> None:
    for file in PUBLISHED.rglob("*"):
        if file.is_file() and file.suffix != ".parquet":  # the harness makes those of the other files
            assert not re.search(r"(?<![\w.-])/(?:home|root|tmp|Users|usr|opt|work)/", file.read_text()), file
