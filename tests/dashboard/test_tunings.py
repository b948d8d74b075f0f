"""The pages on what `harness tune` found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.cli import run_command_line
from harness.dashboard.tunings import load_tunings
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
    for part in ("tuned-rdb 884 0.338, the best then", "flag --iree-opt-level=O3", "Configurations of main_dispatch_2"):
        assert part in words
    assert "main_dispatch_5 : it does not make the whole program faster" in words


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
