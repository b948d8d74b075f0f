"""A run on a terminal, as a comment, and in full: every case is there, and nothing in it breaks the page."""

from __future__ import annotations

import re
from dataclasses import asdict, replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from harness.records.case import VariantGroup
from harness.records.run import IrCounts, PluginEffect, Run, Turn
from harness.report import render
from harness.report.github import (
    Images,
    Links,
    render_run_comment,
    render_run_full,
    render_run_step_summary,
)
from harness.report.markdown import COMMENT, to_markdown
from harness.report.page import Table
from harness.report.run_changes import side_by_side
from harness.report.run_page import ablation_page
from harness.report.run_report import Report, build_report
from harness.text import one_line
from tests.report.compared import SELFCHECK
from tests.report.made import make_build, make_case, make_header, make_rounds
from tests.report.rendered import HOSTILE, Page, require_ours

RUNS = ["full_run", "small_run", "one_generation_run", "unfinished_run", "nasty_run"]
# Commands and next steps stay on one line each, however long, so that they can be copied.
UNWRAPPED = re.compile(r"  (harness|iree-\S+) |- ")


def part(text: str, title: str) -> str:
    """What stands under a heading."""
    return text.split(f"### {title}\n", 1)[1].split("\n### ", 1)[0]


def headings(text: str) -> list[str]:
    return re.findall(r"^###? (.*)$", text, re.MULTILINE)


def test_terminal_and_comment(small_run: Run, snapshot: SnapshotAssertion) -> None:
    assert render(small_run, "terminal", width=160) == snapshot
    assert render(small_run, "markdown") == snapshot


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("width", [40, 80, 120, 240])
def test_a_terminal_has_every_case_within_its_width(name: str, width: int, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(name)
    text = render(run, "terminal", width=width)
    for line in text.splitlines():
        assert cell_len(line) <= width or UNWRAPPED.match(line), line
        assert line == line.rstrip() and line.isprintable()
    words = "".join(text.split())
    for row in build_report(run).rows():
        assert "".join(one_line(row.variant).split()) in words or width == 40
        assert all("".join(one_line(remark).split()) in words for remark in row.remarks) or width < 240


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("full", [False, True])
def test_markdown_is_well_formed_and_has_every_case(name: str, full: bool, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(name)
    text = render(run, "markdown", full=full)
    page = require_ours(text)
    everything = one_line(page.everything)
    assert all(one_line(row.variant) in everything for row in build_report(run).rows() if row.status != "skipped")
    assert all(one_line(row.case) in everything for row in build_report(run).rows() if row.status == "skipped")
    assert not text.endswith("\n\n")


def test_colours_only_repeat_what_is_written(full_run: Run) -> None:
    colored = render(full_run, "terminal", width=120, color=True)
    assert "\x1b[32m▼ 0.600" in colored
    plain = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert "".join(f"{line.rstrip()}\n" for line in plain.splitlines()) == render(full_run, "terminal", width=120)


def test_the_layout_is_upstreams_with_failures_first(full_run: Run) -> None:
    comment, full = render(full_run, "markdown"), render(full_run, "markdown", full=True)
    assert comment.startswith("<!--harness report: esrgan-->\n")
    lists = [
        "Regressed Total Dispatch Sizes 🚩",
        "Improved Total Dispatch Sizes 🎉",
        "Regressed Total Artifact Sizes 🚩",
        "Regressed Stream IR Dispatch Count (# of cmd.dispatch ops) 🚩",
        "Improved Stream IR Dispatch Count (# of cmd.dispatch ops) 🎉",
        "Regressed Transient Memory 🚩",
        "Improved Transient Memory 🎉",
    ]
    assert headings(comment) == [
        "Abbreviated Benchmark Summary",
        "Failed Cases 🚨",
        "Data-Tiling Comparison Table",
        "Convolution Comparison Table",
        "Regressed Latencies 🚩",
        "Improved Latencies 🎉",
        *lists,
        "Results",
        "Reproduce",
    ]
    more = {
        "Full Benchmark Summary",
        "Similar Latencies",
        "Unclear Latencies",
        "All Compilation Metrics",
        "Environment",
    }
    assert set(headings(full)) - set(headings(comment)) == more


def test_failures_are_never_folded_and_keep_what_the_tools_said(full_run: Run) -> None:
    text = render(full_run, "markdown")
    assert "**🚨 Needs attention: 17 cases: 3 failed, 1 missing" in text
    failed = part(text, "Failed Cases 🚨")
    for variant in ("wide-vectors", "pixel-shuffle", "ukernels", "forgotten"):
        assert f"| `rdb/{variant}@local-sync` | " in failed.split("<details>")[0]
    assert "```\nmodel.mlir:14:12: error: 'linalg.conv_2d_nchw_fchw' op failed to legalize\n    %2 = " in failed
    terminal = render(full_run, "terminal", width=120)
    assert "rdb/wide-vectors@local-sync failed at compile\n  model.mlir:14:12: error" in terminal
    assert "iree-compile rdb/model.mlir" in terminal


def test_largest_changes_come_first_and_the_rest_is_cut_in_the_comment_only(full_run: Run) -> None:
    """Four improved latencies: fuse-padding made the fastest of all, im2col is called the same."""
    faster = {"rdb/fuse-padding@local-sync": 2}
    rounds = tuple(
        replace(
            known,
            turns=tuple(replace(turn, wall_ns=turn.wall_ns // faster.get(turn.case, 1)) for turn in known.turns),
        )
        for known in full_run.rounds
    )
    run = replace(full_run, rounds=rounds)
    order = ["rdb/fuse-padding@", "rdb/channels-last@", "matmul-512/data-tiling@", "rdb/shared-concat@"]
    listed = part(render(run, "markdown", full=True), "Improved Latencies 🎉")
    assert re.findall(r"^\| `([^`]*@)", listed, re.MULTILINE) == order
    cut = part(render(run, "markdown"), "Improved Latencies 🎉")
    assert re.findall(r"^\| `([^`]*@)", cut, re.MULTILINE) == order[:3]
    assert "_[Top 3 out of 4 results showed]_" in cut


def test_latency_cells_can_be_checked_by_hand(full_run: Run) -> None:
    full = render(full_run, "markdown", full=True)
    cells = re.findall(r"\| ([\d.]+) \(vs\. ([\d.]+), ([\d.]+)%([↑↓])\) \| [\d.]+ \[.*\] \| [\d.]+ to [\d.]+ \|", full)
    assert len(cells) == 7
    for now, before, change, arrow in cells:
        assert float(change) == pytest.approx(100 * abs(float(now) / float(before) - 1), abs=0.06)
        assert now == before or (arrow == "↑") == (float(now) > float(before))


@pytest.mark.parametrize(
    ("variants", "lines"),
    [
        (
            ("stock", "im2col", "channels-last", "wide-vectors"),
            ["| `rdb@local-sync` | 221.625 (1.00X) | 220.129 (1.00X) | 132.590 (1.67X) | N/A |"],
        ),
        (("stock", "data-tiling"), ["| `geometric mean` |  | 1.12X of 2 |"]),
        # Where the first is missing there is nothing to compare with.
        (
            ("channels-last", "stock", "data-tiling"),
            [
                "| `rdb@local-sync` | 132.590 (1.00X) | 221.625 (0.60X) | 221.625 (0.60X) |",
                "| `matmul-512@local-task` | N/A | 2.408 | 1.899 |",
            ],
        ),
    ],
)
def test_variants_side_by_side(full_run: Run, variants: tuple[str, ...], lines: list[str]) -> None:
    group = VariantGroup(title="Layout", variants=variants)
    run = replace(full_run, header=replace(full_run.header, groups=(group,)))
    table = part(render(run, "markdown"), "Layout Comparison Table")
    assert all(line in table for line in lines)
    assert "vulkan" not in table
    assert side_by_side(group, build_report(replace(full_run, rounds=())), full=False) == []


def test_nothing_changed_is_said(small_run: Run) -> None:
    def timed(turn: Turn, generation: int) -> Turn:
        return replace(turn, wall_ns=4_700_000 + (1000 * generation if "fast" in turn.case else 0))

    rounds = tuple(
        replace(known, turns=tuple(timed(turn, known.generation) for turn in known.turns)) for known in small_run.rounds
    )
    text = render(replace(small_run, rounds=rounds), "markdown")
    assert "\nNo improved or regressed benchmarks 🏖️\n" in text
    assert "\nNo improved or regressed compilation metrics 🏖️\n" in text
    assert "**3 cases: 1 the same within 1 %, 1 with the module of another.**" in text
    assert "No action needed." in text


def test_latencies_without_a_baseline_are_raw(small_run: Run) -> None:
    rounds = tuple(
        replace(known, turns=tuple(turn for turn in known.turns if "stock" not in turn.case))
        for known in small_run.rounds
    )
    text = render(replace(small_run, rounds=rounds), "markdown")
    assert "| `mm/fast@local-sync` | 4.227 |" in part(text, "Raw Latencies")


def test_an_empty_run_says_that_nothing_was_measured(small_run: Run) -> None:
    text = render(replace(small_run, builds=(), rounds=()), "markdown")
    assert "3 cases: nothing was measured, 3 missing.**" in text
    assert text.count("missing: planned, but neither measured nor failed") == 6


def test_many_sections_are_folded_in_the_comment_only(full_run: Run) -> None:
    cases = tuple(
        replace(case, name=f"m{number}", model=f"m{number}")
        for number, case in enumerate(full_run.header.cases[:1] * 4)
    )
    run = replace(full_run, header=replace(full_run.header, cases=cases))
    assert "<summary>m2 on local-sync</summary>" in part(render(run, "markdown"), "Results")
    assert "#### m2 on local-sync" in part(render(run, "markdown", full=True), "Results")


def test_a_comment_fits_and_says_what_it_does_without(full_run: Run) -> None:
    def of_models(number: int) -> Run:
        cases = tuple(
            replace(case, name=f"m{index}/{case.variant}@{case.device}", model=f"m{index}")
            for index in range(number)
            for case in full_run.header.cases[:10]
        )
        builds = tuple(replace(full_run.builds[0], case=case.name) for case in cases)
        return replace(full_run, header=replace(full_run.header, cases=cases), builds=builds, finished=False)

    assert "### Reproduce" in render(of_models(8), "markdown")
    for number, left_out in ((20, "the commands."), (80, "the commands, the table of each model and device.")):
        text = render(of_models(number), "markdown")
        assert len(text.encode()) <= COMMENT.page_bytes
        assert f"Left out here for length: {left_out} The full report" in text
    assert "### Reproduce" in render(of_models(80), "markdown", full=True)


def test_a_comment_on_a_run_says_that_there_is_no_base(small_run: Run, links: Links, images: Images) -> None:
    report = build_report(small_run)
    text = render_run_comment(report, links=links)
    lines = [line for line in text.splitlines() if line]
    assert lines[:2] == [
        "<!--harness report: esrgan-->",
        "## Abbreviated Benchmark Summary of `suites/esrgan.toml`",
    ]
    assert ", with no base to compare with: " in text
    assert f"@ commit [`0a1b2c3d4e`]({links.head_commit_url}), run `" in text
    assert "harness report results/" not in text
    assert "where it was measured: `harness report" in render_run_comment(report)
    for pictured in (render_run_comment(report, images=images), render_run_step_summary(report, images=images)):
        assert Page(pictured).images[1] == "https://org.github.io/repo/pr-1/forest-light.png"


def test_the_summary_of_a_job_is_the_full_report_where_there_is_room(full_run: Run) -> None:
    report = build_report(full_run)
    assert render_run_step_summary(report) == render_run_full(report)
    assert len(render_run_step_summary(report, limit_bytes=9_000).encode()) < 9_000


def test_a_suite_of_elsewhere_is_named_by_its_file(small_run: Run) -> None:
    report = build_report(small_run)
    known = {**report.facts.environment, "selfcheck": asdict(replace(SELFCHECK, suite="/home/me/checked.toml"))}
    text = render_run_comment(replace(report, facts=replace(report.facts, environment=known)))
    assert "(checked with checked.toml)" in text


def called(report: Report, text: str) -> Report:
    """The same report with a text in place of its names, reasons and notes."""
    sections = tuple(
        replace(
            section,
            model=text,
            group=f"{text}{index}",
            device=text,
            device_facts=text,
            call=text,
            rows=tuple(
                replace(
                    row,
                    case=f"{text}{number}",
                    variant=row.variant and f"{text}{row.variant}",
                    same_as=row.same_as and text,
                    checked_against=row.checked_against and text,
                    remarks=tuple(text for _ in row.remarks),
                    repro=tuple(text for _ in row.repro),
                    failure=row.failure and replace(row.failure, message=text, stderr=f"{text}\n{text}x"),
                )
                for number, row in enumerate(section.rows)
            ),
        )
        for index, section in enumerate(report.sections)
    )
    facts = replace(report.facts, id=text, suite=text, suite_name=text, machine=text, cpu=text, baseline=text)
    return replace(report, sections=sections, facts=facts, notes=(text,))


@given(HOSTILE)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_a_text_is_the_page_has_the_same_parts(full_run: Run, text: str) -> None:
    assume(one_line(text))
    report = build_report(full_run)
    page = require_ours(render_run_comment(called(report, text)))
    assert page.shape == Page(render_run_comment(called(report, "plain"))).shape
    require_ours(render_run_full(called(report, f"{text}a")))


@pytest.mark.parametrize("character", ["a", "@x", "|", "語", "`", "$"])
def test_names_of_ten_thousand_characters_fit(full_run: Run, character: str) -> None:
    text = render_run_comment(called(build_report(full_run), (character * 10_000)[:10_000]))
    assert len(text.encode()) < COMMENT.page_bytes
    require_ours(text)


def test_fifteen_hundred_failures_fit(full_run: Run) -> None:
    report = build_report(full_run)
    section = report.sections[0]
    failed = next(row for row in section.rows if row.status == "failed")
    rows = tuple(replace(failed, case=f"model-{index}/v@cpu", variant=f"v{index}") for index in range(1_500))
    text = render_run_comment(replace(report, sections=(replace(section, rows=(*section.rows, *rows)),)))
    assert len(text.encode()) < COMMENT.page_bytes
    assert "Left out here for length: " in text
    assert "model-7/v@cpu" in Page(text).unfolded


@pytest.fixture
def ablated_run() -> Run:
    """A plugin of two switches, of which one matches nothing, on two models."""
    steps = {"without": "57", "none": "57", "only-fold": "fa", "all": "fa"}
    cases = {
        (model, step): make_case(
            model, step, baseline=step == "without", plugins=() if step == "without" else ("fold",)
        )
        for model in ("mlp", "rdb")
        for step in steps
    }
    builds = [
        make_build(
            case,
            code=steps[step] if model == "mlp" else {"57": "fa", "fa": "1b"}[steps[step]],
            dispatches=3 if steps[step] == "fa" else 4,
            copies=0,
            transient=4096,
            effects=() if step == "without" else (PluginEffect(name="fold", matched=1, changed=True),),
        )
        for (model, step), case in cases.items()
    ]
    rounds = [
        known
        for model in ("mlp", "rdb")
        for known in make_rounds(
            f"{model}@local-sync",
            {cases[model, "without"].name: 2.4e6, cases[model, "only-fold"].name: 1.9e6},
            generations=5,
            rounds=20,
        )
    ]
    return Run(
        header=make_header(
            tuple(cases.values()),
            baseline="without",
            suite_name="mlp-ablate-fold",
            suite_description="What each option of fold does",
        ),
        builds=tuple(builds),
        ir=tuple(
            IrCounts(case=case.name, counts={"flow/tensor.empty": 1 if steps[step] == "fa" else 6})
            for (_, step), case in cases.items()
        ),
        rounds=tuple(rounds),
        finished=True,
    )


def test_an_ablation_says_what_each_option_does(ablated_run: Run, full_run: Run, nasty_run: Run) -> None:
    text = to_markdown(ablation_page(build_report(ablated_run)))
    assert text.startswith("## What each option of fold does\n")
    tables = [found for found in ablation_page(build_report(ablated_run)).parts if isinstance(found, Table)]
    assert [tuple(table.columns[-1].cells) for table in tables] == [
        ("", "without", "", "only-fold"),
        ("mlp/only-fold@local-sync", "mlp/only-fold@local-sync", "", "only-fold"),
    ]
    assert {"latency", "vs without", "dispatches", "tensor.empty"} <= {column.title for column in tables[0].columns}
    assert not {"module", "compile"} & {column.title for column in tables[0].columns}
    for run in (full_run, nasty_run):
        page = require_ours(to_markdown(ablation_page(build_report(run))))
        assert page.tags.count("tr") == len(run.header.cases) + len({case.group for case in run.header.cases})
    assert "- wide-vectors: failed at compile" in to_markdown(ablation_page(build_report(full_run)))
