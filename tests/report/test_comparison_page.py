"""A comparison on a terminal, as a comment, and in full: every row is there, a comment fits, and nothing breaks it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from harness.records.comparison import VERDICTS, Comparison, GeometricMean, MachineFacts, Row, SelfcheckFacts, Verdict
from harness.report.comparison import render_comparison
from harness.report.github import (
    STEP_SUMMARY_BYTES,
    Image,
    Images,
    Links,
    render_comment,
    render_full,
    render_step_summary,
)
from harness.report.markdown import COMMENT
from harness.report.verdicts import MARKS
from harness.text import one_line
from tests.report.compared import make_comparison, make_row, make_side, make_timed
from tests.report.rendered import HOSTILE, OURS, Page, require_ours

COMPARISONS = ["full_comparison", "quiet_comparison", "recorded_comparison", "nasty_comparison"]
UNWRAPPED = re.compile(r"  (harness|iree-\S+) |- ")


def headings(text: str) -> list[str]:
    return re.findall(r"^###? (.*)$", text, re.MULTILINE)


def folds(text: str) -> list[str]:
    return re.findall(r"<summary>(.*)</summary>", text)


def many(verdict: Verdict, count: int, **given: object) -> list[Row]:
    return [
        make_timed(f"some-model-{index:05d}/with-a-variant@local-sync", 2.0, 1.1, verdict, **given)
        for index in range(count)
    ]


def test_terminal_and_comment(snapshot: SnapshotAssertion) -> None:
    rows = [
        make_timed("rdb/stock@cpu", 76.6, 1.1, "regressed", p=2.3e-4, reason="confirmed in 16 fresh generations"),
        make_timed("rdb/im2col@cpu", 218.9, 1.013, "inconclusive", p=0.031, reason="more generations would tell"),
        make_row("rdb/wide@cpu", verdict="failed", reason="fails at compile", stderr="error: failed to legalize\n"),
        make_row("rdb/stock@cpu", "copies", "improved", base_value=14, head_value=10),
    ]
    assert render_comparison(make_comparison(rows), "terminal", width=120) == snapshot
    assert render_comment(make_comparison(rows)) == snapshot


@pytest.mark.parametrize("name", COMPARISONS)
def test_every_row_is_in_every_format(name: str, request: pytest.FixtureRequest) -> None:
    comparison: Comparison = request.getfixturevalue(name)
    whole = require_ours(render_comparison(comparison, "markdown", full=True))
    comment = require_ours(render_comparison(comparison, "markdown"))
    terminal = "".join(render_comparison(comparison, "terminal", width=240).split())
    for row in comparison.rows:
        case = one_line(row.case)
        assert case in one_line(whole.everything) and (case in one_line(comment.everything) or row.control)
        assert "".join(case.split()) in terminal or row.control
    lines = list(csv.DictReader(io.StringIO(render_comparison(comparison, "csv"))))
    assert [line["case"] for line in lines] == [one_line(row.case) for row in comparison.rows]
    assert "repro" not in lines[0]


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("width", [40, 80, 120, 240])
def test_no_line_is_wider_than_the_terminal(name: str, width: int, request: pytest.FixtureRequest) -> None:
    for line in render_comparison(request.getfixturevalue(name), "terminal", width=width).splitlines():
        assert cell_len(line) <= width or UNWRAPPED.match(line), line
        assert line == line.rstrip() and line.isprintable()


def test_every_verdict_has_a_mark_of_its_own_beside_its_word(full_comparison: Comparison) -> None:
    assert set(MARKS) == set(VERDICTS) and len(set(MARKS.values())) == len(VERDICTS)
    text = render_comparison(full_comparison, "terminal", width=120)
    assert all(f"{mark} {verdict}" in text for verdict, mark in MARKS.items())
    assert "\x1b[31m▲ regressed" in render_comparison(full_comparison, "terminal", color=True)


def test_a_terminal_lists_what_matters_and_counts_the_rest() -> None:
    rows = [make_timed(f"m/v{index}@d", 1.0, 1.0, "unchanged") for index in range(60)]
    rows += [make_row(f"m/i{index}@d", verdict="identical") for index in range(5)]
    rows += [make_timed(f"m/r{index}@d", 1.0, 1.1 + index / 1000, "regressed") for index in range(120)]
    rows.append(make_row("m/gone@d", verdict="missing"))
    text = render_comparison(make_comparison(rows), "terminal")
    assert "Not listed: 20 regressed, 60 unchanged, 5 identical rows. --format markdown --full has every row." in text
    assert "m/gone@d" in text and "m/r119@d" in text
    assert "m/v1@d" not in text and "m/r19@d" not in text


def test_a_reason_that_rows_share_is_said_once() -> None:
    rows = [make_timed(f"m/v{index}@d", 1.0, 1.0, "inconclusive", reason="too wide") for index in range(3)]
    assert "m/v0@d, m/v1@d, m/v2@d  too wide" in render_comparison(make_comparison(rows), "terminal", width=80)


def test_a_comparison_that_was_not_kept_has_no_name(quiet_comparison: Comparison) -> None:
    assert f"\nComparison {quiet_comparison.id}: IREE" in render_comparison(quiet_comparison, "terminal", width=200)
    unkept = replace(quiet_comparison, id="")
    assert "\nComparison: IREE" in render_comparison(unkept, "terminal", width=200)


def test_recorded_numbers_come_with_a_warning(recorded_comparison: Comparison) -> None:
    for text in (render_comment(recorded_comparison), render_comparison(recorded_comparison, "terminal", width=900)):
        assert "These are recorded numbers, taken at different times and on different machines" in text


def test_the_verdict_comes_first_then_what_to_do(full_comparison: Comparison) -> None:
    lines = [line for line in render_comment(full_comparison).splitlines() if line]
    assert lines[0] == "<!--harness comparison: suites/esrgan.toml-->"
    assert lines[1] == "## Abbreviated Benchmark Summary of `suites/esrgan.toml`"
    assert lines[2].startswith("**🚩 Needs attention: 1 gate violated; 2 regressions (1 within its gate), ")
    assert lines[4] == "What next:"
    assert headings(render_comment(full_comparison))[1:] == [
        "Failed and Missing Benchmarks 🚨",
        "Violated Gates: Transient Memory 🚨",
        "Regressed Latencies 🚩",
        "Improved Latencies 🎉",
        "Regressed Compilation Times 🚩",
        "Regressed Instructions 🚩",
        "Regressed Transient Memory 🚩",
        "Improved Stream IR Dispatch Count (# of cmd.dispatch ops) 🎉",
        "Regressed Copies 🚩",
    ]


@pytest.mark.parametrize(
    ("rows", "verdict", "advice"),
    [
        ([make_timed("m/v@d", 1, 1.1, "regressed")], "🚩 Needs attention: 1 regression.", "correct what regressed"),
        ([make_timed("m/v@d", 1, 0.9, "improved")], "🎉 1 improvement.", "No action needed."),
        ([make_timed("m/v@d", 1, 1.0, "unchanged")], "🏖️ No regression or impr", "No action needed."),
        ([make_row("m/v@d", verdict="identical")], "🏖️ No regression or improvement, 1 identical.", "No action needed."),
        ([make_timed("m/v@d", 1, 1.0, "inconclusive")], "❔ No regression or improvement, 1 inconcl", "twice the time"),
        ([make_row("m/v@d", verdict="failed")], "🚨 Needs attention: no latency was compared", "what the tools said"),
        ([make_row("m/v@d", verdict="new")], "🚨 Needs attention: no latency was comp", "why nothing was compared"),
        ([], "🚨 Needs attention: no latency was compared.", "why nothing was compared"),
    ],
)
def test_verdict_and_advice(rows: list[Row], verdict: str, advice: str) -> None:
    text = render_comment(make_comparison(rows))
    assert f"**{verdict}" in text
    assert advice in Page(text).unfolded


def test_failures_and_gates_are_never_folded_and_the_quiet_rows_are(full_comparison: Comparison) -> None:
    text = render_comment(full_comparison)
    seen = Page(text).unfolded
    assert "rdb/wide@local-sync" in seen and "gpt2/stock@vulkan" in seen and "gate memory allows no increase" in seen
    assert "mm/tiled@local-task" not in seen and "conv/fused@local-sync" not in seen
    for summary in ("What the tools said of rdb/wide@local-sync", "Inconclusive (1)", "Unchanged (3)", "New (1)"):
        assert summary in folds(text)
    for summary in ("Identical modules (2)", "A/A controls (2)", "How it was measured", "Commands that repeat it"):
        assert summary in folds(text)
    assert "2 identical rows were measured as A/A controls: none flagged" in text
    assert "0 of 400 A/A rows flagged (at most 0.75 % by the 95 % bound); detects 1.2 % in 15 s" in text


def overview(*rows: Row) -> dict[str, list[str]]:
    """The table of figures, and that of the others folded below."""
    blocks = render_comment(make_comparison(rows)).split("\n\n")
    lines = [line for block in blocks if "Geometric Mean" in block for line in block.splitlines()[2:]]
    cells = [[cell.strip().replace("\u00a0", " ") for cell in line.split("|")[1:-1]] for line in lines]
    return {first: rest for first, *rest in cells}


def test_each_figure_has_its_counts_and_its_largest_change() -> None:
    rows = [
        make_timed("a/v@d", 1.0, 1.04, "regressed"),
        make_timed("b/v@d", 1.0, 1.1, "regressed"),
        make_timed("c/v@d", 1.0, 0.5, "improved"),
        make_timed("d/v@d", 1.0, 1.0, "unchanged"),
        make_timed("e/v@d", 1.0, 1.0, "inconclusive"),
        make_row("f/v@d", verdict="identical"),
        make_row("g/v@d", verdict="failed"),
        make_timed("b/v@d", 900, 1.0, "unchanged", metric="compile-time"),
        make_row("b/v@d", "copies", "regressed", base_value=0, head_value=3, ratio=None),
        make_timed("h/v@d", 1.0, 9.0, "regressed", control=True),
    ]
    assert overview(*rows) == {
        "Latency": ["2, worst +10.0 %", "1, -50.0 %", "2, 1 identical", "1", "-8.9 % of 6"],
        "Compilation Time": ["", "", "1", "", "+0.0 % of 1"],
        "Copies": ["1, from 0", "", "1", "", ""],
    }
    assert overview(make_timed("d/v@d", 1.0, 1.0, "unchanged")) == {}


@pytest.mark.parametrize(
    ("rows", "cells"),
    [
        # Equal modules have no rows of counted figures, and count all the same; once.
        (
            [
                make_row("a/v@d", "dispatches", "regressed", base_value=1, head_value=4),
                make_row("b/v@d", "dispatches", base_value=1, head_value=1),
                make_row("f/v@d", verdict="identical"),
                make_row("f/v@d", "dispatches", base_value=1, head_value=1),
                make_row("g/v@d", verdict="identical"),
            ],
            ["1, +300.0 %", "", "3, 1 identical", "", "+41.4 % of 4"],
        ),
        # What became nothing is the best, and in no mean; what came from nothing has no percentage.
        (
            [
                make_row("a/v@d", "dispatches", "improved", base_value=13, head_value=0),
                make_row("b/v@d", "dispatches", "improved", base_value=13, head_value=4),
            ],
            ["", "2, best -100.0 %", "", "", ""],
        ),
        (
            [
                make_row("a/v@d", "dispatches", "regressed", base_value=0, head_value=2, ratio=None),
                make_row("b/v@d", "dispatches", "regressed", base_value=3, head_value=4),
            ],
            ["2, worst from 0", "", "", "", ""],
        ),
    ],
)
def test_lines_of_the_table_of_figures(rows: list[Row], cells: list[str]) -> None:
    assert overview(*rows)["Dispatch Count"] == cells


def test_a_mean_of_what_is_mostly_not_decided_is_none() -> None:
    rows = [make_timed(f"m{n}/v@d", 1.0, 1.3, "inconclusive", metric="compile-time") for n in range(6)]
    rows.append(make_timed("m0/v@d", 1.0, 1.3, "regressed"))
    assert overview(*rows)["Compilation Time"] == ["", "", "", "6", ""]
    half = [*rows, *(make_timed(f"n{n}/v@d", 1.0, 1.3, "unchanged", metric="compile-time") for n in range(6))]
    assert overview(*half)["Compilation Time"][-1] == "+30.0 % of 12"


def test_percentages_stand_only_where_two_medians_make_a_change() -> None:
    measured = make_timed("m/v@d", 1.0, 1.1, "regressed")
    bare = replace(measured, ci_low=None, ci_high=None)
    assert "1.100 (vs. 1.000, 10.00%↑)" in render_comment(make_comparison([measured]))
    assert "1.100 (vs. 1.000)" in render_comment(make_comparison([bare]))
    assert "1.100 (vs. 1.000, 10.00%↑)" in render_comment(make_comparison([bare], rule="upstream"))


def test_ops_are_figures_like_any_other(full_comparison: Comparison) -> None:
    metric = "flow/flow.tensor.update"
    rows = [
        make_timed("mm/stock@cpu", 2.4, 1.0, "unchanged"),
        make_row("mm/stock@cpu", metric, "improved", base_value=13, head_value=1, unit="count"),
        make_row("a/b@c", metric, "regressed", base_value=0, head_value=1_200, unit="count", gate="violated"),
    ]
    text = render_comparison(make_comparison(rows), "markdown", full=True)
    assert "Violated Gates: flow.tensor.update at flow 🚨" in headings(text)
    assert "Improved flow.tensor.update at flow 🎉" in headings(text)
    assert "1 (vs. 13, 92.31%↓)" in text and "1,200 (vs. 0)" in text
    assert "flow.tensor.update at flow" in render_comparison(make_comparison(rows), "terminal", width=60)


def test_with_pictures_and_links(full_comparison: Comparison, images: Images, links: Links) -> None:
    text = render_comment(full_comparison, images=images, links=links)
    page = require_ours(
        text,
        links={
            *(links.run_url, links.artifact_url, links.base_commit_url, links.head_commit_url),
            "https://org.github.io/repo/?suite=a&b=1",
        },
        images={f"https://org.github.io/repo/pr-1/{name}" for name in ("forest-light.png", "forest-dark.png")}
        | {"https://org.github.io/repo/pr-1/memory%20%281%29.png"},
    )
    assert page.alts == ['Ratios: "rdb" is > 1', "Latency against memory"]
    assert "For more information: [Full report](" in text
    assert "Median Latency: faster ◂ 1 ▸ slower" in render_comment(full_comparison) and "◂" not in text
    assert "harness report" not in text.splitlines()[-1]


@pytest.mark.parametrize(
    "rows",
    [
        many("regressed", 1_000, repro=("harness compare a b --filter c",)),
        many("inconclusive", 1_000, reason="the interval is wider than 1 % either way; more would narrow it"),
        many("failed", 1_000, reason="fails at compile: " + "x" * 200, stderr="said\n" * 40),
        many("missing", 300) + many("failed", 1_000),
        many("new", 1_000),
        many("unchanged", 1_000, gate="violated"),
        many("identical", 1_000),
    ],
    ids=["regressed", "inconclusive", "failed", "missing", "new", "violated", "identical"],
)
def test_a_thousand_rows_fit_into_a_comment(rows: Sequence[Row]) -> None:
    means = tuple(GeometricMean(kind="model", name=row.model, ratio=1.1, rows=3) for row in rows)
    text = render_comment(make_comparison(rows, means=means))
    assert len(text.encode()) <= COMMENT.page_bytes
    require_ours(text)
    assert "Left out here for length, and in the full report: " in text or rows[0].verdict == "identical"
    lost = [row for row in rows if row.verdict in ("failed", "missing")]
    assert not lost or Page(text).unfolded.count("some-model-") > 100


@pytest.mark.parametrize("character", ["a", "@x", "&", "|", "$", "語", "\u202e", "`", "<"])
@pytest.mark.parametrize("verdict", ["regressed", "failed", "inconclusive"])
def test_names_of_ten_thousand_characters_fit(character: str, verdict: Verdict) -> None:
    endless = (character * 10_000)[:10_000] + "."
    side = make_side(endless, endless, run=endless, suite=endless, machine=endless)
    rows = [
        make_timed(f"{endless}{number}", 1.0, 1.2, verdict, reason=endless, change=endless, stderr=endless)
        for number in range(40)
    ]
    changes = {"id": endless, "base": side, "head": side, "settings": {endless: endless}}
    text = render_comment(make_comparison(rows, notes=(endless,) * 50, command=("harness", endless), **changes))
    assert len(text.encode()) <= COMMENT.page_bytes
    require_ours(text)


def test_no_more_is_left_out_than_has_to_be() -> None:
    reason = "fails at compile: " + "x" * 200
    sizes = [
        len(render_comment(make_comparison(many("failed", count, reason=reason))).encode())
        for count in range(150, 260, 8)
    ]
    assert 62_000 < max(sizes) <= COMMENT.page_bytes
    assert min(sizes) < 30_000  # where the table of what happened is left out


def test_the_full_report_and_the_summary_of_a_job(full_comparison: Comparison) -> None:
    huge = make_comparison([*many("regressed", 1_000), *many("unchanged", 1_500), *many("failed", 50)])
    assert render_full(huge).count("| `some-model-") >= 2_550
    text = render_step_summary(huge, limit_bytes=200_000)
    assert 65_000 < len(text.encode()) < 200_000 < STEP_SUMMARY_BYTES
    assert "Left out here for length, and in the full report: the rest of long lists" in text
    assert not text.startswith("<!--")
    assert render_step_summary(full_comparison) == render_full(full_comparison)


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
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_a_text_is_the_page_has_the_same_parts(text: str) -> None:
    assume(one_line(text))
    page = require_ours(render_comment(everywhere(text)))
    assert page.shape == Page(render_comment(everywhere("plain"))).shape
    assert page.links == page.images == []
    require_ours(render_full(everywhere(text)))


@given(HOSTILE)
@settings(max_examples=30, deadline=None)
def test_addresses_and_alternative_texts_do_not_break_out(text: str) -> None:
    hostile = f"https://e.org/{text}"
    images = Images(entries=(Image(title=text, alt=text, light_url=hostile, dark_url=hostile),) * 2)
    links = Links(run_url=hostile, artifact_url=hostile, dashboard_url=hostile, head_commit_url=hostile)
    comparison = make_comparison([make_timed("m/v@d", 1.0, 1.2, "regressed")])
    page = Page(render_comment(comparison, images=images, links=links))
    assert all(address.startswith("https://e.org/") for address in (*page.links, *page.images))
    assert set(page.tags) <= OURS
