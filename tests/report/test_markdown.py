"""The comment for a pull request, and the whole report behind it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from syrupy.assertion import SnapshotAssertion

from harness.records.case import VariantGroup
from harness.records.run import Run, Turn
from harness.report.markdown_text import COMMENT_LIMIT
from harness.report.run_markdown import render_markdown
from harness.report.table import build_report


def shown(run: Run, *, full: bool = False) -> str:
    return render_markdown(build_report(run), full=full)


def headings(text: str) -> list[str]:
    return re.findall(r"^###? (.*)$", text, re.MULTILINE)


def part(text: str, title: str) -> str:
    """What stands under a heading."""
    return text.split(f"### {title}\n", 1)[1].split("\n### ", 1)[0]


@pytest.mark.parametrize("full", [False, True], ids=["abbreviated", "full"])
def test_everything_that_can_happen(full_run: Run, full: bool, snapshot: SnapshotAssertion) -> None:
    assert shown(full_run, full=full) == snapshot


@pytest.mark.parametrize("name", ["one_generation_run", "unfinished_run", "nasty_run"])
def test_odd_runs(name: str, request: pytest.FixtureRequest, snapshot: SnapshotAssertion) -> None:
    assert shown(request.getfixturevalue(name)) == snapshot


def test_the_layout_is_upstreams_with_failures_first(full_run: Run) -> None:
    assert headings(shown(full_run)) == [
        "Abbreviated Benchmark Summary",
        "Failed Cases 🚨",
        "Data-Tiling Comparison Table",
        "Convolution Comparison Table",
        "Regressed Latencies 🚩",
        "Improved Latencies 🎉",
        "Results",
        "Regressed Total Dispatch Sizes 🚩",
        "Improved Total Dispatch Sizes 🎉",
        "Regressed Total Artifact Sizes 🚩",
        "Regressed Stream IR Dispatch Count (# of cmd.dispatch ops) 🚩",
        "Improved Stream IR Dispatch Count (# of cmd.dispatch ops) 🎉",
        "Regressed Transient Memory 🚩",
        "Improved Transient Memory 🎉",
        "Reproduce",
    ]
    more = set(headings(shown(full_run, full=True))) - set(headings(shown(full_run)))
    assert more == {
        "Full Benchmark Summary",
        "Similar Latencies",
        "Unclear Latencies",
        "All Compilation Metrics",
        "Environment",
    }


def test_a_comment_is_found_again_by_its_first_line(full_run: Run) -> None:
    assert shown(full_run).startswith("<!--harness report: esrgan-->\n")


def test_largest_changes_come_first_and_the_rest_is_cut_in_the_comment_only(full_run: Run) -> None:
    """Four improved latencies: fuse-padding made the fastest of all, im2col is called the same."""
    faster = {"rdb/fuse-padding@local-sync": 2}
    rounds = tuple(
        replace(
            one,
            turns=tuple(replace(turn, wall_ns=turn.wall_ns // faster.get(turn.case, 1)) for turn in one.turns),
        )
        for one in full_run.rounds
    )
    run = replace(full_run, rounds=rounds)
    order = ["rdb/fuse-padding@", "rdb/channels-last@", "matmul-512/data-tiling@", "rdb/shared-concat@"]
    listed = re.findall(r"^\| `([^`]*@)", part(shown(run, full=True), "Improved Latencies 🎉"), re.MULTILINE)
    assert listed == order
    cut = part(shown(run), "Improved Latencies 🎉")
    assert re.findall(r"^\| `([^`]*@)", cut, re.MULTILINE) == order[:3]
    assert "_[Top 3 out of 4 results showed]_" in cut


def test_latency_cells_can_be_checked_by_hand(full_run: Run) -> None:
    cells = re.findall(r"\| ([\d.]+) \(vs\. ([\d.]+), ([\d.]+)%([↑↓])\) \| [\d.]+ \[", shown(full_run, full=True))
    assert len(cells) == 7
    for now, before, change, arrow in cells:
        assert float(change) == pytest.approx(100 * abs(float(now) / float(before) - 1), abs=0.06)
        assert now == before or (arrow == "↑") == (float(now) > float(before))


def test_comparison_tables_have_missing_variants_and_means(full_run: Run) -> None:
    table = part(shown(full_run), "Convolution Comparison Table")
    assert "| `rdb@local-sync` | 221.625 (1.00X) | 220.129 (1.00X) | 132.590 (1.67X) | N/A |" in table
    assert "vulkan" not in table
    table = part(shown(full_run), "Data-Tiling Comparison Table")
    assert "| geometric mean |  | 1.12X of 2 |" in table


def test_a_comparison_may_start_from_another_variant_than_the_baseline(full_run: Run) -> None:
    group = VariantGroup(title="Layout", variants=("channels-last", "stock", "data-tiling"))
    table = part(shown(replace(full_run, header=replace(full_run.header, groups=(group,)))), "Layout Comparison Table")
    assert "| `rdb@local-sync` | 132.590 (1.00X) | 221.625 (0.60X) | 221.625 (0.60X) |" in table
    # Where the first is missing there is nothing to compare with.
    assert "| `matmul-512@local-task` | N/A | 2.408 | 1.899 |" in table


def test_nothing_changed_is_said(small_run: Run) -> None:
    def timed(turn: Turn, generation: int) -> Turn:
        return replace(turn, wall_ns=4_700_000 + (1000 * generation if "fast" in turn.case else 0))

    rounds = tuple(
        replace(one, turns=tuple(timed(turn, one.generation) for turn in one.turns)) for one in small_run.rounds
    )
    text = shown(replace(small_run, rounds=rounds))
    assert "\nNo improved or regressed benchmarks 🏖️\n" in text
    assert "\nNo improved or regressed compilation metrics 🏖️\n" in text
    assert "**3 cases: 1 the same within 1 %, 1 with the module of another.**" in text


def test_latencies_without_a_baseline_are_raw(small_run: Run) -> None:
    rounds = tuple(
        replace(one, turns=tuple(turn for turn in one.turns if "stock" not in turn.case)) for one in small_run.rounds
    )
    text = shown(replace(small_run, rounds=rounds))
    assert "| `mm/fast@local-sync` | 4.227 |" in part(text, "Raw Latencies")


def test_an_empty_run_says_that_nothing_was_measured(small_run: Run) -> None:
    text = shown(replace(small_run, builds=(), rounds=()))
    assert "**3 cases: nothing was measured, 3 missing.**" in text
    assert text.count("missing: planned, but neither measured nor failed") == 6


def test_many_sections_are_folded_in_the_comment_only(full_run: Run) -> None:
    cases = tuple(
        replace(case, name=f"m{number}", model=f"m{number}")
        for number, case in enumerate(full_run.header.cases[:1] * 4)
    )
    run = replace(full_run, header=replace(full_run.header, cases=cases))
    assert "<summary>m2 on local-sync</summary>" in part(shown(run), "Results")
    assert "#### m2 on local-sync" in part(shown(run, full=True), "Results")


@pytest.mark.parametrize("name", ["full_run", "nasty_run", "unfinished_run"])
@pytest.mark.parametrize("full", [False, True])
def test_it_is_well_formed(name: str, full: bool, request: pytest.FixtureRequest) -> None:
    """Every line that looks like a row of a table is one, and folds are opened and closed in pairs."""
    text = shown(request.getfixturevalue(name), full=full)
    tokens: list[Token] = MarkdownIt("commonmark").enable("table").parse(text)
    fences = [token.content for token in tokens if token.type == "fence"]
    outside = text
    for fence in fences:
        outside = outside.replace(fence, "")
    rows = sum(token.type == "tr_open" for token in tokens)
    rules = sum(token.type == "table_open" for token in tokens)
    assert rows + rules == sum(line.startswith("|") for line in outside.splitlines())
    assert outside.count("<details") == outside.count("</details>")
    assert "\x1b" not in text
    assert not text.endswith("\n\n")


def test_failed_cases_are_never_folded_and_keep_what_the_tools_said(full_run: Run) -> None:
    failed = part(shown(full_run), "Failed Cases 🚨")
    for variant in ("wide-vectors", "pixel-shuffle", "ukernels", "forgotten"):
        assert f"| `rdb/{variant}@local-sync` | " in failed.split("<details>")[0]
    assert "```\nmodel.mlir:14:12: error: 'linalg.conv_2d_nchw_fchw' op failed to legalize\n    %2 = " in failed


def test_a_comment_fits_on_github_and_says_what_it_does_without(full_run: Run) -> None:
    def of_models(number: int) -> Run:
        cases = tuple(
            replace(case, name=f"m{index}/{case.variant}@{case.device}", model=f"m{index}")
            for index in range(number)
            for case in full_run.header.cases[:10]
        )
        builds = tuple(replace(full_run.builds[0], case=case.name) for case in cases)
        return replace(full_run, header=replace(full_run.header, cases=cases), builds=builds, finished=False)

    assert "### Reproduce" in shown(of_models(8))
    long = shown(of_models(20))
    assert len(long) <= COMMENT_LIMIT
    assert headings(long)[-1] == "Results"
    assert "the environment, the commands of each case): `harness report" in long
    longer = shown(of_models(80))
    assert len(longer) <= COMMENT_LIMIT
    assert "Results" not in headings(longer)
    assert "the commands of each case, the table of each model and device): `harness report" in longer
    assert "### Reproduce" in shown(of_models(80), full=True)
