"""What the commands end with: a bisect by what it knows, a verdict by what git bisect makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli import bisect as commands
from harness.cli import run_command_line
from harness.errors import UsageError
from harness.records.bisection import Bisection, FoundStep, OpenStretch, Trial
from harness.report.bisect_page import bisect_json
from harness.stages.bisect_session import Judged, Word
from harness.store.kinds import BISECT
from tests.builders import make_bisection

FOUND = make_bisection(id="a-bisect", case="net/stock@cpu")
TRIAL = Trial(
    base="the run", head="now", floor=0.01, verdict="regressed", ratio=1.42, ci_low=1.4, ci_high=1.44, generations=22
)
STEP = FoundStep(before="3.6.0", after="3.7.0", size=TRIAL)
VERDICT = ("verdict", "small.toml", "--case", "net/stock@cpu", "--against", "a-run")


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (FOUND, 0),
        (replace(FOUND, open=(OpenStretch(first="3.6.0", last="3.7.0", reason="noise"),)), 4),
        (replace(FOUND, open=(OpenStretch(first="3.6.0", last="3.7.0", reason="not searched", aside=True),)), 0),
        (replace(FOUND, finished=False, steps=(replace(STEP, passed_over=("3.6.1",)),)), 4),
    ],
)
def test_a_bisect_ends_by_what_it_knows_and_is_printed_again(
    found: Bisection, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a-bisect"
    path.mkdir()

    def run() -> Bisection:
        (path / BISECT.file).write_text(bisect_json(found))
        return found

    session = SimpleNamespace(directory=SimpleNamespace(path=path), run=run)
    monkeypatch.setattr(commands, "session_of", lambda *_: session)
    assert run_command_line(["bisect", "small.toml", "--format", "json"]) == status
    printed = capsys.readouterr()
    assert '"case": "net/stock@cpu"' in printed.out
    assert printed.err.endswith(f"Kept in {path}\n")
    assert run_command_line(["report", str(path), "--format", "json"]) == status
    assert capsys.readouterr().out == printed.out
    assert run_command_line(["report", str(path), "--format", "markdown"]) == status
    assert "net/stock@cpu" in capsys.readouterr().out
    assert run_command_line(["plot", str(path), "--out", "x.svg"]) == 2
    (path / BISECT.file).rename(path / BISECT.begun_file)
    assert run_command_line(["report", str(path)]) == 2
    assert "has not come to its end; go on with `harness bisect --resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "trial", "status", "line"),
    [
        (
            "bad",
            TRIAL,
            1,
            "bad: latency of net/stock@cpu 1.420 [1.400, 1.440] times that of the run (confirmed)",
        ),
        (
            "bad",
            replace(TRIAL, exact=True, ratio=1.5, base_value=10e6, head_value=15e6),
            1,
            "bad: latency of net/stock@cpu 15.00 ms, and 10.00 ms with the run",
        ),
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
