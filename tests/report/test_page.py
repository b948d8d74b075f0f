"""A page in every format: each fact occurs, foreign text is inert, widths and limits hold.

markdown-it is a CommonMark parser with GitHub's tables and strike-through: what it shows stands for what GitHub shows.
"""

import html
import json
import math
import re
from html import unescape

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.report.data import Field, records, tabulate, to_csv, to_json
from harness.report.markdown import COMMENT, escape, name, paragraph, size_bytes, table, to_markdown
from harness.report.page import (
    Bullets,
    Code,
    Column,
    Fold,
    Heading,
    Link,
    Name,
    Page,
    Paragraph,
    Picture,
    Step,
    Steps,
    Table,
    Warnings,
)
from harness.report.terminal import to_terminal
from harness.text import one_line
from tests.report.rendered import HOSTILE, PARSER, require_ours


def a_table(*names: str, why: str = "since it is so") -> Table:
    columns = (
        Column("case", names, kind="name"),
        Column("latency", [f"{place}.5" for place, _ in enumerate(names)], kind="number", unit="ms"),
        Column("kernel", ["6.1"] * len(names), rank=2),
        Column("why", [why] * len(names), kind="sentence"),
    )
    return Table(title="Cases", columns=columns, tones=["bad"] * len(names), first=3)


def a_page(text: str) -> Page:
    """One of each part, with the same text everywhere."""
    return Page(
        marker=("report", text),
        title=text,
        verdict=text,
        parts=(
            Warnings([text, text]),
            Heading(text, aside=text),
            Paragraph((text, " ", Name(text), " ", Link(text, f"https://e.org/{text}"))),
            Paragraph(text, "dim"),
            a_table(text, text, why=text),
            Bullets([text]),
            Code(text, "log", text),
            Fold(
                text,
                (
                    Code(text, "sh"),
                    Picture(alt=text, light_url=f"https://e.org/{text}", dark_url=f"https://e.org/{text}"),
                ),
            ),
            Steps((Step(text, text),)),
        ),
        notes=(text,),
    )


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@example("```\n<script>\n````")
@example('"><script>')
@example(":tada:A")
@example(":tada:_")
@example(":tada_:")
@given(HOSTILE)
def test_no_text_becomes_markup_or_moves_a_terminal(text: str) -> None:
    assume(one_line(text))
    assert not set(to_terminal(a_page(text), width=80)) & {"\x1b", "\r", "\u202e", "\u2066"}
    require_ours(to_markdown(a_page(text)), addresses=("https://e.org/",))


@settings(max_examples=30)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=8), st.integers(40, 140))
def test_a_table_has_every_row_within_the_width(names: list[str], width: int) -> None:
    lines = to_terminal(Page(parts=(a_table(*names),)), width=width).splitlines()
    assert all(cell_len(line) <= width for line in lines)
    assert [line for place, _ in enumerate(names) for line in lines if f"{place}.5" in line]


def test_a_narrow_terminal_leaves_out_columns_and_puts_sentences_below() -> None:
    page = Page(parts=(a_table("stock", why="inert, which is a longer sentence"),))
    wide, narrow = to_terminal(page, width=90), to_terminal(page, width=20)
    assert "hidden" not in wide and "why:" not in wide
    assert "Column hidden: kernel (widen the terminal)." in " ".join(narrow.split()) and "\nwhy:\n" in narrow
    twice = Page(parts=(a_table("stock", "nhwc", why="inert, which is a longer sentence"),))
    assert re.search(r"why:\nstock, nhwc +inert, which", to_terminal(twice, width=90)), "it is said once"
    colored = re.sub(r"\x1b\[[0-9;]*m", "", to_terminal(page, width=90, color=True))
    assert [line.rstrip() for line in colored.splitlines()] == wide.splitlines(), "colours only repeat the words"


def test_sentences_leave_figures_the_width_of_a_table() -> None:
    columns = (
        Column("case", ("a", "b", "# c"), kind="text"),
        Column("latency", ("1", "2", "3"), kind="number", unit="ms"),
        Column("why", (("inert", "slow"), "inert", "odd"), kind="sentence"),
    )
    assert to_markdown(Page(parts=(Table(columns=columns, after=("Times are medians.",)),))) == (
        "| case | latency (ms) |\n| --- | ---: |\n| a | 1 |\n| b | 2 |\n| # c | 3 |\n\n"
        "Why:\n\n- a, b: inert\n- a: slow\n- &#8203;# c: odd\n\nTimes are medians.\n"
    )
    assert "| a | inert<br>slow |" in to_markdown(Page(parts=(Table(columns=(columns[0], columns[2])),)))


def test_long_lists_are_cut_where_there_is_a_limit_and_on_a_terminal_and_the_rest_is_counted() -> None:
    names = [f"model/variant-{row}/cpu" for row in range(1_000)]
    commands = Fold("Commands", [Code(name, "sh") for name in names], aside=True)
    listed = [piece for name in names for piece in (", ", Name(name))]
    page = Page(
        parts=(Paragraph("fixed"), a_table(*names), commands, Paragraph(("Those: ", *listed))),
        foot=[Paragraph("all of it is there")],
    )
    for limit in (60_000, 20_000, 5_000):
        text = to_markdown(page, limit)
        assert size_bytes(text) <= limit
        assert text.startswith("fixed\n") and text.endswith("\nall of it is there\n")
        assert "<summary>997 more</summary>" in text and "out of 997 results showed" in text
        assert "more are not shown" in text and re.search(r"and \d+ more\n", text)
    assert "variant-999" in to_markdown(page) and "all of it" not in to_markdown(page)
    terminal = to_terminal(page)
    assert "The first 40 of 1,000 rows." in terminal
    assert terminal.endswith("\nNot shown here, but by --format markdown: Commands\n")


def test_a_comment_cuts_texts_and_leaves_out_half_commands() -> None:
    long = "n" * 5_000
    page = Page(parts=(a_table(long), Code(long + "END", "log"), Steps((Step("do", long),))))
    text = to_markdown(page, COMMENT)
    assert size_bytes(text) < 8_000
    assert "END" in text and "- do\n" in text
    assert size_bytes(to_markdown(page)) > 3 * len(long)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "//evil", "http://[", "https://x/" + "a" * 3_000]
)
def test_links_lead_to_the_web_alone_and_cannot_be_left_early(url: str) -> None:
    page = Page(parts=(Paragraph(Link("report", url)), Picture(alt="a", light_url=url)))
    assert to_markdown(page) == "report\n"
    text = to_markdown(Page(parts=(Paragraph(Link("a]b", 'https://x/")<b>')),)))
    assert "<b>" not in html.unescape(text).replace("%3Cb%3E", "") and text.startswith("[a&#93;b](https://x/%22%29")


def test_one_declaration_feeds_tables_csv_and_json() -> None:
    fields: list[Field[dict[str, object]]] = [
        Field(name="case", title="case", value=lambda row: row["case"], kind="name"),
        Field(name="latency_ns", title="latency", unit="ns", value=lambda row: row.get("ns")),
        Field(title="note", kind="text", value=lambda _: ""),
        Field(name="right", value=lambda row: row.get("right")),
    ]
    rows: list[dict[str, object]] = [{"case": "a\nb", "ns": 2.5e6, "right": True}, {"case": "c"}]
    columns = [(column.head, tuple(column.cells)) for column in tabulate(fields, rows)]
    assert columns == [("case", ("a\nb", "c")), ("latency (ms)", ("2.500", "-"))]
    assert to_csv(records(fields, rows)) == "case,latency_ns,right\na b,2500000.0,true\nc,,\n"
    assert '"latency_ns": 2500000.0' in to_json({"rows": records(fields, rows)})
    for text in ("plain", "\ud800"):  # which is half a surrogate pair
        assert json.loads(to_json({"text": text, "none": [math.nan, math.inf]}))["none"] == [None, None]
    assert to_csv([]) == ""


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
