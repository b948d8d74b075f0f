"""The comment on a pull request: what it says first, what it folds away, and what it never does."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.records.comparison import Comparison, Verdict
from harness.report.github import Images, Links, render_comment
from tests.report.comparison.conftest import make_comparison, make_row, make_side, make_timed
from tests.report.github.page import Page, require_ours


def headings(text: str) -> list[str]:
    return re.findall(r"^##+ (.*)$", text, re.MULTILINE)


def without_picture(text: str) -> str:
    """What a picture in characters looks like is the affair of its own tests."""
    return re.sub(r"```\n[\w ]+: faster ◂ .*?\n```", "```\n(a picture)\n```", text, flags=re.DOTALL)


def folds(text: str) -> list[str]:
    return re.findall(r"<summary>(.*)</summary>", text)


@pytest.mark.parametrize(
    "name",
    [
        "full_comparison",
        "quiet_comparison",
        "failed_comparison",
        "missing_comparison",
        "undecided_comparison",
        "recorded_comparison",
        "nasty_comparison",
    ],
)
def test_comments(name: str, request: pytest.FixtureRequest, snapshot: SnapshotAssertion) -> None:
    text = render_comment(request.getfixturevalue(name))
    assert without_picture(text) == snapshot
    require_ours(text)


def test_with_pictures_and_links(
    full_comparison: Comparison, images: Images, links: Links, snapshot: SnapshotAssertion
) -> None:
    assert render_comment(full_comparison, images=images, links=links) == snapshot


def test_the_first_line_is_the_hidden_marker(full_comparison: Comparison, quiet_comparison: Comparison) -> None:
    first = {render_comment(one).partition("\n")[0] for one in (full_comparison, quiet_comparison)}
    assert first == {"<!--harness comparison: suites/esrgan.toml-->"}


def test_the_verdict_comes_before_everything_else(full_comparison: Comparison) -> None:
    lines = [line for line in render_comment(full_comparison).splitlines() if line]
    assert lines[1] == "## Abbreviated Benchmark Summary of `suites/esrgan.toml`"
    assert lines[2].startswith("**🚩 Needs attention: 1 gate violated; 2 regressions (1 within its gate), ")


@pytest.mark.parametrize(
    ("rows", "said", "advice"),
    [
        ([make_timed("m/v@d", 1, 1.1, "regressed")], "🚩 Needs attention: 1 regression.", "mend what regressed"),
        ([make_timed("m/v@d", 1, 0.9, "improved")], "🎉 1 improvement.", "No action needed."),
        (
            [make_timed("m/v@d", 1, 1.0, "unchanged")],
            "🏖️ No regression or improvement, 1 unchanged.",
            "No action needed.",
        ),
        ([make_row("m/v@d", verdict="identical")], "🏖️ No regression or improvement, 1 identical.", "No action needed."),
        ([make_timed("m/v@d", 1, 1.0, "inconclusive")], "❔ No regression or improvement, 1 inconcl", "twice the time"),
        ([make_row("m/v@d", verdict="failed")], "🚨 Needs attention: no latency was compared", "what the tools said"),
        ([make_row("m/v@d", verdict="new")], "🚨 Needs attention: no latency was comp", "why nothing was compared"),
        ([], "🚨 Needs attention: no latency was compared.", "why nothing was compared"),
        (
            [make_timed("m/v@d", 1, 1.1, "regressed", gate="passed")],
            "ℹ️ 1 regression (1 within its gate).",  # noqa: RUF001
            "repeat the largest regression",
        ),
        (
            [
                make_timed("m/v@d", 1, 1.0, "unchanged"),
                make_row("m/v@d", "dispatches", "regressed", base_value=3, head_value=4),
            ],
            "ℹ️ No regression or improvement, 1 unchanged; 1 other figure changed.",  # noqa: RUF001
            "No action needed.",
        ),
        (
            [
                make_timed("m/v@d", 1, 1.0, "unchanged"),
                make_timed("m/v@d", 900, 1.4, "regressed", metric="compile-time"),
            ],
            "🚩 Needs attention: no regression or improvement, 1 unchanged; compilation times: 1 regression.",
            "repeat the largest regression of a compilation time, m/v@d",
        ),
        (
            [
                make_timed("m/v@d", 1, 1.0, "unchanged"),
                make_row("m/v@d", "copies", "regressed", base_value=3, head_value=4, gate="violated"),
            ],
            "🚩 Needs attention: 1 gate violated; no regression or improvement",
            "bring 1 row back within the gates, or move these in suites/esrgan.toml",
        ),
    ],
)
def test_one_line_says_how_it_is_and_the_next_what_to_do(rows: list[object], said: str, advice: str) -> None:
    text = render_comment(make_comparison(rows))  # type: ignore[arg-type]
    assert f"\n**{said}" in text
    assert advice in text
    assert ("No action needed." in text) == (advice == "No action needed.")


def test_what_a_gate_allows_needs_no_mending() -> None:
    row = make_timed("m/v@d", 1.0, 1.1, "regressed", gate="passed")
    assert "mend what regressed" not in render_comment(make_comparison([row]))
    assert "mend what regressed" in render_comment(make_comparison([row, replace(row, case="m/w@d", gate=None)]))


def test_what_failed_is_missing_or_breaks_a_gate_is_never_folded_away(full_comparison: Comparison) -> None:
    seen = Page(render_comment(full_comparison)).unfolded
    for text in ("rdb/wide@local-sync", "gpt2/stock@vulkan", "the head has no such case", "violated"):
        assert text in seen


def test_rows_that_need_no_action_are_folded_away(full_comparison: Comparison) -> None:
    page = Page(render_comment(full_comparison))
    for name in ("mm/tiled@local-task", "conv/tiled@local-sync", "mm/inert@local-sync"):
        assert name not in page.unfolded
        assert name in page.markdown
    assert [fold for fold in folds(page.markdown) if "@" not in fold] == [
        "Counted figures that changed (4 rows)",
        "Inconclusive (1)",
        "New (1)",
        "Unchanged (3)",
        "Counted figures without a change (1 row)",
        "Identical modules (2)",
        "A/A controls (2)",
        "Geometric means by model, device and variant",
        "How it was measured",
        "Commands that repeat it",
    ]


def test_one_new_benchmark_and_one_that_is_gone_do_not_suppress_the_comparison(missing_comparison: Comparison) -> None:
    text = render_comment(missing_comparison)
    assert "1 missing, 1 unchanged, 1 new." in text
    assert "Failed and Missing Benchmarks 🚨" in headings(text)
    assert {"New (1)", "Unchanged (1)"} <= set(folds(text))
    assert "| `conv/stock@cpu` | 9.319 (vs. 9.310, 0.10%↑) |" in text


def test_the_picture_in_characters_has_the_regressions_first() -> None:
    rows = [make_timed(f"m/fast{index}@cpu", 1.0, 0.3, "improved") for index in range(20)]
    rows += [make_timed(f"m/slow{index}@cpu", 1.0, 1.05, "regressed") for index in range(3)]
    text = render_comment(make_comparison(rows))
    drawn = text.split("```")[1]
    assert all(f"slow{index}" in drawn for index in range(3))
    assert drawn.count("  fast") == 9


def test_nothing_changed_needs_no_picture(quiet_comparison: Comparison, images: Images) -> None:
    assert "```" not in render_comment(quiet_comparison).split("Commands that repeat it")[0]
    page = Page(render_comment(quiet_comparison, images=images))
    assert "Forest" not in page.unfolded
    assert len(page.images) == 3


def test_where_nothing_changed_what_is_not_decided_is_drawn(undecided_comparison: Comparison, images: Images) -> None:
    drawn = render_comment(undecided_comparison).split("```")[1]
    assert "  stock " in drawn
    assert "? 1.013 [" in drawn
    assert Page(render_comment(undecided_comparison, images=images)).unfolded.count("Forest") == 0  # no title, but
    assert "```" not in render_comment(undecided_comparison, images=images).split("Commands that repeat it")[0]
    many = [make_timed(f"m/v{index}@cpu", 1.0, 1.01, "inconclusive") for index in range(20)]
    assert "Not drawn: 8 inconclusive." in render_comment(make_comparison(many)).split("```")[1]


def test_without_an_interval_a_comment_does_not_contradict_itself() -> None:
    row = make_timed("mm/stock@cpu", 21.786, 0.960, "inconclusive", ci_low=None, ci_high=None, head_value=31.936e6)
    text = render_comment(make_comparison([row, replace(row, metric="compile-time")]))
    assert "| `mm/stock@cpu` | 31.94 (vs. 21.79) | 0.960 |" in text
    assert "↑" not in text
    assert "46.59" not in text


def test_long_lists_show_their_first_rows_and_fold_the_others(full_comparison: Comparison) -> None:
    rows = [make_timed(f"m/v{index}@cpu", 1.0, 1.5 - index / 100, "regressed") for index in range(8)]
    text = render_comment(make_comparison(rows))
    assert "5 more" in folds(text)
    tables = re.split(r"<summary>5 more</summary>", text.split("### Regressed Latencies 🚩")[1])
    assert [re.findall(r"^\| `m/v(\d)@", part, re.MULTILINE) for part in tables][:2] == [list("012"), list("34567")]


def test_many_notes_are_folded_but_a_warning_is_not(recorded_comparison: Comparison) -> None:
    notes = tuple(f"{number} cases left out" for number in range(4))
    page = Page(render_comment(replace(recorded_comparison, notes=notes)))
    assert "⚠️ These are recorded numbers" in page.unfolded
    assert "3 cases left out" not in page.unfolded
    assert page.plain.count("⚠️") == 1
    assert "1 cases left out" in Page(render_comment(replace(recorded_comparison, notes=notes[:2]))).unfolded


def test_the_machines_rate_is_told(full_comparison: Comparison, quiet_comparison: Comparison) -> None:
    assert "- On this machine: 0 of 400 A/A rows flagged" in Page(render_comment(full_comparison)).markdown
    assert "- This machine's A/A rate is not known; `harness selfcheck SUITE`" in render_comment(quiet_comparison)


def test_commits_are_linked_where_they_are_known(full_comparison: Comparison, links: Links) -> None:
    text = render_comment(full_comparison, links=links)
    assert (
        f"@ commit [`0a1b2c3d4e`]({links.head_commit_url}) (vs. base [`9b05f1760b`]({links.base_commit_url})): " in text
    )
    only_head = render_comment(full_comparison, links=Links(head_commit_url=links.head_commit_url))
    assert "(vs. base `iree==3.12.0`)" in only_head


def test_a_comparison_that_was_not_kept_says_how_to_print_it_whole(recorded_comparison: Comparison) -> None:
    text = render_comment(replace(recorded_comparison, id=""))
    assert (
        "every row and setting, is printed by `harness compare results/old results/new --no-remeasure --across-hosts "
        "--format markdown --full`" in text
    )
    assert "Comparison of 2026-11-21T09:30:00+00:00, made on" in text


@pytest.mark.parametrize("verdict", ["regressed", "unchanged", "failed", "missing", "new"])
def test_every_row_of_a_usual_comparison_is_there(verdict: Verdict) -> None:
    rows = [make_timed(f"m{index}/v@cpu", 1.0, 1.1, verdict) for index in range(120)]
    text = render_comment(make_comparison(rows))
    assert all(f"m{index}/v@cpu" in text for index in range(120))


def test_the_suite_is_in_the_marker_however_long_its_name() -> None:
    text = render_comment(make_comparison([], head=make_side("new", "3.13.0", suite="s" * 10_000)))
    assert text.startswith(f"<!--harness comparison: {'s' * 297}...-->\n")
