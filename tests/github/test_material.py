"""What may be posted: a comparison's or a run's figures, and nothing larger, linked or broken."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.github.material import read_material
from harness.report.comparison import render_comparison
from harness.report.github import Links
from tests.report.compared import make_comparison, make_row, make_timed

PUBLISHED = Path(__file__).parents[2] / "results/published/esrgan"
REGRESSED = make_timed("net/tuned@cpu", 2.0, 1.1, "regressed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A comparison's folder."""
    text = render_comparison(make_comparison([REGRESSED, make_row("net/stock@cpu", verdict="identical")]), "json")
    (tmp_path / "comparison.json").write_text(text)
    return tmp_path


def test_a_comparison_by_its_folder_or_its_file(folder: Path) -> None:
    for path in (folder, folder / "comparison.json"):
        material = read_material(path)
        assert material.headline.startswith("1 regression")
        assert material.render(None, Links()).startswith("<!--harness comparison: suites/esrgan.toml-->\n")


def test_its_pictures_are_for_both_themes(folder: Path) -> None:
    files = read_material(folder).draw()
    assert files.keys() == {"forest-light.png", "forest-dark.png"}
    assert all(content.startswith(b"\x89PNG") for content in files.values())
    assert files["forest-light.png"] != files["forest-dark.png"]


def test_its_picture_is_told_in_a_sentence(folder: Path) -> None:
    assert read_material(folder).alt == "Ratios with their intervals: 1 regression, 1 identical."
    assert read_material(PUBLISHED).alt.startswith("Latency of each variant: 72 cases: ")


def test_where_nothing_was_measured_there_is_no_picture(folder: Path) -> None:
    text = render_comparison(make_comparison([make_row("net/stock@cpu", verdict="identical")]), "json")
    (folder / "comparison.json").write_text(text)
    assert read_material(folder).draw() == {}


def test_a_run_without_a_base() -> None:
    material = read_material(PUBLISHED)
    assert material.render(None, Links()).startswith("<!--harness report: esrgan-->\n")
    assert "faster than stock" in material.headline


def test_a_runs_pictures_are_of_its_variants() -> None:
    assert read_material(PUBLISHED).draw().keys() == {"variants-light.png", "variants-dark.png"}


def test_the_key_stands_for_the_figures(folder: Path) -> None:
    before = read_material(folder).key
    assert read_material(folder).key == before
    (folder / "report.md").write_text("changed")
    assert read_material(folder).key == before
    document = json.loads((folder / "comparison.json").read_text())
    document["rows"][0]["ratio"] = 1.2
    (folder / "comparison.json").write_text(json.dumps(document))
    assert read_material(folder).key != before


def test_the_short_form_has_marker_headline_and_link(folder: Path) -> None:
    text = read_material(folder).short(Links(run_url="https://github.com/o/r/actions/runs/5"))
    assert text == (
        "<!--harness comparison: suites/esrgan.toml-->\n\n**1 regression, 1 identical.**\n\n"
        "[The whole report](https://github.com/o/r/actions/runs/5) is with the run that measured it.\n"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"is not JSON"),
        ("{}", r"is no comparison of schema version"),
        ("\xff\xfe", r"is not JSON"),
        ("[" * 100_000, r"is damaged"),
        ('{"schema_version": 99}', r"is no comparison of schema version"),
        ('{"schema_version": 1, "rows": [{}], "means": [], "machine": {}}', r"is damaged at"),
        ('{"schema_version": 1}', r"is damaged at"),
    ],
)
def test_what_is_no_comparison(folder: Path, text: str, says: str) -> None:
    (folder / "comparison.json").write_text(text)
    with pytest.raises(RunError, match=says) as caught:
        read_material(folder)
    assert "\n" not in str(caught.value)


def test_a_comparison_larger_than_any(folder: Path) -> None:
    with (folder / "comparison.json").open("wb") as file:
        os.truncate(file.fileno(), 5 * 2**30)
    with pytest.raises(RunError, match="is larger than 128 MiB"):
        read_material(folder)


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "comparison.json").rename(folder / "other.json")
    (folder / "comparison.json").symlink_to(folder / "other.json")
    with pytest.raises(RunError, match=r"comparison\.json: is a link; give the comparison's own folder"):
        read_material(folder)
    run = tmp_path / "run"
    shutil.copytree(PUBLISHED, run)
    (run / "rounds.jsonl").unlink()
    (run / "rounds.jsonl").symlink_to("/etc/passwd")
    with pytest.raises(RunError, match="holds links; give a run's own folder"):
        read_material(run)


def test_a_folder_of_neither(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"holds neither comparison\.json nor run\.json; give what"):
        read_material(tmp_path)


def test_a_broken_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunError, match=r"run\.json"):
        read_material(tmp_path)
