"""What searches print and end with: a bisect, a verdict for git bisect, and a tuning."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli import bisect as commands
from harness.cli import run_command_line
from harness.errors import UsageError
from harness.records.bisection import Bisection, FoundStep, OpenStretch, Trial
from harness.records.tuning import Tuning
from harness.report.data import document_of
from harness.stages.bisect_session import Judged, Word
from harness.stages.options import TuneOptions
from harness.stages.tuning import NoStart
from harness.store.folders import BISECT, TUNING
from tests.builders import make_bisection
from tests.report.tunings import make_tuning

FOUND = make_bisection(id="a-bisect", case="net/stock@cpu")
TRIAL = Trial(
    base="the run", head="now", floor=0.01, verdict="regressed", ratio=1.42, ci_low=1.4, ci_high=1.44, generations=22
)
EXACT = replace(TRIAL, exact=True, ratio=1.5, base_value=10e6, head_value=15e6)
STEP = FoundStep(before="3.6.0", after="3.7.0", size=TRIAL)
VERDICT = ("verdict", "small.toml", "--case", "net/stock@cpu", "--against", "a-run")


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (FOUND, 0),
        (replace(FOUND, open=(OpenStretch(first="3.6.0", last="3.7.0", reason="noise"),)), 4),
        (replace(FOUND, finished=False, steps=(replace(STEP, passed_over=("3.6.1",)),)), 4),
    ],
)
def test_a_bisect_ends_by_what_it_knows_and_is_printed_again(
    found: Bisection, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a-bisect"
    path.mkdir()
    (path / BISECT.file).write_text(document_of(found).decode())
    session = SimpleNamespace(directory=SimpleNamespace(path=path), run=lambda: found)
    monkeypatch.setattr(commands, "session_of", lambda *_: session)
    assert run_command_line(["bisect", "small.toml", "--format", "json"]) == status
    printed = capsys.readouterr()
    assert '"case": "net/stock@cpu"' in printed.out
    assert printed.err.endswith(f"Kept in {path}\n")
    assert run_command_line(["report", str(path), "--format", "json"]) == status
    assert capsys.readouterr().out == printed.out
    assert run_command_line(["plot", str(path), "--out", "x.svg"]) == 2


@pytest.mark.parametrize(
    ("word", "trial", "status", "line"),
    [
        ("bad", TRIAL, 1, "bad: latency of net/stock@cpu 1.420 [1.400, 1.440] times that of the run (confirmed)"),
        ("bad", EXACT, 1, "bad: latency of net/stock@cpu 15.00 ms, and 10.00 ms with the run"),
        ("cannot tell", None, 125, "cannot tell: net/stock@cpu: confirmed"),
    ],
)
def test_a_verdict_is_what_git_bisect_wants(
    word: Word,
    trial: Trial | None,
    status: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        commands, "judge_now", lambda *_: Judged(case="net/stock@cpu", word=word, reason="confirmed", trial=trial)
    )
    assert run_command_line([*VERDICT, "--quiet"]) == status
    assert capsys.readouterr() == (f"{line}\n", "")


def test_a_wrong_question_stops_git_bisect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object) -> Judged:
        raise UsageError("--against a-run: there is no such run")

    def fail(*_: object) -> Judged:
        raise ZeroDivisionError

    monkeypatch.setattr(commands, "judge_now", refuse)
    assert run_command_line(VERDICT) == 130
    assert run_command_line([*VERDICT, "--no-such-option"]) == 130
    monkeypatch.setattr(commands, "judge_now", fail)
    monkeypatch.delenv("HARNESS_TRACEBACK", raising=False)
    assert run_command_line(VERDICT) == 198
    assert "harness: --against a-run: there is no such run\n" in capsys.readouterr().err


# --- `harness tune` ---


TUNED = make_tuning()


@pytest.fixture
def asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[TuneOptions]:
    """The options that searches were called with; each finds something, but for the model `broken`."""
    options: list[TuneOptions] = []

    def search(given: TuneOptions, *_: object) -> Iterator[Tuning | NoStart]:
        options.append(given)
        if "broken" in given.models:
            yield NoStart("tune", "broken/stock@cpu cannot be measured")
        yield TUNED

    monkeypatch.setattr(commands, "search", search)
    return options


def test_a_budget_is_a_time(asked: list[TuneOptions], capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("90", "15m", "1.5h", " 2 m "):
        assert run_command_line(["tune", "small.toml", f"--budget={text}", "--quiet"]) == 0
    assert [options.budget for options in asked] == [90, 900, 5400, 120]
    printed = capsys.readouterr()
    assert TUNED.sentence in " ".join(printed.out.split()) and printed.err == ""
    for text in ("-5s", "5d", "1h30", "nan"):
        assert run_command_line(["tune", "small.toml", f"--budget={text}"]) == 2
        assert "is no time; write 90s, 15m or 2h" in capsys.readouterr().err


def test_a_model_that_cannot_begin_is_told_and_the_next_one_is_printed(
    asked: list[TuneOptions], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither that nor a budget in which nothing was timed is a success."""
    status = run_command_line(["tune", "small.toml", "--model", "broken", "--model", "net", "--format", "json"])
    printed = capsys.readouterr()
    assert (status, json.loads(printed.out)["id"]) == (3, TUNED.id), "one document and nothing else"
    assert "broken/stock@cpu cannot be measured" in printed.err
    assert f"Kept in tuned/{TUNED.id}\n" in printed.err
    monkeypatch.setattr(commands, "search", lambda *_: iter((make_tuning(answer="budget too small"), TUNED)))
    assert run_command_line(["tune", "small.toml", "--quiet"]) == 3
    assert TUNED.sentence in " ".join(capsys.readouterr().out.split()), "the rest goes on"


def test_a_report_has_the_models_and_the_device_that_are_asked_for(
    asked: list[TuneOptions], capsys: pytest.CaptureFixture[str]
) -> None:
    for model, device in (("mlp", "cpu"), ("rdb", "cpu"), ("rdb", "cuda")):
        folder = Path("tuned", f"{model}@{device}")
        folder.mkdir(parents=True)
        found = make_tuning(id=folder.name, model=model, device=device)
        (folder / TUNING.file).write_text(document_of(found).decode())

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
