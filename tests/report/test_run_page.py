"""What a run's page says beyond the published reports, which tests/test_published_run.py holds: engines and hosts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ExitCode
from harness.machine.environment import machine_class
from harness.records.case import VariantGroup
from harness.records.run import HostRecord, Peak, Placed, Run, ToolchainRecord
from harness.report import render
from harness.report.github import render_comment
from harness.report.page import Picture
from harness.report.pages import Links
from harness.report.rows import rows_of
from harness.report.run_report import build_report
from harness.suite.cases import across_toolchains
from tests.report.builders import (
    FAILS,
    SKIPPED,
    WRONG,
    make_build,
    make_case,
    make_check,
    make_failed_build,
    make_header,
    make_release_run,
    make_rounds,
    make_small_run,
    row_of,
    without,
)
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


def test_variants_stand_side_by_side_and_models_of_one_case_share_a_table_folded_in_the_comment_only(
    full_run: Run,
) -> None:
    group = VariantGroup(title="Layout", variants=("channels-last", "stock", "data-tiling"))
    more = tuple(replace(full_run.header.cases[0], name=f"m{number}", model=f"m{number}") for number in range(4))
    run = replace(full_run, header=replace(full_run.header, groups=(group,), cases=(*full_run.header.cases, *more)))
    short, full = render(run, "markdown"), render(run, "markdown", full=True)
    table = short.split("### Layout Comparison Table\n")[1].split("\n### ")[0]
    assert "| `rdb@local-sync` | 132.590 (1.00X) | 221.625 (0.60X) | 221.625 (0.60X) |" in table
    assert "| `matmul-512@local-task` | N/A | 2.408 | 1.899 |" in table and "vulkan" not in table
    folded = "<summary>Of 7 models and devices</summary>"
    assert (folded in short, folded in full, "#### 4 models on local-sync" in full) == (True, False, True)


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
    assert Page(render_comment(report, pictures=pictures)).images[1].endswith("forest-light.png")


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


NEW, OLD = "3.13.0", "3.12.0"
LATENCIES = {("stock", NEW): 2e6, ("stock", OLD): 2.2e6, ("tiled", NEW): 1e6, ("tiled", OLD): 1.1e6}


def test_of_several_toolchains_every_row_but_one_is_compared_with_the_firsts_baseline() -> None:
    """Under each toolchain one variant is inert, and both make the same module of stock."""
    of_each = [
        tuple(make_case("net", variant, toolchain=version) for variant in ("stock", "tiled", "inert"))
        for version in (NEW, OLD)
    ]
    cases = across_toolchains(of_each)
    codes = {"stock": "50", "tiled": "71", "inert": "50"}
    times = {case.name: LATENCIES[case.variant, case.toolchain] for case in cases if case.variant != "inert"}
    toolchains = tuple(ToolchainRecord(version=version, revision="", compiler_sha256="c0") for version in (NEW, OLD))
    run = Run(
        header=make_header(cases, toolchains=toolchains),
        builds=tuple(make_build(case, code=codes[case.variant]) for case in cases),
        rounds=tuple(make_rounds("net@local-sync", times)),
        finished=True,
    )
    report = build_report(run)
    (section,) = report.sections
    assert section.baseline == report.baseline == "stock:3.13.0"
    assert [row.case for row in report.rows() if row.baseline] == ["net/stock@local-sync:3.13.0"]
    for variant, toolchain, ratio in (("stock", OLD, 1.1), ("tiled", NEW, 0.5), ("tiled", OLD, 0.55)):
        estimate = row_of(report, variant, toolchain=toolchain).estimate
        assert estimate is not None
        assert estimate.ratio == pytest.approx(ratio, rel=0.01)
    # The same bytes under another runtime are another thing.
    statuses = {(row.variant, row.toolchain): row.status for row in report.rows()}
    assert statuses == dict.fromkeys(LATENCIES, "measured") | {("inert", NEW): "same", ("inert", OLD): "same"}
    inert = row_of(report, "inert", toolchain=OLD)
    assert inert.latency_ns == row_of(report, "stock", toolchain=OLD).latency_ns
    assert inert.remarks[0] == "inert: it changes nothing in 3.12.0 (same module as stock)"
    assert inert.kind == "slower"  # than the baseline, as the stock of its toolchain is


# --- Peers ---

TIMES = {"stock": 8e6, "fast": 6e6, "onnxruntime": 4e6, "pytorch": 5e6}


def peers_run(*left_out: str) -> Run:
    """A model with two variants of IREE and three peers, of which one is not there; some may not have been timed."""
    own = {variant: make_case("net", variant, "cpu") for variant in ("stock", "fast")}
    peers = {
        peer: make_case("net", peer, "cpu", peer=peer, toolchain="", compile_flags=())
        for peer in ("onnxruntime", "pytorch", "halide")
    }
    peers["halide"] = replace(peers["halide"], skip="halide is not installed; get it")
    cases = {**own, **peers}
    times = {cases[name].name: ns for name, ns in TIMES.items() if name not in left_out}
    versions = {"peers": {"onnxruntime": "ONNX Runtime 1.31.1", "pytorch": "PyTorch 2.13.0"}}
    return Run(
        header=make_header(tuple(cases.values()), suite="suites/small.toml", environment=versions),
        builds=(make_build(own["stock"], code="a1"), make_build(own["fast"], code="b2")),
        checks=tuple(make_check(cases[name], "ONNX Runtime 1.31.1") for name in TIMES),
        rounds=tuple(make_rounds("net@cpu", times)),
        finished=True,
    )


def test_every_row_has_its_ratio_to_the_fastest_peer_and_to_the_baseline() -> None:
    report = build_report(peers_run())
    assert report.sections[0].best_peer == "onnxruntime"
    to_peer = {row.variant: row.peer_estimate.ratio for row in report.rows() if row.peer_estimate is not None}
    assert to_peer == pytest.approx({"stock": 2.0, "fast": 1.5, "pytorch": 1.25}, rel=0.02)
    to_baseline = {row.variant: row.estimate.ratio for row in report.rows() if row.estimate is not None}
    assert to_baseline == pytest.approx({"fast": 0.75, "onnxruntime": 0.5, "pytorch": 0.625}, rel=0.02)
    # What was not measured is not the best peer; without a measured baseline the best peer still stands.
    assert build_report(peers_run("onnxruntime")).sections[0].best_peer == "pytorch"
    fast = row_of(peers_run("stock"), "fast")
    assert fast.peer_estimate is not None
    assert fast.peer_estimate.ratio == pytest.approx(1.5, rel=0.02)


def test_what_is_said_of_variants_counts_no_peer_and_the_table_names_the_best_one() -> None:
    summary = build_report(peers_run()).summary
    counts = (summary.planned, summary.measured, summary.skipped, summary.faster, summary.slower)
    assert counts == (5, 4, 1, 1, 0)
    text = render(peers_run(), "markdown")
    changes = text.split("### Results")[0]
    assert "`net/fast@cpu`" in changes and "onnxruntime@cpu" not in changes and "pytorch@cpu" not in changes
    assert "IREE 3.13.0 (e4a3b04d7a), ONNX Runtime 1.31.1, PyTorch 2.13.0" in text
    by_variant = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    assert "best peer" in by_variant["onnxruntime"] and "2.000 [" in by_variant["stock"]
    assert row_of(peers_run(), "onnxruntime").repro == ("harness run suites/small.toml --filter net/onnxruntime@cpu",)


HOSTS = {"ash": "AMD EPYC 7B13", "elm": "Neoverse-V2"}
CHECKED = {"flagged": 0, "rows": 40, "upper_bound": 0.07, "detects": 0.02, "seconds": 9.0, "when": ""}


def an_environment(host: str) -> dict[str, dict[str, Any]]:
    return {
        "machine": {"id": f"{host}00", "system": "Linux", "architecture": "x86_64", "kernel": "6.1"},
        "cpu": {"model": HOSTS[host], "usable_cores": 2},
        "devices": {"cpu": f"{HOSTS[host]} by local-sync"},
        "selfcheck": {**CHECKED, "suite": f"/home/{host}/small.toml"},
    }


@pytest.fixture
def run() -> Run:
    """`block` was measured on ash, and `mm` on elm since birch is gone."""
    cases = tuple(make_case(model, variant, "cpu") for model in ("block", "mm") for variant in ("stock", "fast"))
    host_of = {"block@cpu": "ash", "mm@cpu": "elm"}
    rounds = [
        replace(measured, host=host)
        for group, host in host_of.items()
        for measured in make_rounds(group, {case.name: 1e6 for case in cases if case.group == group})
    ]
    return Run(
        header=make_header(cases),
        builds=tuple(make_build(case, code=case.name.encode().hex()) for case in cases),
        rounds=tuple(rounds),
        hosts=tuple(HostRecord(name=host, environment=an_environment(host)) for host in HOSTS),
        placed=(
            Placed(group="block@cpu", host="ash"),
            Placed(group="mm@cpu", host="birch"),
            Placed(group="mm@cpu", host="elm", attempt=1, why="birch did not answer for 60 s"),
        ),
        peaks=tuple(
            Peak(device="cpu", threads=1, operations_per_s=ops, operations_by="sgemm", bytes_per_s=1e9, host=host)
            for host, ops in zip(HOSTS, (1e9, 2e9), strict=True)
        ),
        finished=True,
    )


def test_points_have_the_class_and_the_machine_of_the_host_that_measured_them(run: Run) -> None:
    rows = rows_of(run)
    classes = {host: machine_class(an_environment(host)) for host in HOSTS}
    assert {(row["model"], row["machine"], row["machine_class"]) for row in rows["points"]} == {
        ("block", "ash00", classes["ash"]),
        ("mm", "elm00", classes["elm"]),
    }
    (row,) = rows["runs"]
    assert row["machine_class"] == f"{classes['ash']} + {classes['elm']}"
    assert (row["machine"], row["cpu"]) == ("ash00 + elm00", "AMD EPYC 7B13 + Neoverse-V2")
    assert row["devices"] == "cpu: AMD EPYC 7B13 by local-sync + Neoverse-V2 by local-sync"


def test_each_page_lists_the_hosts_and_heads_each_table_with_its_own(run: Run) -> None:
    page = render(run, "markdown", full=True)
    for text in (
        "2 hosts, AMD EPYC 7B13 + Neoverse-V2",
        "block on cpu of ash",
        "mm on cpu of elm",
        "machine elm00, Neoverse-V2, 2 cores, Linux",
        "mm@cpu was begun again on elm: birch did not answer for 60 s.",
        "On ash: 0 of 40 A/A rows flagged",
    ):
        assert text in page


def test_a_shard_says_which_it_is_and_may_have_nothing_to_measure(run: Run) -> None:
    shard = replace(run, header=replace(run.header, settings={**run.header.settings, "shard": "2/8"}))
    assert "This is shard 2/8 of its suite" in render(shard, "markdown")
    assert json.loads(render(shard, "json"))["run"]["shard"] == "2/8"
    nothing: dict[str, Any] = {"cases": (), "models": ()}
    statuses = [
        build_report(Run(header=replace(header, **nothing), finished=True)).summary.exit_code
        for header in (shard.header, run.header)
    ]
    assert statuses == [ExitCode.OK, ExitCode.CASE_FAILED]


def test_a_run_of_many_releases_is_one_table_with_its_steps_and_failures() -> None:
    """A narrow terminal leaves out the releases at which the least happens, and says which."""
    releases = [f"3.{number}.0" for number in range(12)]
    lines: dict[str, list[float | str]] = {
        "softmax": [*[1.0] * 5, *[28.1] * 7],
        "conv": [SKIPPED, *[2.0] * 9, FAILS, 2.0],
        "norm": [*[3.0] * 10, WRONG, WRONG],
    }
    run = make_release_run(lines, *releases)
    text = render(run, "terminal", width=100)
    assert " (3.0)  3.0" in text and "3.11.0" not in text.split("Columns hidden")[0].split("line")[1]
    assert "Columns hidden: 3." not in render(run, "terminal", width=140)
    row = next(line for line in text.splitlines() if line.startswith("softmax/stock@local-sync "))
    assert row.split()[1:4] == ["1.00", "ms", "1.00"] and row.split()[-3:] == ["▲28.1", "28.1", "ms"]
    assert "\x1b[31m▲28.1" in render(run, "terminal", width=140, color=True)
    row = next(line for line in text.splitlines() if line.startswith("conv/stock@local-sync "))
    assert row.split()[1:4] == ["-", "n/a", "1.00"] and "fails" in row
    comment = render(run, "markdown")
    assert comment.count("| line |") == 1 and "Benchmark Name" not in comment
    assert "- `softmax/stock@local-sync`: 28.1 [" in comment and "times as slow from 3.4.0 to 3.5.0" in comment
    assert "- 3.10.0 to 3.11.0: `norm/stock@local-sync`: wrong output: its output 0 differs" in comment
    assert ": 3 lines over 12 releases: 1 step, up to 28.1 times; 2 lines fail or are wrong" in comment
    assert " measured" in comment and "than stock" not in comment
    full = render(run, "markdown", full=True)
    assert "| line |" in full and "<summary>Of 3 models and devices</summary>" in full and "Failed Cases" in full
    found = json.loads(render(run, "json"))
    assert [step["after"] for step in found["steps"]] == ["3.5.0"] and found["steps"][0]["verdict"] == "regressed"
    assert [point["state"] for point in found["lines"][1]["points"]].count("fails") == 1
    assert "lines" not in json.loads(render(make_release_run({"m": [1.0, 2.0]}, "3.4.0", "3.5.0"), "json"))


def test_what_looks_like_a_step_of_too_few_generations_is_told_apart() -> None:
    run = make_release_run({"m": [1.0, 2.0, 2.0]}, "3.4.0", "3.5.0", "3.6.0", generations=1)
    text = render(run, "terminal", width=120)
    assert "Beyond 10 %, and not decided by the generations there are\n- m/stock@local-sync: 2.0" in text
