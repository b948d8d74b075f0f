"""How long the rest takes: from what the steps of a stage took in this run, else as it was planned."""

import pytest

from harness.progress import Silent, WithTimeLeft, duration, time_left


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(9, "10 s"), (94, "90 s"), (95, "2 min"), (250, "4 min"), (780, "15 min"), (3480, "1 h"), (4680, "1 h 20 min")],
)
def test_a_length_of_time_has_few_digits(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [([0], ""), ([4], "a few seconds"), ([40, 20], "about 60 s"), ([60, None], "at least 60 s"), ([4, None], "")],
)
def test_what_is_left_in_words(seconds: list[float | None], words: str) -> None:
    assert time_left(seconds) == words


class Shown(Silent):
    """Keeps what was said to be left at each step."""

    def __init__(self) -> None:
        self.words = ""
        self.steps: list[tuple[str, str]] = []

    def left(self, words: str) -> None:
        """Keep it for the next step."""
        self.words = words

    def step(self, text: str, advance: int = 1) -> None:  # noqa: ARG002
        """Keep it with what was left."""
        self.steps.append((text, self.words))


def test_steps_say_what_is_left_by_the_clock() -> None:
    now, shown = 0.0, Shown()
    progress = WithTimeLeft(shown, {"Verify": 40, "Compile": 40}, lambda: now)
    for title, steps in {
        "Models": [(0, "m", 0)],  # which nobody planned
        "Verify": [(10, "a", 0), (20, "a", 1), (50, "b", 1)],
        "Compile": [(150, "c", 0), (160, "c", 1), (160, "d", 1)],  # it took longer than was planned
    }.items():
        progress.stage(title, 2)
        for now, text, advance in steps:  # noqa: B007 (the clock reads it)
            progress.step(text, advance)
    assert shown.steps == [
        ("m", "about 80 s"),
        ("a", "about 70 s"),
        ("a", "about 60 s"),
        ("b", "about 40 s"),
        ("c", ""),
        ("c", "about 2 min"),
        ("d", ""),
    ]
