"""How long the rest takes: from what a step took in this run, else in the last ones."""

import pytest

from harness.progress import Left, Remaining, Silent, WithTimeLeft, duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (9, "10 s"),
        (94, "90 s"),
        (95, "2 min"),
        (250, "4 min"),
        (13 * 60, "15 min"),
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


def test_what_was_done_tells_more_than_earlier_runs() -> None:
    assert Remaining({"Compile": "ab", "Verify": "c"}, {"Compile": 15}).left() == Left(seconds=30, unknown=1)
    assert Remaining({"Compile": "abcde"}, {"Compile": 10}, {"Compile": 2}).left().seconds == 30, "two at once"
    remaining = Remaining({"Verify": "abc", "Measure": ["group"]}, {"Verify": 1, "Measure": 50})
    remaining.end("Verify", "a", 100)
    remaining.end("Verify", "b", None)  # it failed, which says nothing of the others
    assert remaining.left().seconds == 100 + 50


def test_steps_of_one_name_end_one_after_the_other_and_others_are_passed_over() -> None:
    remaining = Remaining({"Measure": ["group", "group"]}, {"Measure": 5})
    remaining.end("Measure", "group", 5)
    remaining.end("Measure", "nobody", 7)
    remaining.end("Peaks", "group", 7)
    assert remaining.left().seconds == 5
    remaining.forget(["group"])
    assert remaining.left().seconds == 0


def test_what_is_spent_on_a_step_counts_up_to_what_it_should_take() -> None:
    remaining = Remaining({"Verify": "ab"}, {"Verify": 10})
    assert [remaining.left("Verify", spent).seconds for spent in (0, 4, 60)] == [20, 16, 10]
    assert remaining.left("Measure", 4).seconds == 20


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
    remaining = Remaining({"Verify": "ab", "Compile": "cd"}, {"Verify": 20, "Compile": 40}, {"Compile": 2})
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
