"""Names from anywhere in columns and pictures."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from harness.report.names import middle_cut, tidy


@given(st.text())
def test_a_name_is_one_line_of_characters_that_are_seen(text: str) -> None:
    found = tidy(text)
    assert not {unicodedata.category(char) for char in found} & {"Cc", "Cf", "Cs", "Zl", "Zp", "Mn"}
    assert found == " ".join(found.split())
    assert tidy(found) == found


def test_what_changes_the_text_around_it_is_taken_out() -> None:
    assert tidy("a\u202ebc\u2066d\u200be\x1b[31mf") == "abcdef"


def test_ten_thousand_characters() -> None:
    assert len(tidy("x" * 10_000)) == 400
    assert tidy("x" * 10_000).endswith("…")


@given(st.text(max_size=50), st.integers(0, 60))
def test_what_is_left_of_a_name_is_as_long_as_was_asked(text: str, keep: int) -> None:
    assert len(middle_cut(text, keep)) <= max(keep, 0) + 1
    if keep >= len(text):
        assert middle_cut(text, keep) == text
