"""What a run's page says beyond what the published reports show, which tests/test_published_run.py holds."""

from dataclasses import replace
from pathlib import Path

from harness.records.case import VariantGroup
from harness.records.run import Run
from harness.report import render
from harness.report.github import render_comment, render_step_summary
from harness.report.page import Picture
from harness.report.pages import Links
from harness.report.run_report import build_report
from tests.report.builders import make_case, make_check, make_failed_build, make_header, make_small_run, without
from tests.report.rendered import Page


def test_one_cause_is_told_once() -> None:
    """Twelve cases of one model that fail alike are one row, with one excerpt and the commands of the first."""
    cases = tuple(make_case("magika", f"v{number}") for number in range(12))
    builds = tuple(
        make_failed_build(case, message="it exited with 1: no", stderr="x\nm.mlir:1:2: error: no\n") for case in cases
    )
    run = Run(header=make_header(cases), builds=builds, finished=True)
    names = [f"`{case.name}`" for case in cases]
    markdown = render(run, "markdown")
    assert f"\n\nThe 12 cases of magika: {', '.join(names)}\n\n" in markdown
    assert f"| {names[0]}<br>`and 11 more` | 12 cases of magika: failed at compile: it exited with 1: no |" in markdown
    assert markdown.count("<summary>What the tools said of") == 1
    terminal = render(run, "terminal", width=120)
    assert terminal.count("What the tools said of 12 cases of magika\n") == 1
    assert "\n  m.mlir:1:2: error: no\n" in terminal and "\n  x\n" not in terminal


def test_variants_stand_side_by_side_and_tables_of_many_models_are_folded_in_the_comment_only(full_run: Run) -> None:
    group = VariantGroup(title="Layout", variants=("channels-last", "stock", "data-tiling"))
    more = tuple(replace(full_run.header.cases[0], name=f"m{number}", model=f"m{number}") for number in range(4))
    run = replace(full_run, header=replace(full_run.header, groups=(group,), cases=(*full_run.header.cases, *more)))
    short, full = render(run, "markdown"), render(run, "markdown", full=True)
    table = short.split("### Layout Comparison Table\n")[1].split("\n### ")[0]
    assert "| `rdb@local-sync` | 132.590 (1.00X) | 221.625 (0.60X) | 221.625 (0.60X) |" in table
    assert "| `matmul-512@local-task` | N/A | 2.408 | 1.899 |" in table and "vulkan" not in table
    folded = "<summary>Of 7 models and devices</summary>"
    assert (folded in short, folded in full, "#### m2 on local-sync" in full) == (True, False, True)


def test_a_run_of_too_few_generations_for_the_judge_is_a_first_look() -> None:
    few, enough = make_small_run(generations=7), make_small_run(generations=8)
    settings = {**few.header.settings, "fleet": "tls://bench:8786"}
    fleets = replace(few, finished=False, header=replace(few.header, settings=settings))
    text = render(fleets, "terminal", width=300)
    assert "(a first look)" in text
    assert "A first look: 7 generations, where a verdict takes 8 and a confirmation in fresh processes." in text
    for command in ("compare --within", "run --resume"):
        assert f"harness {command} results/{few.header.id} --fleet tls://bench:8786" in text
    for other in (enough, without(few, "mm/fast@local-sync")):  # the latter without a ratio
        assert "first look" not in render(other, "terminal")


def test_a_terminal_names_the_folder_where_the_run_lies(full_run: Run) -> None:
    """Its commands and logs are to be found as they stand; in a comment they are below `results`, as ever."""
    run = replace(full_run, finished=False)
    there = render(run, "terminal", width=300, results=Path("my runs"))
    assert f"harness run --resume 'my runs/{run.header.id}'" in there
    assert f"All that iree-compile said: my runs/{run.header.id}/logs/" in there and "results/" not in there
    assert "my runs" not in render(run, "markdown", results=Path("my runs"))


def test_a_comment_on_a_run_says_that_there_is_no_base(
    small_run: Run, links: Links, pictures: tuple[Picture, ...]
) -> None:
    report = build_report(small_run)
    text = render_comment(report, links=links)
    title = "## Abbreviated Benchmark Summary of `suites/esrgan.toml`"
    assert text.startswith(f"<!--harness report: esrgan-->\n\n{title}\n")
    assert ", with no base to compare with: " in text
    assert f"@ commit [`0a1b2c3d4e`]({links.head_commit_url}), run `" in text
    assert "harness report results/" not in text
    assert "is printed where it was measured by `harness report" in render_comment(report)
    for pictured in (render_comment(report, pictures=pictures), render_step_summary(report, pictures=pictures)):
        assert Page(pictured).images[1] == "https://org.github.io/repo/pr-1/forest-light.png"


def test_a_run_says_what_its_outputs_were_held_against(small_run: Run) -> None:
    stock, fast, inert = small_run.header.cases
    checks = [
        make_check(stock, "expected files", max_relative=0.0, below_tolerance=(0, 2)),
        make_check(fast, stock.name, max_relative=0.0, other_inputs=True),
        make_check(inert, "itself: its values are finite"),
    ]
    comment = " ".join(render(replace(small_run, checks=tuple(checks)), "markdown").split())
    sources = "1 against expected files, 1 against a baseline that nothing judged, 1 not checked but for being finite"
    assert f"{sources} (1 of them with other random inputs too); the largest" in comment
    full = render(replace(small_run, checks=tuple(checks)), "markdown", full=True)
    assert f"- {stock.name}: `{fast.name}`\n" in full.replace("&#64;", "@").replace("&#8203;", "")
    assert "all values of outputs 0, 2 are within the tolerance of zero, so the check says little" in comment
