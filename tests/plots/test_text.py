"""Any text can be measured, cut and drawn, without a warning of the font's."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.plots.text import cut, cut_end, drawable, width_px, wrapped


def test_characters_that_the_font_lacks_are_boxes() -> None:
    assert drawable("a 🚀 日本 é") == "a □ □□ é"


def test_characters_that_are_not_seen_are_taken_out() -> None:
    assert drawable("a\u202eb\u200bc\x1b[31md\n\te\ud800") == "abcd e"


def test_accents_are_joined_to_their_letters() -> None:
    assert drawable("e\u0301") == "é"


def test_a_long_name_loses_its_middle() -> None:
    found = cut("residual-dense-block-with-a-long-name@local-task", 200, 13)
    assert "…" in found
    assert found.startswith("residual")
    assert found.endswith("task")


def test_ten_thousand_characters_are_cut_at_once() -> None:
    assert width_px(cut("x" * 10_000, 300, 13), 13) <= 300


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.floats(30, 400))
def test_what_is_cut_fits(text: str, room: float) -> None:
    for found in (cut(text, room, 13), cut_end(text, room, 13), *wrapped(text, room, 13)):
        assert width_px(found, 13) <= room


def test_a_sentence_is_broken_between_words_and_its_end_is_marked() -> None:
    lines = wrapped("one two three four five six seven eight nine ten", 120, 13, most=2)
    assert len(lines) == 2
    assert lines[0] == "one two three"
    assert lines[1].endswith("…")


def test_bold_is_wider() -> None:
    assert width_px("baseline", 13, bold=True) > width_px("baseline", 13)
