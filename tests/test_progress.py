"""How long the rest takes: from what earlier runs took, corrected by what is done now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.progress import Left, Piece, Remaining, Silent, WithTimeLeft, duration


def pieces(stage: str, **seconds: float | None) -> list[Piece]:
    return [Piece(stage=stage, name=name, seconds=value) for name, value in seconds.items()]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (9, "10 s"),
        (44, "40 s"),
        (94, "90 s"),
        (95, "2 min"),
        (250, "4 min"),
        (9 * 60, "9 min"),
        (13 * 60, "15 min"),
        (57 * 60, "55 min"),
        (58 * 60, "1 h"),
        (78 * 60, "1 h 20 min"),
    ],
)
def test_a_length_of_time_has_few_digits(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (Left(seconds=0), ""),
        (Left(seconds=4), "a few seconds"),
        (Left(seconds=60), "about 60 s"),
        (Left(seconds=60, unknown=1), "at least 60 s"),
        (Left(seconds=4, unknown=1), ""),
    ],
)
def test_what_is_left_in_words(left: Left, words: str) -> None:
    assert left.words == words


def test_nothing_done_yet_is_what_earlier_runs_took() -> None:
    remaining = Remaining([*pieces("Compile", a=10, b=20), *pieces("Verify", a=1, b=None)])
    assert remaining.left() == Left(seconds=31, unknown=1)


def test_what_is_done_at_once_takes_as_long_as_its_share_or_the_longest() -> None:
    assert Remaining(pieces("Compile", a=10, b=10, c=10, d=10), {"Compile": 2}).left().seconds == 20
    assert Remaining(pieces("Compile", a=1, b=1, c=30), {"Compile": 2}).left().seconds == 30


def test_a_stage_that_takes_longer_than_expected_is_expected_to_go_on_so() -> None:
    remaining = Remaining([*pieces("Verify", a=100, b=100), *pieces("Measure", group=50)])
    remaining.end("Verify", "a", 200)
    assert remaining.left().seconds == pytest.approx(100 * 202 / 102 + 50)


def test_what_is_unknown_takes_what_others_of_its_stage_took() -> None:
    remaining = Remaining(pieces("Compile", a=None, b=None, c=None))
    remaining.end("Compile", "a", 7)
    assert remaining.left() == Left(seconds=14)


def test_a_piece_that_failed_says_nothing_of_the_others() -> None:
    remaining = Remaining(pieces("Compile", a=None, b=None))
    remaining.end("Compile", "a", None)
    assert remaining.left() == Left(seconds=0, unknown=1)


def test_pieces_of_one_name_end_one_after_the_other_and_others_are_passed_over() -> None:
    remaining = Remaining([*pieces("Measure", group=5), *pieces("Measure", group=5)])
    remaining.end("Measure", "group", 5)
    remaining.end("Measure", "nobody", 5)
    remaining.end("Peaks", "group", 5)
    assert remaining.left().seconds == pytest.approx(5)
    remaining.forget(["group"])
    assert remaining.left().seconds == 0


def test_what_is_spent_on_a_piece_counts_up_to_what_it_should_take() -> None:
    remaining = Remaining(pieces("Verify", a=10, b=10))
    assert [remaining.left("Verify", spent).seconds for spent in (0, 4, 60)] == [20, 16, 10]
    assert remaining.left("Measure", 4).seconds == 20


@given(st.lists(st.none() | st.floats(0, 1e4), max_size=8), st.integers(1, 4), st.floats(0, 1e4))
def test_time_left_is_never_negative(expected: list[float | None], at_once: int, spent: float) -> None:
    remaining = Remaining(
        [Piece(stage="Compile", name=str(number), seconds=seconds) for number, seconds in enumerate(expected)],
        {"Compile": at_once},
    )
    for number in range(len(expected)):
        remaining.end("Compile", str(number), spent)
        assert remaining.left("Compile", spent).seconds >= -1e-9


# --- As a run's progress says it ---


class Shown(Silent):
    """Keeps what was said to be left at each step."""

    def __init__(self) -> None:
        self.words = ""
        self.steps: list[tuple[str, str]] = []

    def left(self, words: str) -> None:
        """Keep it for the next step."""
        self.words = words

    def step(self, text: str, advance: int = 1, seconds: float | None = None) -> None:  # noqa: ARG002
        """Keep it with what was left."""
        self.steps.append((text, self.words))


def test_steps_say_what_is_left_by_the_clock() -> None:
    now, shown = 0.0, Shown()
    remaining = Remaining([*pieces("Verify", a=20, b=20), *pieces("Compile", c=40, d=40)], {"Compile": 2})
    progress = WithTimeLeft(shown, remaining, lambda: now)
    progress.stage("Verify", 2)
    now = 10
    progress.step("a", advance=0)
    now = 20
    progress.step("a")
    now = 40
    progress.step("b")
    progress.stage("Compile", 2)
    now = 60
    progress.step("c", advance=0)  # of two at once, of which each takes as long as both
    now = 80
    progress.step("c", seconds=40)
    progress.step("d", seconds=40)
    assert shown.steps == [
        ("a", "about 70 s"),
        ("a", "about 60 s"),
        ("b", "about 40 s"),
        ("c", "about 20 s"),
        ("c", "about 40 s"),
        ("d", ""),
    ]
