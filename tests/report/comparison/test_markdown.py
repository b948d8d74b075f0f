"""A comparison as a comment for a pull request, and the whole report behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from harness.records.comparison import Comparison, GeometricMean, Row, Verdict
from harness.report.comparison import render_comparison
from harness.report.markdown_text import COMMENT_LIMIT
from tests.report.comparison.conftest import NASTY, make_comparison, make_row, make_side, make_timed

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def shown(comparison: Comparison, *, full: bool = False) -> str:
    return render_comparison(comparison, "markdown", full=full)


def headings(text: str) -> list[str]:
    return re.findall(r"^##+ (.*)$", text, re.MULTILINE)


def part(text: str, title: str) -> str:
    """What stands under a heading."""
    return text.split(f"### {title}\n", 1)[1].split("\n### ", 1)[0]


def unfolded(text: str) -> str:
    """What a reader sees before clicking anywhere."""
    while "<details>" in text:
        text = re.sub(r"<details>(?:(?!<details>).)*?</details>", "", text, flags=re.DOTALL)
    return text


@pytest.mark.parametrize("full", [False, True], ids=["abbreviated", "full"])
def test_everything_that_can_happen(full_comparison: Comparison, full: bool, snapshot: SnapshotAssertion) -> None:
    assert shown(full_comparison, full=full) == snapshot


@pytest.mark.parametrize("name", ["quiet_comparison", "recorded_comparison", "nasty_comparison"])
def test_odd_comparisons(name: str, request: pytest.FixtureRequest, snapshot: SnapshotAssertion) -> None:
    assert shown(request.getfixturevalue(name)) == snapshot


def test_the_layout_is_upstreams_with_what_went_wrong_first(full_comparison: Comparison) -> None:
    text = shown(full_comparison)
    assert headings(text) == [
        "Abbreviated Benchmark Comparison",
        "Failed and Missing Benchmarks 🚨",
        "Violated Gates: Transient Memory 🚨",
        "Regressed Latencies 🚩",
        "Improved Latencies 🎉",
        "Regressed Compilation Times 🚩",
        "Regressed Instructions 🚩",
        "Regressed Transient Memory 🚩",
        "Improved Stream IR Dispatch Count (# of cmd.dispatch ops) 🎉",
        "Regressed Copies 🚩",
        "New Benchmarks",
    ]
    assert "84.51 (vs. 76.59, 10.34%↑) | 1.103 [1.098, 1.109] | 2e\u20114 | 16 | more work" in text


def test_a_comment_is_found_again_and_does_not_replace_a_run_s(full_comparison: Comparison) -> None:
    assert shown(full_comparison).startswith("<!--harness comparison: suites/esrgan.toml-->\n")


def test_failures_and_gates_are_not_folded_away(full_comparison: Comparison) -> None:
    seen = unfolded(shown(full_comparison))
    for text in ("`rdb/wide@local-sync` | failed", "`gpt2/stock@vulkan` | missing", "| violated |"):
        assert text in seen


def test_quiet_rows_are_counted_in_the_comment_and_listed_in_the_full_report(full_comparison: Comparison) -> None:
    for name in ("conv/tiled@local-sync", "mm/inert@local-sync"):
        assert name not in shown(full_comparison)
        assert name in shown(full_comparison, full=True)
    assert "2 unchanged, 2 identical" in shown(full_comparison)


def test_a_full_report_counts_unchanged_figures_where_nobody_could_read_them() -> None:
    rows = [make_row(f"m/v{case}@d", "copies", base_value=1.0, head_value=1.0) for case in range(900)]
    rows += [make_row(f"m/v{case}@d", "fills", base_value=1.0, head_value=1.0) for case in range(100)]
    rows.append(make_timed("m/timed@d", 1.0, 1.0, "unchanged"))
    rows.append(make_row("m/better@d", "dispatches", "improved", base_value=2.0, head_value=1.0))
    listed = shown(make_comparison(rows), full=True)
    assert "m/v899@d" in listed
    assert "not listed" not in listed

    rows.append(make_row("m/v1@d", "dispatches", base_value=1.0, head_value=1.0))
    counted = shown(make_comparison(rows), full=True)
    assert (
        "\n1,001 unchanged rows of counted figures are not listed (Copies 900, Fills 100, Dispatch Count 1); "
        "comparison.json and `--format csv` have them.\n"
    ) in counted
    assert "m/v899@d" not in counted
    assert "m/timed@d" in counted  # what is timed stays, and what changed
    assert "m/better@d" in counted


def test_nothing_changed_is_said(quiet_comparison: Comparison) -> None:
    text = shown(quiet_comparison)
    assert "\nNo improved or regressed benchmarks 🏖️\n" in text
    assert "\nNo improved or regressed compilation metrics 🏖️\n" in text


def test_open_or_failed_rows_are_no_holiday() -> None:
    unsure = make_timed("m/v@d", 1.0, 1.0, "inconclusive")
    assert "No improved or regressed benchmarks are known; 1 row is inconclusive." in shown(make_comparison([unsure]))
    assert "🏖️" not in shown(make_comparison([make_row("m/v@d", verdict="failed")]))
    assert "🏖️" not in shown(make_comparison([]))


def test_recorded_numbers_come_with_a_warning(recorded_comparison: Comparison) -> None:
    assert "> ⚠️ These are recorded numbers, taken at different times and on different machines" in shown(
        recorded_comparison
    )
    alike = replace(recorded_comparison, base=make_side("results/old", "3.12.0"))
    assert "taken at different times: " in shown(alike)
    assert "⚠️" not in shown(replace(recorded_comparison, within=True))


def test_largest_changes_come_first_and_only_the_comment_is_cut() -> None:
    ratios = [1.02, 1.5, 1.1, 1.3, 1.04]
    rows = [make_timed(f"m/by{ratio}@d", 1.0, ratio, "regressed") for ratio in ratios]
    rows.append(make_row("m/from-nothing@d", verdict="regressed", base_value=0.0, head_value=1e6))

    def listed(text: str) -> list[str]:
        return re.findall(r"^\| `m/([^`]*)@d`", part(text, "Regressed Latencies 🚩"), re.MULTILINE)

    cut = shown(make_comparison(rows))
    assert listed(cut) == ["from-nothing", "by1.5", "by1.3"]
    assert "_[Top 3 out of 6 results showed]_" in cut
    assert len(listed(shown(make_comparison(rows), full=True))) == 6


def test_instructions_have_no_confidence_interval(full_comparison: Comparison) -> None:
    assert "| Ratio [all generations] |" in part(shown(full_comparison), "Regressed Instructions 🚩")


@pytest.mark.parametrize("full", [False, True])
def test_no_text_becomes_markup(nasty_comparison: Comparison, full: bool) -> None:
    text = shown(nasty_comparison, full=full)
    page = PARSER.render(text)
    outside_code = re.sub(r"<pre>.*?</pre>|<!--.*?-->", "", page, flags=re.DOTALL)
    tags = set(re.findall(r"<(\w+)", outside_code))
    assert not tags & {"script", "a", "b", "s", "img", "octocat"}
    assert outside_code.count("<details>") == outside_code.count("</details>")
    assert "\x1b" not in text
    assert "\x07" not in text
    assert not re.search(r"(?<!\w)@octocat", outside_code)


def test_every_line_of_a_table_has_as_many_cells_as_its_head(nasty_comparison: Comparison) -> None:
    for block in shown(nasty_comparison, full=True).split("\n\n"):
        if block.startswith("|"):
            assert len({line.count("|") for line in block.splitlines()}) == 1, block


# Comments that would be too long


def many(verdict: Verdict, count: int, **given: object) -> list[Row]:
    return [
        make_timed(f"some-model-{index:05d}/with-a-variant@local-sync", 2.0, 1.1, verdict, **given)
        for index in range(count)
    ]


@pytest.mark.parametrize(
    "rows",
    [
        many("regressed", 4000),
        many("inconclusive", 4000, reason="the interval is wider than 1 % either way; more would narrow it"),
        many("failed", 4000, reason="fails at compile: " + "x" * 200, stderr="said\n" * 40),
        many("missing", 300) + many("failed", 4000),
        many("new", 4000),
        many("unchanged", 4000, gate="violated"),
        [row for verdict in ("regressed", "inconclusive", "failed", "new") for row in many(verdict, 1000)],
    ],
    ids=["regressed", "inconclusive", "failed", "missing", "new", "violated", "all"],
)
def test_a_comment_fits_however_many_rows_there_are(rows: Sequence[Row]) -> None:
    means = tuple(GeometricMean(kind="model", name=row.model, ratio=1.1, rows=1) for row in rows)
    text = shown(make_comparison(rows, means=means))
    assert len(text) <= COMMENT_LIMIT
    lost = [row for row in rows if row.verdict in ("failed", "missing")]
    if lost:
        section = part(text, "Failed and Missing Benchmarks 🚨")
        named = len(re.findall(r"`some-model-", section))
        left = sum(int(number.replace(",", "")) for number in re.findall(r"and ([\d,]+) more", section))
        assert named + left == len(lost)
        assert named > 100


def test_what_was_shortened_is_said() -> None:
    text = shown(make_comparison(many("failed", 4000)))
    assert (
        "what this comment leaves out (every row of every list, the settings, what happened to each failed row" in text
    )
    assert "Failed (4,000): `some-model-00000/" in text


@pytest.mark.parametrize("character", ["@", "&", "|", "a"])
def test_a_comment_fits_however_long_texts_are(character: str) -> None:
    endless = character + character.join([" "] * 20_000)
    side = make_side(endless, endless, run=endless, suite=endless, machine=endless)
    rows = [
        make_timed(
            f"{endless}{number}", 1.0, 1.2, verdict, metric=metric, reason=endless, change=endless, stderr=endless
        )
        for number in range(4)
        for metric in ("latency", "compile-time", endless)
        for verdict in ("regressed", "improved", "failed", "missing", "inconclusive", "new")
    ]
    rows = [replace(row, repro=(endless,), gate="violated") for row in rows]
    text = shown(
        make_comparison(
            rows,
            id=endless,
            base=side,
            head=side,
            notes=(endless,) * 50,
            command=("harness", endless),
            settings={endless: endless},
        )
    )
    assert len(text) <= COMMENT_LIMIT
    assert "... and 42 more notes" in text


def test_the_full_report_names_every_row() -> None:
    rows = [*many("failed", 1500), *many("missing", 10), make_row(NASTY, verdict="failed")]
    text = shown(make_comparison(rows), full=True)
    assert len(set(re.findall(r"some-model-\d+", text))) == 1500


@pytest.mark.parametrize("full", [False, True])
def test_timed_rows_have_their_ratio_and_without_an_interval_no_percentage(full: bool) -> None:
    row = make_timed("mm/stock@cpu", 21.786, 0.960, "inconclusive", ci_low=None, ci_high=None, head_value=31.936e6)
    text = shown(make_comparison([row]), full=full)
    assert "| Benchmark Name | Median Latency (ms) | Ratio |" in text
    assert "| `mm/stock@cpu` | 31.94 (vs. 21.79) | 0.960 |" in text
    known = make_timed("mm/tiled@cpu", 10.0, 1.02, "inconclusive")
    text = shown(make_comparison([row, known]), full=full)
    assert "| `mm/stock@cpu` | 31.94 (vs. 21.79) | 0.960 |" in text
    assert "| `mm/tiled@cpu` | 10.20 (vs. 10.00, 2.00%↑) | 1.020 [1.015, 1.025] |" in text


def test_by_upstreams_rule_two_values_make_a_change() -> None:
    row = make_timed("mm/stock@cpu", 10.0, 1.2, "regressed", ci_low=None, ci_high=None, p=None)
    assert "12.00 (vs. 10.00, 20.00%↑) | 1.200 |" in shown(make_comparison([row], rule="upstream"))


def test_means_of_what_is_mostly_not_decided_are_left_out_and_counted() -> None:
    rows = [
        make_timed("mm/stock@cpu", 1.0, 1.3, "inconclusive"),
        make_timed("mm/tiled@cpu", 1.0, 1.3, "inconclusive"),
        make_timed("conv/stock@cpu", 1.0, 1.1, "unchanged"),
        make_timed("conv/tiled@cpu", 1.0, 1.1, "inconclusive"),
    ]
    means = (
        GeometricMean(kind="model", name="mm", ratio=1.3, rows=2),
        GeometricMean(kind="model", name="conv", ratio=1.1, rows=2),
    )
    text = shown(make_comparison(rows, means=means))
    assert "| model | `conv` | 1.100 |" in text
    assert "| model | `mm` |" not in text
    assert "1 mean left out, since most rows are inconclusive." in text
    assert "Geometric means" not in shown(make_comparison(rows[:2], means=means[:1]))
