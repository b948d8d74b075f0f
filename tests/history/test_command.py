"""`harness history` from outside: what it prints, where, and its exit status."""

import csv
import io
import json
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from harness.cli import history as command
from harness.cli import run_command_line
from harness.history.dating import Dated, Question
from harness.report.rows import rows_of
from tests.history.made import make_night, night_id, step, store
from tests.history.test_failures import failing

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty nights; the machine became slower long ago, and the compiler lately."""
    results = tmp_path_factory.mktemp("slower")
    runs = [make_night(night, machine=step(20, 1.06), compiler=step(54, 1.06)) for night in range(60)]
    for run in runs:
        store(results, run)
    return results


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setenv("COLUMNS", "200")

    def ask_history(*arguments: object) -> tuple[int, str, str]:
        status = run_command_line(["history", *map(str, arguments)])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return ask_history


def csv_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_changes_fail_where_the_compiler_became_slower_lately(ask: Ask, slower: Path, tmp_path: Path) -> None:
    verdict = "2 cases became slower by the compiler in the last 10 runs: "
    assert ask(slower, "--changes", "--format", "markdown", "--out", tmp_path / "summary.md")[:2] == (1, "")
    assert (tmp_path / "summary.md").read_text().startswith(f"**{verdict}")
    assert ask(slower, "--changes", "--last", 5)[0] == 0
    status, out, _ = ask(slower, "--changes", "--metric", "dispatches", "--metric", "copies")
    assert (status, "series were searched" in out) == (0, False)  # nothing counted is flagged by chance
    status, out, _ = ask(slower, "--changes", "--format", "json")
    document = json.loads(out)
    rows = csv_rows(ask(slower, "--changes", "--format", "csv")[1])
    assert (status, document["schema_version"], document["verdict"].startswith(verdict)) == (1, 1, True)
    assert len(document["changes"]) == len(rows)
    assert [change["first_bad"] for change in document["changes"] if change["fails"]] == [night_id(54)] * 2
    assert {row["cause"] for row in rows} == {"compiler", "machine"}


def test_new_steps_that_came_with_a_release_are_searched_where_that_is_asked_for(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def date(questions: Sequence[Question], *told: object) -> Iterator[Dated]:
        asked.extend(told[:2])
        return (Dated(question=question, answer="Since 3.13.0.", is_final=True) for question in questions)

    monkeypatch.setattr(command, "date_steps", date)
    for night in range(12):
        newest, dispatches = ("3.13.0", 9) if night >= 6 else ("3.12.0", 7)
        releases = ("3.11.0", newest)
        run = make_night(night, suite="x.toml", toolchains=releases, dispatches=dispatches, reference_dispatches=7)
        store(tmp_path, run, rows_of)
    options = (tmp_path, "--changes", "--metric", "dispatches", "--format", "json")
    (first, second) = json.loads(ask(*options)[1])["bisects"]
    assert (first["case"], first["good"], first["bad"], first["answer"]) == ("net/stock@cpu", "3.12.0", "3.13.0", "")
    assert first["command"].startswith("harness bisect x.toml --case net/stock@cpu --good iree==3.12.0 ")
    assert second["case"] == "net/tiled@cpu"
    found = json.loads(ask(*options, "--bisect", "60", "--bisect-results", tmp_path / "bisects")[1])["bisects"]
    assert [each["answer"] for each in found] == ["Since 3.13.0."] * 2
    assert asked == [60, tmp_path / "bisects"]
    status, _, err = ask(tmp_path, "--bisect", "60")
    assert (status, "--bisect searches the steps that --changes finds; give both" in err) == (2, True)


def test_what_is_acknowledged_is_listed_apart_and_fails_nothing(
    ask: Ask, slower: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("getpass.getuser", lambda: "anna")
    shutil.copytree(slower, "results")
    document = json.loads(ask("--changes", "--format", "json")[1])
    first, second = (change["id"] for change in document["changes"] if change["fails"])

    status, out, _ = ask("ack", first, "--note", "wanted")
    assert (status, out.startswith(f"{first}: net/"), out.endswith(" is acknowledged.\n")) == (0, True, True)
    assert ask("--changes")[0] == 1
    assert ask("ack", second, "--fixed", "--note", "in 3.13.1", "--who", "Bert B.")[0] == 0
    status, out, _ = ask("--changes")
    assert (status, "; known: 1 acknowledged, 1 marked as fixed." in " ".join(out.split())) == (0, True)
    assert ask("ack", second, "--undo")[0] == 0
    status, out, _ = ask("--changes", "--format", "json")
    document = json.loads(out)
    assert status == 1
    assert {change["state"] for change in document["changes"] if change["id"] == first} == {"acknowledged"}
    assert [(said["state"], said["who"], said["changes"]) for said in document["acknowledgements"]] == [
        ("acknowledged", "anna", [first]),
        ("fixed", "Bert B.", [second]),
        ("withdrawn", "anna", [second]),
    ]


def test_failures_come_first_and_exit_with_3(ask: Ask, tmp_path: Path) -> None:
    runs = [make_night(night) for night in range(4)]
    for run in [*runs[:2], *map(failing, runs[2:])]:
        store(tmp_path, run)

    for options in ([], ["--changes"]):
        status, out, _ = ask(tmp_path, *options)
        assert status == (3 if options else 0)
        assert out.startswith(f"1 case fails: net/tiled@cpu since {night_id(2)} (3.13.0): compile: ")
        assert "Cases that fail\n" in out
    assert ask(tmp_path, "--changes", "--last", 1)[0] == 0  # it failed before
    for options, key in ([], "suites"), (["--changes"], "changes"):
        document = json.loads(ask(tmp_path, *options, "--format", "json")[1])
        assert ([case["since"] for case in document["cases"]], key in document) == ([night_id(2)], True)
    _, out, err = ask(tmp_path, "--format", "csv")
    assert [row["failing"] for row in csv_rows(out)] == ["1"]
    assert "1 case fails: " in err


def test_series_are_drawn_with_their_changes_latencies_first(ask: Ask, slower: Path) -> None:
    lines = ask(slower, "--series", "net/stock@cpu latency")[1].partition("(reference, ")[0].splitlines()
    place = next(place for place, line in enumerate(lines) if "▁" in line)
    assert [at for at, mark in enumerate(lines[place + 1]) if mark == "^"] == [20, 54]
    _, out, _ = ask(slower, "--series", "net/stock@cpu")
    heads = [line.split(" (")[0] for line in out.splitlines() if line.startswith("net/stock@cpu ")]
    assert heads[:3] == ["net/stock@cpu latency", "net/stock@cpu latency", "net/stock@cpu latency-vs-reference"]
    assert " more series match; --metric" in out


@pytest.mark.parametrize("options", [["--series", "nothing*"], ["--changes", "--metric", "speed"]])
def test_a_hint_is_a_command_that_works_on_this_folder(ask: Ask, slower: Path, options: list[str]) -> None:
    status, _, err = ask(slower, *options)
    hint = shlex.split(err.split("`")[1])

    assert status == 2
    assert hint[:3] == ["harness", "history", str(slower)]
    status, out, _ = ask(*hint[2:], "--format", "csv")
    assert status == 0
    assert "latency-vs-reference" in out


def test_experiments_are_left_out_unless_asked_for(ask: Ask, tmp_path: Path) -> None:
    bench = make_night(1, settings={"purpose": "bench"}, suite_name="bench-x")
    store(tmp_path, bench, rows_of)

    status, out, _ = ask(tmp_path)
    assert status == 0
    assert out.startswith("Every run here is left out.")
    assert "1 run with the tag experiment is left out; --all takes it in." in out
    store(tmp_path, make_night(0), rows_of)
    for options, runs in ([], 1), (["--all"], 2), (["--only", "experiment"], 1), (["--leave-out", "experiment"], 1):
        statement = "SELECT count(*) AS runs FROM runs"
        assert ask(tmp_path, *options, "--sql", statement, "--format", "csv")[1] == f"runs\n{runs}\n"
    status, _, err = ask(tmp_path, "--all", "--only", "quiet")
    assert (status, "--all takes all runs and --only some of them; give one of them" in err) == (2, True)
