"""What `harness tune` takes, prints and ends with, whatever a search finds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli import bisect as commands
from harness.cli import run_command_line
from harness.records.tuning import Tuning
from harness.report.tune_page import tune_json
from harness.stages.options import TuneOptions
from harness.stages.tuning import NoStart
from harness.store.kinds import TUNING
from tests.builders import FLAGS, SUITE
from tests.report.tunings import make_tuning

FOUND = make_tuning()


@pytest.fixture(autouse=True)
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite in the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SUITE)
    Path("flags.toml").write_text(FLAGS)
    Path("net.mlir").touch()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[TuneOptions]:
    """The options that searches were called with; each finds something, but for the model `broken`."""
    options: list[TuneOptions] = []

    def search(given: TuneOptions, *_: object) -> Iterator[Tuning | NoStart]:
        options.append(given)
        if "broken" in given.models:
            yield NoStart("tune", "broken/stock@cpu cannot be measured")
        yield FOUND

    monkeypatch.setattr(commands, "search", search)
    return options


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("15m", 900), ("1.5h", 5400), (" 2 m ", 120), *((text, None) for text in ("0m", "-5s", "5d", "1h30"))],
)
def test_a_budget_is_a_time(
    text: str, seconds: float | None, asked: list[TuneOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    status = run_command_line(["tune", "small.toml", f"--budget={text}", "--quiet"])
    assert (status, [options.budget for options in asked]) == ((0, [seconds]) if seconds else (2, []))
    printed = capsys.readouterr()
    assert seconds is None or (FOUND.sentence in " ".join(printed.out.split()) and printed.err == "")
    assert seconds or "is no time; write 90s, 15m or 2h" in printed.err


def test_a_model_that_cannot_begin_is_told_and_the_next_one_is_printed(
    asked: list[TuneOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    status = run_command_line(["tune", "small.toml", "--model", "broken", "--model", "net", "--format", "json"])
    printed = capsys.readouterr()
    assert status == 3
    assert "broken/stock@cpu cannot be measured" in printed.err
    assert json.loads(printed.out)["id"] == FOUND.id, "one document and nothing else"
    assert f"Kept in tuned/{FOUND.id}\n" in printed.err


def test_a_budget_in_which_nothing_was_timed_is_no_success(
    asked: list[TuneOptions], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = make_tuning(answer="budget too small")
    monkeypatch.setattr(commands, "search", lambda *_: iter((small, FOUND)))
    assert run_command_line(["tune", "small.toml", "--quiet"]) == 3
    assert FOUND.sentence in " ".join(capsys.readouterr().out.split()), "the rest goes on"


def test_a_report_has_the_models_and_the_device_that_are_asked_for(
    asked: list[TuneOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    for model, device in (("mlp", "cpu"), ("rdb", "cpu"), ("rdb", "cuda")):
        folder = Path("tuned", f"{model}@{device}")
        folder.mkdir(parents=True)
        found = make_tuning(id=folder.name, model=model, device=device)
        (folder / TUNING.file).write_text(tune_json(found))

    def printed(*options: str) -> list[str]:
        assert run_command_line(["tune", "--report", *options]) == 0
        text = capsys.readouterr().out
        return [name for name in ("mlp on cpu", "rdb on cpu", "rdb on cuda") if name in text]

    assert printed() == ["mlp on cpu", "rdb on cpu", "rdb on cuda"]
    assert printed("--model", "rdb") == ["rdb on cpu", "rdb on cuda"]
    assert printed("--model", "rdb", "--device", "cuda") == ["rdb on cuda"]
    assert run_command_line(["tune", "--report", "--device", "hip"]) == 2
    assert "tuned has mlp@cpu, rdb@cpu, rdb@cuda, and none is of the --model and --device" in capsys.readouterr().err
    assert asked == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "say what is tuned, as in `harness tune suites/models.toml --model efficientnet`"),
        (["--report"], "--report: tuned holds no search that has come to its end; name its folder with --out"),
    ],
)
def test_nothing_to_tune_or_to_report(
    arguments: list[str], words: str, asked: list[TuneOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["tune", *arguments]) == 2
    assert capsys.readouterr().err == f"harness: {words}\n"
    assert asked == []


@pytest.mark.parametrize(
    ("option", "name", "meant"), [("--model", "nt", "net"), ("--device", "cpus", "cpu"), ("--variant", "stok", "stock")]
)
def test_a_name_that_the_suite_does_not_have(
    option: str, name: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["tune", "small.toml", option, name]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"harness: small.toml: there is no {option.strip('-')} '{name}'")
    assert meant in error
    assert not Path("tuned").exists()
