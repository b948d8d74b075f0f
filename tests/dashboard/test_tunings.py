"""The pages on what `harness tune` found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.cli import run_command_line
from harness.dashboard.tunings import load_tunings, race_picture, tuning_facts
from harness.report.tune_page import tune_json
from harness.store.kinds import TUNING
from tests.builders import Notes
from tests.dashboard.test_site import Reader
from tests.report.tunings import MOMENTS, make_nothing, make_tuning


def write_tuning(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / TUNING.file).write_text(text)


def test_the_list_leads_to_each_tuning(site: Path) -> None:
    page = Reader(site / "tunings.html")
    assert "0.338 [0.334, 0.342]" in page.text
    files = [address for address in page.links("href") if address.startswith("tuning-")]
    assert len(files) == 2
    one = Reader(site / files[0])
    assert (one.open, one.wrong) == ([], [])
    words = " ".join(one.text.split())
    for part in ("tuned-rdb 0.338", "flag --iree-opt-level=O3", "Configurations of main_dispatch_2"):
        assert part in words
    assert "main_dispatch_5 : it does not make the whole program faster" in words


def test_the_line_of_the_picture_ends_at_the_winner() -> None:
    race = race_picture(make_tuning())
    winner = race.dots[-1]
    assert race.line.endswith(f"V{winner.y}")
    assert race.label is not None and race.label[2:] == ("end", "tuned-rdb 0.338")
    left, top, right, bottom = race.box
    assert all(left <= dot.x <= right and top <= dot.y <= bottom for dot in race.dots)


def test_one_in_which_nothing_was_timed_has_no_picture() -> None:
    (facts,) = tuning_facts([make_nothing(moments=())])
    assert (facts.race, facts.ratio) == (None, "")


def test_tunings_are_found_in_results_and_out_folders_the_newest_first(tmp_path: Path) -> None:
    new, old = make_tuning(), make_nothing(id="mlp@cpu", model="mlp", created="2026-01-01T00:00:00+00:00")
    write_tuning(tmp_path / "results" / "tuned" / "mlp@cpu", tune_json(old))
    write_tuning(tmp_path / "tuned" / "rdb@cpu", tune_json(replace(new, moments=MOMENTS[:1])))
    write_tuning(tmp_path / "tuned" / "x@cpu", "{")
    notes = Notes()
    found = load_tunings([tmp_path / "tuned", tmp_path / "results"], notes)
    assert [tuning.model for tuning in found] == ["rdb", "mlp"]
    assert len(notes.lines) == 1 and notes.lines[0].endswith("it is left out")
    site = tmp_path / "site"
    command = ["dashboard", str(tmp_path / "results"), "--tuned", str(tmp_path / "tuned"), "--out", str(site)]
    assert run_command_line(command) == 0
    assert len(list(site.glob("tuning-*.html"))) == 2
