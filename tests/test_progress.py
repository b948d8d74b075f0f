"""Lengths of time in few digits."""

import pytest

from harness.progress import duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(9, "10 s"), (94, "90 s"), (95, "2 min"), (250, "4 min"), (780, "15 min"), (3480, "1 h"), (4680, "1 h 20 min")],
)
def test_a_length_of_time_has_few_digits(seconds: float, words: str) -> None:
    assert duration(seconds) == words
