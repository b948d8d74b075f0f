"""What a long command says while it works, and how long the rest takes."""

import re

import pytest

from harness.progress import Terminal, duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(9, "10 s"), (94, "90 s"), (95, "2 min"), (250, "4 min"), (780, "15 min"), (3480, "1 h"), (4680, "1 h 20 min")],
)
def test_a_length_of_time_has_few_digits(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_lines_say_what_is_left_by_the_steps_so_far_else_as_it_was_planned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("harness.progress.time.monotonic", lambda: now)
    with Terminal() as shown:
        shown.stage("Models", 1)
        shown.expect({"Verify": 40, "Measure": 60})
        shown.stage("Verify", 2)
        now = 20.0
        shown.step("a", advance=0)
        now = 40.0
        shown.step("a")
        shown.left("15 min of the budget")
        now = 60.0
        shown.step("b")
    assert capsys.readouterr().err.splitlines() == [
        "Models: 1",
        "Verify: 2 (about 2 min left)",
        "  verify 0/2 (about 80 s left): a",
        "  verify 1/2 (about 2 min left): a",
        "  verify 2/2 (15 min of the budget left): b",
    ]


def test_a_terminal_has_a_bar_with_the_stage_its_steps_and_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # which makes rich take any stream for a terminal
    monkeypatch.setenv("COLUMNS", "120")
    with Terminal() as shown:
        shown.expect({"Compile": 40})
        shown.stage("Models", 1)
        shown.stage("Compile", 2)
        shown.step("net/stock@cpu")
        shown.note("a line that stays")
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    for part in ("Models", "0/1", "Compile", "1/2", "(about 40 s left)", "net/stock@cpu", "a line that stays"):
        assert part in drawn
