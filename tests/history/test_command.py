"""`harness history` from outside: what it prints, where, and its exit status."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import run_command_line
from tests.history.made import compacted, make_night, make_nights, night_id, step, store
from tests.history.test_failures import failing

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty nights; the machine became slower long ago, and the compiler lately."""
    results = tmp_path_factory.mktemp("slower")
    runs = make_nights(60, machine=step(20, 1.06), compiler=step(54, 1.06))
    compacted(results, runs[:55])
    for run in runs[55:]:
        store(results, run)
    return results


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setenv("COLUMNS", "200")

    def asking(*arguments: object) -> tuple[int, str, str]:
        status = run_command_line(["history", *map(str, arguments)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return asking


def test_without_options_it_has_a_line_for_each_suite(ask: Ask, slower: Path) -> None:
    status, out, _ = ask(slower)

    assert status == 0
    assert out.startswith("60 runs of 1 suite.")
    (line,) = [line for line in out.splitlines() if line.startswith("nightly")]
    assert line.split()[-3:] == ["▲", "2", "compiler"]
    assert "2026-03-01" in line


def test_changes_fail_where_the_compiler_became_slower_lately(ask: Ask, slower: Path) -> None:
    status, out, _ = ask(slower, "--changes")

    assert status == 1
    assert out.startswith("2 cases became slower by the compiler in the last 10 runs: net/stock@cpu latency ▲")
    assert night_id(54) in out
    assert "1 earlier change" in out


def test_changes_longer_ago_fail_nothing(ask: Ask, slower: Path) -> None:
    status, out, _ = ask(slower, "--changes", "--last", 5)

    assert status == 0
    assert out.startswith("No latency and no compile time became longer by the compiler in the last 5 runs")


def test_a_metric_of_its_own_can_be_asked_for(ask: Ask, slower: Path) -> None:
    status, out, _ = ask(slower, "--changes", "--metric", "dispatches", "--metric", "copies")

    assert status == 0
    assert "8 series were searched" not in out  # nothing counted is flagged by chance
    assert ask(slower, "--changes", "--metric", "speed")[0] == 2


def test_changes_as_json_and_csv_are_complete(ask: Ask, slower: Path) -> None:
    status, out, _ = ask(slower, "--changes", "--format", "json")
    document = json.loads(out)
    listed = list(csv.DictReader(io.StringIO(ask(slower, "--changes", "--format", "csv")[1])))

    assert status == 1
    assert document["schema_version"] == 1
    assert document["verdict"].startswith("2 cases became slower")
    assert len(document["changes"]) == len(listed)
    assert sum(one["fails"] for one in document["changes"]) == 2
    assert {one["cause"] for one in listed} == {"compiler", "machine"}


def test_a_series_is_drawn_with_its_changes(ask: Ask, slower: Path) -> None:
    status, out, _ = ask(slower, "--series", "net/stock@cpu latency")

    assert status == 0
    assert "net/stock@cpu latency (newest, " in out
    assert "net/stock@cpu latency (reference, " in out
    newest = out.partition("(reference")[0].splitlines()
    line = next(place for place, text in enumerate(newest) if "▁" in text)
    assert len(newest[line]) == 60
    assert [place for place, mark in enumerate(newest[line + 1]) if mark == "^"] == [20, 54]
    assert out.count("50 earlier points are in the line alone") == 2
    assert out.index("latency (newest") < out.index("latency (reference")


def test_a_series_as_csv_has_all_its_points(ask: Ask, slower: Path) -> None:
    series = json.loads(ask(slower, "--sql", "SELECT series FROM series LIMIT 1", "--format", "json")[1])
    identity = series["rows"][0]["series"]

    rows = list(csv.DictReader(io.StringIO(ask(slower, "--series", identity, "--format", "csv")[1])))

    assert [row["run"] for row in rows] == [night_id(night) for night in range(60)]


def test_of_a_case_latencies_come_first_and_what_never_changed_is_a_line_each(ask: Ask, slower: Path) -> None:
    status, out, _ = ask(slower, "--series", "net/stock@cpu")

    assert status == 0
    drawn, _, constant = out.partition("Counted, and the same in every run")
    heads = [line.split(" (")[0] for line in drawn.splitlines() if line.startswith("net/stock@cpu ")]
    assert heads[:3] == ["net/stock@cpu latency", "net/stock@cpu latency", "net/stock@cpu latency-vs-reference"]
    (dispatches, *_) = [line.split() for line in constant.splitlines() if "dispatches" in line and "newest" in line]
    assert dispatches[:5] == ["net/stock@cpu", "dispatches", "newest", "7", "60"]
    assert len(out.splitlines()) < 130  # and not a table of all points for each of 30 series


def test_a_series_alone_has_more_of_its_points(ask: Ask, slower: Path) -> None:
    out = ask(slower, "--series", "net/stock@cpu/latency-vs-reference")[1]

    assert "20 earlier points are in the line alone" in out


def test_a_case_and_a_metric_may_have_a_space_or_a_slash_between_them(ask: Ask, slower: Path) -> None:
    spaced, slashed = (ask(slower, "--series", f"net/*{mark}lat*", "--format", "csv")[1] for mark in " /")

    assert spaced == slashed
    assert {row["metric"] for row in csv.DictReader(io.StringIO(spaced))} >= {"latency", "latency-vs-reference"}


@pytest.mark.parametrize("options", [["--series", "nothing*"], ["--changes", "--metric", "speed"]])
def test_a_hint_is_a_command_that_works_on_this_folder(ask: Ask, slower: Path, options: list[str]) -> None:
    status, _, said = ask(slower, *options)
    hint = shlex.split(said.split("`")[1])

    assert status == 2
    assert hint[:3] == ["harness", "history", str(slower)]
    status, out, _ = ask(*hint[2:], "--format", "csv")
    assert status == 0
    assert "latency-vs-reference" in out


def test_of_a_compacted_history_no_run_has_to_be_read(ask: Ask, tmp_path: Path) -> None:
    compacted(tmp_path, make_nights(2, generations=2, rounds=2))

    assert "Reading runs" not in ask(tmp_path)[2]
    store(tmp_path, make_night(2))
    assert "Reading runs: 1" in ask(tmp_path)[2]


@pytest.mark.parametrize("width", ["80", "120"])
def test_an_overview_fits(ask: Ask, slower: Path, width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    out = ask(slower)[1]

    assert "No room" not in out
    assert "All on AMD EPYC" in out


def test_any_statement_can_be_asked(ask: Ask, slower: Path) -> None:
    status, out, _ = ask(slower, "--sql", "SELECT count(*) AS runs, max(started) AS last FROM runs", "--format", "csv")

    assert (status, out) == (0, "runs,last\n60,2026-03-01T02:00:00+00:00\n")
    assert ask(slower, "--sql", "SELECT nothing")[0] == 2


def test_columns_need_no_results(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, _ = ask("--columns")

    assert status == 0
    for table in ("runs", "points", "cases", "turns", "comparisons", "series"):
        assert f"{table}: " in out


def test_two_questions_at_once_are_one_too_many(ask: Ask, slower: Path) -> None:
    status, _, said = ask(slower, "--changes", "--sql", "SELECT 1")

    assert status == 2
    assert "--changes and --sql ask for different things; give one of them" in said


def test_what_was_left_out_is_told_beside_the_answer_and_never_in_it(ask: Ask, slower: Path, tmp_path: Path) -> None:
    store(tmp_path, make_nights(1)[0])
    (tmp_path / "20260102-020000-nightly").mkdir()
    (tmp_path / "20260102-020000-nightly" / "run.json").write_text("{")

    _, out, said = ask(tmp_path, "--sql", "SELECT run FROM runs", "--format", "csv")

    assert out == "run\n20260101-020000-nightly\n"
    assert "20260102-020000-nightly is left out" in said


def test_it_can_be_kept_in_a_file(ask: Ask, slower: Path, tmp_path: Path) -> None:
    status, out, _ = ask(slower, "--changes", "--format", "markdown", "--out", tmp_path / "summary.md")

    assert (status, out) == (1, "")
    assert (tmp_path / "summary.md").read_text().startswith("**2 cases became slower by the compiler")


def test_failures_come_first_and_exit_with_3(ask: Ask, tmp_path: Path) -> None:
    runs = [make_night(night, generations=2, rounds=2) for night in range(4)]
    compacted(tmp_path, [*runs[:2], *map(failing, runs[2:])])

    for options in ([], ["--changes"]):
        status, out, _ = ask(tmp_path, *options)
        assert status == (3 if options else 0)
        assert out.startswith(f"1 case fails: net/tiled@cpu since {night_id(2)} (3.13.0): compile: ")
        assert "Cases that fail\n" in out
    assert ask(tmp_path, "--changes", "--last", 1)[0] == 0  # it failed before
    for options, key in ([], "suites"), (["--changes"], "changes"):
        document = json.loads(ask(tmp_path, *options, "--format", "json")[1])
        (case,) = document["cases"]
        assert (case["state"], case["since"], case["recent"]) == ("fails", night_id(2), True)
        assert key in document
    _, out, err = ask(tmp_path, "--format", "csv")
    assert [row["failing"] for row in csv.DictReader(io.StringIO(out))] == ["1"]
    assert "1 case fails: " in err


def test_an_empty_history_is_no_error(ask: Ask, tmp_path: Path) -> None:
    for options in ([], ["--changes"], ["--sql", "SELECT * FROM series"]):
        assert ask(tmp_path, *options)[0] == 0
    assert ask(tmp_path)[1].startswith("There is no run here yet; `harness run SUITE` adds one")
