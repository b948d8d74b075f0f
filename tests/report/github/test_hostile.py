"""Names, reasons and tools' words come from a pull request, and nothing of them becomes markup, link or mention."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from harness.records.comparison import Comparison, GeometricMean, MachineFacts, SelfcheckFacts
from harness.report.github import Image, Images, Links, render_comment, render_full, render_step_summary
from harness.text import one_line
from tests.report.comparison.conftest import make_comparison, make_row, make_side, make_timed
from tests.report.github.page import OURS, Page, require_ours

FRAGMENTS = (
    *("|", "`", "```", "~~~", "**", "_", "~~", "\\", "\n", "\r", "\t", " ", "$x$", "&lt;", "&#64;team", "&"),
    *("<script>alert(1)</script>", "</details>", "<details>", "<!--", "-->", "--!>", "<img src=x onerror=y>", "<b>"),
    *("@octocat", "@org/team", "#123", "org/repo#4", "GH-5", ":tada:", "model.mlir:100:3", "a@b.example"),
    *("![](http://e.org/x.png)", "[x](javascript:alert)", "[x]: http://e.org", "<http://e.org>", "https://e.org"),
    *(
        "www.e.org",
        "ftp://e.org",
        "mailto:a@b.example",
        "# ",
        "- ",
        "1. ",
        "> ",
        "[!NOTE]",
        "[ ] ",
        "---",
        "===",
        "|--|",
    ),
    *("\u202e", "\u2066", "\u200f", "\u061c", "שלום", "😀", "\U000e0041", "\ud800", "\x1b[31m", "\x00", "\u2028", "x"),
)
HOSTILE = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.text(st.characters(), max_size=3)), min_size=1, max_size=8
).map("".join)


def everywhere(text: str) -> Comparison:
    """A comparison with the same text in all places where texts can come from outside."""
    side = make_side(text, text, suite=text, run=text, started=text, machine=text)
    rows = [
        make_timed(f"{text}1", 1.0, 1.5, "regressed", reason=text, change=text, gate="violated", repro=(text, text)),
        make_timed(f"{text}2", 1.0, 0.5, "improved", reason=text, change=text, repro=(text,)),
        make_timed(f"{text}3", 1.0, 1.0, "inconclusive", reason=text, repro=(text,)),
        make_timed(f"{text}4", 1.0, 1.0, "unchanged", reason=text),
        make_timed(f"{text}5", 9.0, 1.2, "regressed", metric="compile-time", reason=text, repro=(text,)),
        make_row(text, verdict="identical", reason=text),
        make_row(f"{text}7", verdict="failed", reason=text, stderr=f"{text}\n{text}x"),
        make_row(text, verdict="missing", reason=text),
        make_row(text, verdict="new", reason=text, head_value=1e6),
        make_row(text, "input/" + text, "regressed", base_value=1.0, head_value=2.0, unit=text, reason=text),
        make_timed(f"{text}8", 1.0, 1.0, "unchanged", control=True, reason=text),
    ]
    facts = SelfcheckFacts(flagged=0, rows=9, upper_bound=0.1, detects=0.02, seconds=3.0, when=text, suite=text)
    return make_comparison(
        rows,
        id=text,
        created=text,
        base=side,
        head=side,
        means=(GeometricMean(kind="model", name=text, ratio=1.1, rows=1),),
        notes=(text, text),
        settings={text: text},
        machine=MachineFacts(description=text, selfcheck=facts),
        command=("harness", text),
    )


@given(HOSTILE)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_a_text_is_the_page_has_the_same_parts(text: str) -> None:
    assume(one_line(text))
    page = require_ours(render_comment(everywhere(text)))
    assert page.shape == Page(render_comment(everywhere("plain"))).shape


@pytest.mark.parametrize("text", FRAGMENTS)
def test_each_of_the_known_tricks_stays_a_text(text: str) -> None:
    page = require_ours(render_comment(everywhere(f"{text}a")))
    assert page.links == page.images == []


@given(HOSTILE)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_full_report_and_the_summary_hold_together_too(text: str) -> None:
    assume(one_line(text))
    for render in (render_full, render_step_summary):
        require_ours(render(everywhere(text)))


@given(HOSTILE)
@settings(max_examples=60, deadline=None)
def test_addresses_and_alternative_texts_do_not_break_out(text: str) -> None:
    hostile = f"https://e.org/{text}"
    images = Images(entries=(Image(title=text, alt=text, light_url=hostile, dark_url=hostile),) * 2)
    links = Links(run_url=hostile, artifact_url=hostile, dashboard_url=hostile, head_commit_url=hostile)
    page = Page(
        render_comment(make_comparison([make_timed("m/v@d", 1.0, 1.2, "regressed")]), images=images, links=links)
    )
    assert all(address.startswith("https://e.org/") for address in (*page.links, *page.images))
    assert set(page.tags) <= OURS


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "data:text/html,x", "//e.org", "e.org", "https://", "ftp://e.org", "", "https://[x"],
)
def test_only_addresses_of_the_web_are_linked(address: str) -> None:
    links = Links(run_url=address, artifact_url=address, dashboard_url=address, base_commit_url=address)
    images = Images(entries=(Image(title="t", alt="a", light_url=address, dark_url=address),))
    page = require_ours(
        render_comment(make_comparison([make_row("m/v@d", verdict="failed")]), images=images, links=links)
    )
    assert page.links == page.images == []
