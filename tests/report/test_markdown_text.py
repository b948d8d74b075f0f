"""Whatever is put into a table, a name or a fold comes out of GitHub's Markdown as the same text.

markdown-it is a CommonMark parser with GitHub's tables and strike-through: what it shows stands for what GitHub shows.
"""

import re
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.report.markdown import blocks, escape, fenced, name, paragraph, table
from harness.text import one_line
from tests.report.rendered import PARSER

ANY_TEXT = st.text(
    alphabet=st.one_of(st.sampled_from("|`\\*_~[]()<>&#@!-\n\r\tab1:/. "), st.characters(exclude_categories=["Cs"]))
)


@given(ANY_TEXT, ANY_TEXT)
@example("a|b", "`one` ``two")
@example("\\|", "a\\")
@example("[x](http://e.org) ![y](z)", "<b> &amp; <!-- c -->")
@example("_a_ __b__ c_d", "*a* **b** ~~c~~ ~d~")
@example("@octocat #1 func.func @main", "a@b.c")
def test_cells_show_the_text_that_was_put_in(first: str, second: str) -> None:
    page = PARSER.render(table(("head",) * 3, [(escape(first), name(second), "end")]))
    cells = (re.sub(r"</?(?:code|span)>", "", text) for text in re.findall(r"<td>(.*?)</td>", page, re.DOTALL))
    expected = [one_line(first), one_line(second), "end"]
    assert [unescape(text).replace("\u200b", "") for text in cells] == [text.replace("\u200b", "") for text in expected]
    tags = set(re.findall(r"<(\w+)", page))
    assert tags <= {"table", "thead", "tbody", "tr", "th", "td", "code", "span"}


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("'linalg.conv_2d_nchw_fchw' op failed", "'linalg.conv_2d_nchw_fchw' op failed"),
        ("0.602 [0.597, 0.607]", "0.602 [0.597, 0.607]"),
        ("func.func @main, rdb/stock@cpu", "func.func @&#8203;main, rdb/stock@cpu"),
        ("iree-org/iree#11102", "iree-org/iree#&#8203;11102"),
        ("GH-7, a@b.co", "GH&#8203;-7, a@&#8203;b.co"),
        ("x@_.a, y@._b", "x@&#8203;\\_.a, y@&#8203;.\\_b"),
        ("https://e.org, _www.e.org", "https:&#8203;//e.org, \\_www&#8203;.e.org"),
        ("model.mlir:100:12: error", "model.mlir:&#8203;100:12: error"),
        ("2026-11-21T09:30:00+00:00", "2026-11-21T09:30:00+00:00"),
        ("$HOME", "<span>$</span>HOME"),
        ("\x1b[31mtwo\nlines\x1b[0m\x07", "two lines"),
        ("live\u202eevil\u2066", "liveevil"),
    ],
)
def test_harmless_text_stays_readable_in_the_source(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize("text", ["# x", "#", "- x", "---", "+ x", "1. x", "2) x", "[x]: http://e.org", "[!NOTE]", "x"])
def test_a_text_that_begins_a_block_stays_a_paragraph(text: str) -> None:
    page = PARSER.render(f"> {paragraph(text)}\n\n[x]")
    assert set(re.findall(r"<(\w+)", page)) == {"blockquote", "p"}
    assert page.count("<p>") == 2 and text[-1] in page


@given(ANY_TEXT)
@example("```\n</details>\n````")
def test_a_fence_holds_any_text(text: str) -> None:
    tokens = PARSER.parse(blocks("before", fenced(text, "sh"), "after"))
    assert [token.type for token in tokens if token.level == 0] == [
        *("paragraph_open", "paragraph_close", "fence", "paragraph_open", "paragraph_close")
    ]
