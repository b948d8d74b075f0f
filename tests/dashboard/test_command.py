"""`harness dashboard`, from a results folder to a site."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.history.made import Size
from benchmarks.history.made_tables import write_history
from harness.cli import run_command_line
from tests.dashboard.reading import load, table


def test_a_results_folder_becomes_a_site_and_a_second_one_replaces_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, site = tmp_path / "results", tmp_path / "site"
    write_history(results, Size(series=16, runs=20))
    for title in ("first", "Our <b>nights</b>"):
        assert run_command_line(["dashboard", str(results), "--out", str(site), "--title", title]) == 0
    output = capsys.readouterr()
    assert output.out == ""
    assert "Writing pages" in output.err
    assert output.err.endswith(f"{site / 'index.html'}\n")
    html = (site / "index.html").read_text()
    assert "Our &lt;b&gt;nights&lt;/b&gt;" in html
    assert "20 runs, 16 series" in html
    assert set(table(load(site, "series")["series"])["points"]) == {20}
    # No page tells where the results lay.
    assert "None is kept in <code>results</code>" in html
    pages = [file for file in site.rglob("*") if file.suffix in (".html", ".js")]
    assert not any(str(tmp_path) in file.read_text() for file in pages)


def test_an_empty_results_folder_gives_a_site_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    assert run_command_line(["dashboard", str(tmp_path / "results"), "--out", str(tmp_path / "site")]) == 0
    assert "There are no runs in" in (tmp_path / "site" / "index.html").read_text()


def test_what_cannot_be_read_or_replaced_is_told_in_a_sentence_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere, site, theirs = str(tmp_path / "nowhere"), tmp_path / "site", tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("mine")
    for out in (site, theirs):
        assert run_command_line(["dashboard", nowhere, "--out", str(out)]) == 2
    no_results, no_place = capsys.readouterr().err.splitlines()
    assert no_results.startswith("harness: ")
    assert not site.exists()
    assert no_place.startswith(f"harness: --out {theirs}: holds other files")  # before anything is read
