"""One suite under two toolchains: rows tell which one they are of, and nothing is said of one that is of the other."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from harness.records.case import Case, VariantGroup
from harness.records.run import Build, Run, ToolchainRecord
from harness.report import render
from harness.report.run_report import Report, build_report
from harness.report.run_rows import Row
from harness.suite.cases import across_toolchains
from tests.report.made import make_build, make_case, make_check, make_header, make_reference, make_rounds

NEW, OLD = "3.13.0", "3.12.0"
GROUP = VariantGroup(title="Tiling", variants=("stock", "tiled"))


def _plan(toolchain: str) -> tuple[Case, ...]:
    return tuple(make_case("net", variant, toolchain=toolchain) for variant in ("stock", "tiled", "inert"))


@pytest.fixture
def run() -> Run:
    """Under each toolchain one variant is inert, and both toolchains make the same module of stock."""
    cases = across_toolchains([_plan(NEW), _plan(OLD)])
    codes = {"stock": "50", "tiled": "71", "inert": "50"}
    timed = [case for case in cases if case.variant != "inert"]
    latency = {"stock": {NEW: 2e6, OLD: 2.2e6}, "tiled": {NEW: 1e6, OLD: 1.1e6}}
    base_ns = {case.name: latency[case.variant][case.toolchain] for case in timed}

    def build(case: Case) -> Build:
        return make_build(case, code=codes[case.variant], dispatches=3, copies=0, transient=64)

    return Run(
        header=make_header(
            cases,
            groups=(GROUP,),
            toolchains=tuple(
                ToolchainRecord(version=one, revision="", compiler_sha256="c0" * 32) for one in (NEW, OLD)
            ),
            command=("harness", "run", "suites/esrgan.toml", "--toolchain", NEW, "--toolchain", OLD),
        ),
        builds=tuple(build(case) for case in cases),
        checks=tuple(make_check(case, f"net/stock@local-sync:{NEW}", max_relative=0.0) for case in cases),
        references=tuple(make_reference(case, base_ns[case.name]) for case in timed),
        rounds=tuple(make_rounds("net@local-sync", base_ns, generations=5, rounds=8)),
        finished=True,
    )


def row_of(report: Report, variant: str, toolchain: str) -> Row:
    return next(row for row in report.rows() if (row.variant, row.toolchain) == (variant, toolchain))


def test_every_row_but_one_is_compared_with_the_first_toolchains_baseline(run: Run) -> None:
    report = build_report(run)
    (section,) = report.sections
    assert section.baseline == report.facts.baseline == "stock:3.13.0"
    assert [row.case for row in report.rows() if row.baseline] == ["net/stock@local-sync:3.13.0"]
    for variant, toolchain, ratio in (("stock", OLD, 1.1), ("tiled", NEW, 0.5), ("tiled", OLD, 0.55)):
        estimate = row_of(report, variant, toolchain).estimate
        assert estimate is not None
        assert estimate.ratio == pytest.approx(ratio, rel=0.01)


def test_the_same_bytes_under_another_runtime_are_another_thing(run: Run) -> None:
    report = build_report(run)
    assert {row.case: row.status for row in report.rows()} == {
        "net/stock@local-sync:3.13.0": "measured",
        "net/stock@local-sync:3.12.0": "measured",
        "net/tiled@local-sync:3.13.0": "measured",
        "net/tiled@local-sync:3.12.0": "measured",
        "net/inert@local-sync:3.13.0": "same",
        "net/inert@local-sync:3.12.0": "same",
    }
    inert = row_of(report, "inert", OLD)
    assert inert.latency_ns == row_of(report, "stock", OLD).latency_ns
    assert inert.remarks[0] == "inert: this variant changes nothing here (same module as stock)"
    assert inert.kind == "slower"  # than the baseline, as the stock of its toolchain is


def test_a_terminal_says_which_toolchain_a_row_is_of(run: Run) -> None:
    text = render(run, "terminal", width=120)
    table = [line for line in text.splitlines() if line.startswith(("variant", "stock ", "tiled ", "inert "))]
    assert [line.split()[:2] for line in table] == [
        ["variant", "toolchain"],
        *[[variant, toolchain] for variant in ("stock", "tiled", "inert") for toolchain in (NEW, OLD)],
    ]
    assert "vs stock:3.13.0" in text
    assert "faster than stock:3.13.0" in text


def test_with_one_toolchain_nothing_is_said_of_it_in_the_table(run: Run) -> None:
    cases = tuple(replace(case, toolchain=NEW) for case in run.header.cases)
    text = render(replace(run, header=replace(run.header, cases=cases)), "terminal", width=120)
    assert " toolchain " not in text
    assert "vs stock " in text


def test_markdown_has_a_line_for_each_toolchain_where_variants_stand_side_by_side(run: Run) -> None:
    text = render(run, "markdown", full=True)
    lines = [line for line in text.splitlines() if "X)" in line]
    assert [line.split("|")[1].strip() for line in lines] == [
        "`net@local-sync:3.13.0`",
        "`net@local-sync:3.12.0`",
    ]
    assert all("(1.00X)" in line and "(2.00X)" in line for line in lines)


def test_csv_and_json_have_the_toolchain_of_each_row(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(render(run, "csv"))))
    records = json.loads(render(run, "json"))["rows"]
    for found in (rows, records):
        assert [one["toolchain"] for one in found] == [NEW, OLD] * 3
        assert len({one["case"] for one in found}) == 6


def test_commands_say_which_tools_they_are_for_and_write_different_files(run: Run) -> None:
    new, old = (row_of(build_report(run), "tiled", toolchain).repro for toolchain in (NEW, OLD))
    assert new[1] == (
        "# the tools below are those of IREE 3.13.0: pip install iree-base-compiler==3.13.0 iree-base-runtime==3.13.0"
    )
    assert "-o net/tiled.local-sync.3.13.0.vmfb" in new[2]
    assert "-o net/tiled.local-sync.3.12.0.vmfb" in old[2]


def test_what_to_run_next_has_the_same_toolchains(run: Run) -> None:
    noisy = tuple(
        make_rounds(
            "net@local-sync",
            {case.name: 1e6 for case in run.header.cases if case.variant != "inert"},
            generations=3,
            rounds=8,
            noisy=f"net/stock@local-sync:{OLD}",
        )
    )
    text = render(replace(run, rounds=noisy), "terminal", width=120)
    assert "harness run suites/esrgan.toml --toolchain 3.13.0 --toolchain 3.12.0 --generations 6" in text
