"""Every planned case becomes one row that says what became of it."""

from dataclasses import replace
from typing import Any

import pytest

from harness.errors import ExitCode
from harness.records.case import Gate
from harness.records.run import Account, Build, PluginEffect, Reference, Run, Turn
from harness.report.run_report import build_report, notes_of, reference_sentence
from harness.report.run_rows import effect_remarks
from tests.builders import make_case
from tests.report.builders import (
    make_refused_run,
    make_small_run,
    make_unfinished_run,
    row_of,
    with_cases,
    with_turns,
    without,
)

FAST, INERT, STOCK = (f"mm/{variant}@local-sync" for variant in ("fast", "inert", "stock"))


def slowed(run: Run, factors: dict[int, float]) -> Run:
    """The run as if some of its generations had been slower."""
    return with_turns(run, lambda turn, at: replace(turn, wall_ns=int(turn.wall_ns * factors.get(at, 1.0))))


ROWS: dict[str, tuple[str, str | None, str]] = {
    "stock": ("measured", None, ""),
    "channels-last": ("measured", "faster", ""),
    "im2col": ("measured", "same", "iree-benchmark-module failed: iree-benchmark-module ran for longer than 60 s"),
    "data-tiling": ("same", "same", "inert: it changes nothing in 3.13.0 (same module as stock)"),
    "fuse-padding": ("measured", "slower", "its ops were not counted: iree-compile ran past its limit of 900 s"),
    "shared-concat": ("measured", "faster", "share-concats matched 5 places"),
    "aggressive-im2col": ("same", "same", "same module as im2col"),
    "wide-vectors": ("failed", None, "failed at compile: iree-compile exited with status 1: model.mlir:14:12: error"),
    "pixel-shuffle": ("failed", None, "wrong output: its output 0 differs in 302,481 of 357,120 values"),
    "ukernels": ("failed", None, "failed at measure: the worker ended by signal 11 while loading the module"),
    "strided": ("expected failure", None, "expected to fail: failed at compile: iree-compile exited"),
    "onnx-if": ("measured", "same", 'expected to fail with "onnx.If", but works now'),
    "loop-peeling": ("measured", "unclear", ""),
    "forgotten": ("missing", None, "missing: planned, but neither measured nor failed"),
}


def test_every_status_and_kind_in_the_plans_order_with_a_remark(full_run: Run) -> None:
    report = build_report(full_run)
    assert [section.group for section in report.sections] == ["rdb@local-sync", "rdb@vulkan", "matmul-512@local-task"]
    assert [row.case for row in report.rows()] == [case.name for case in full_run.header.cases]
    section = report.sections[0]
    assert (section.rounds, section.call) == ((8,) * 5, "main(4xf32 random seed 0)")
    assert {row.variant: (row.status, row.kind) for row in section.rows} == {
        variant: (status, kind) for variant, (status, kind, _) in ROWS.items()
    }
    for row in section.rows:
        assert next(iter(row.remarks), "").startswith(ROWS[row.variant][2])
    summary = vars(report.summary)
    counts = {"planned": 17, "measured": 9, "same": 2, "failed": 3, "expected_failures": 1, "skipped": 1, "missing": 1}
    kinds = {"works_again": 1, "faster": 3, "slower": 1, "unchanged": 2, "unclear": 1}
    assert {name: summary[name] for name in counts | kinds} == counts | kinds


def test_equal_modules_share_the_figures_of_the_case_that_was_measured(full_run: Run, small_run: Run) -> None:
    report = build_report(full_run)
    im2col, twin = row_of(report, "im2col"), row_of(report, "aggressive-im2col")
    assert (twin.same_as, twin.latency_ns, twin.estimate) == ("im2col", im2col.latency_ns, im2col.estimate)
    # With other run flags it is a case of its own; measured anyway, it shows its own figures, and its verdict stays:
    # equal code under one runtime is equally fast, whatever its turns say.
    assert row_of(with_cases(small_run, "inert", run_flags=("--a=1",)), "inert").status == "missing"
    row = row_of(with_turns(small_run, lambda turn, _: replace(turn, case=turn.case.replace(FAST, INERT))), "inert")
    assert (row.status, row.same_as, row.kind, row.estimate) == ("same", "stock", "same", None)
    assert row.latency_ns is not None


def test_what_is_odd_in_the_samples_is_remarked(small_run: Run) -> None:
    assert row_of(with_turns(small_run, lambda turn, _: replace(turn, wall_ns=0)), "fast").status == "missing"
    first = slowed(replace(small_run, rounds=small_run.rounds[:1]), {0: 0}).rounds
    once = replace(small_run, rounds=(*first, *small_run.rounds[1:]))
    assert row_of(once, "fast").remarks == ("1 turn without time on the clock left out",)
    missed = with_turns(small_run, lambda turn, at: None if turn.case == FAST and at < 2 else turn)
    assert row_of(missed, "fast").remarks == ("measured in 3 of 5 generations",)


def test_what_was_expected_and_does_not_happen_is_said(full_run: Run) -> None:
    works_again = build_report(full_run).summary.works_again
    run = with_cases(full_run, "wide-vectors", "channels-last", expected_mismatch=True)
    broken, fine = row_of(run, "wide-vectors"), row_of(run, "channels-last")
    assert broken.status == "failed"
    assert (fine.status, fine.remarks[0]) == ("measured", "expected to give wrong outputs, but works now")
    assert build_report(run).summary.works_again == works_again + 1
    unchecked = replace(run, checks=tuple(check for check in run.checks if check.case != fine.case))
    assert row_of(unchecked, "channels-last").remarks[0] == (
        "expected to give wrong outputs, which cannot be told: there is nothing to compare them with"
    )
    assert build_report(unchecked).summary.works_again == works_again
    other = row_of(with_cases(full_run, "strided", expected_failure="another message"), "strided")
    assert other.status == "failed"


def test_a_figure_over_a_limit_of_the_suite_fails_the_run(small_run: Run) -> None:
    """Of a latency, that of the fastest generation counts."""
    latency = row_of(small_run, "fast").latency
    assert latency is not None

    def over(**limit: Any) -> list[str]:
        gate = Gate(name="golden", cases="*/fast@*", **limit)
        report = build_report(replace(small_run, header=replace(small_run.header, gates=(gate,))))
        rows = [row for row in report.rows() if row.over]
        assert (report.summary.over_limit, report.summary.exit_code) == (len(rows), ExitCode(3 if rows else 0))
        assert all(row.variant == "fast" and row.remarks[0] == row.over[0] for row in rows)
        return [remark for row in rows for remark in row.over]

    assert over(metric="latency", at_most=latency.low_ns) == []
    (slow,) = over(metric="latency", at_most=1.0)
    assert slow.startswith("over its limit: gate golden allows at most 1e-06 ms, and it has ")
    assert over(metric="device-peak-memory", at_most=0) == []  # of which nothing is known


def test_a_case_that_was_lost_fails_and_its_twin_with_it(full_run: Run) -> None:
    lost = replace(full_run.lost[0], case="rdb/im2col@local-sync")
    row = row_of(replace(without(full_run, lost.case), lost=(lost,)), "aggressive-im2col")
    assert row.status == "failed"
    assert row.remarks[0].startswith("same module as im2col: failed at measure: the worker ended by signal 11")


def test_without_its_baseline_a_group_has_latencies_and_no_ratios(small_run: Run) -> None:
    report = build_report(without(small_run, STOCK))
    fast = row_of(report, "fast")
    assert (fast.status, fast.kind, fast.estimate) == ("measured", None, None)
    assert fast.latency_ns is not None
    assert notes_of(report) == ["No ratios for mm@local-sync: its baseline, stock, was not measured."]


def test_with_a_refused_baseline_the_others_are_compared_with_the_first_that_is_right() -> None:
    run = make_refused_run()
    report = build_report(run)
    (section,) = report.sections
    assert section.against == "vs fast (stock is refused: wrong output)"
    assert [(row.variant, row.status, row.baseline, row.compared_with, row.kind) for row in section.rows] == [
        ("stock", "failed", False, FAST, None),
        ("fast", "measured", True, None, None),
        ("inert", "same", False, FAST, "same"),
        ("quick", "measured", False, FAST, "faster"),
        ("onnxruntime", "measured", False, FAST, "faster"),
    ]
    ratios = [row.estimate.ratio for row in section.rows if row.estimate is not None]
    assert ratios == pytest.approx([0.5, 0.25], rel=0.02)
    assert (report.baseline, notes_of(report), report.summary.faster) == ("fast", [], 1)


UNFINISHED = make_unfinished_run()
UNTIMED = replace(UNFINISHED, header=replace(UNFINISHED.header, settings={"measure": False}), rounds=(), finished=True)


@pytest.mark.parametrize(
    ("run", "statuses", "code"),
    [
        (make_small_run(), ["measured", "measured", "same"], ExitCode.OK),
        (UNFINISHED, ["measured", "measured", "same", *["not measured yet"] * 2], ExitCode.CASE_FAILED),
        # What is not there yet is missing once the run is finished, unless it was to time nothing.
        (replace(UNFINISHED, finished=True), ["measured", "measured", "same", *["missing"] * 2], ExitCode.CASE_FAILED),
        (UNTIMED, ["not timed"] * 5, ExitCode.OK),
        (with_cases(make_small_run(), skip="no such device"), ["skipped"] * 3, ExitCode.CASE_FAILED),
    ],
    ids=["finished", "unfinished", "incomplete", "not timed", "all skipped"],
)
def test_statuses_and_exit_code(run: Run, statuses: list[str], code: ExitCode) -> None:
    report = build_report(run)
    assert [row.status for row in report.rows()] == statuses
    assert report.summary.not_timed + report.summary.not_checked == statuses.count("not timed")
    assert report.summary.exit_code == code


def test_one_generation_has_ratios_without_intervals_and_a_note() -> None:
    report = build_report(make_small_run(generations=1))
    fast = row_of(report, "fast")
    assert fast.estimate is not None
    assert (fast.estimate.low, fast.estimate.high, fast.kind) == (None, None, "unclear")
    assert notes_of(report)[0] == "Groups measured in one generation have ratios without intervals."


@pytest.mark.parametrize(("factor", "share"), [(1.04, ""), (1.12, "(+12 %)"), (0.5, "(-50 %)")])
def test_a_run_says_once_where_iree_benchmark_module_disagrees(small_run: Run, factor: float, share: str) -> None:
    def said(run: Run, *times_ns: float) -> str:
        quoted = replace(run, references=(Reference(case=FAST, command=(), real_time_ns=times_ns),))
        return reference_sentence(build_report(quoted))

    time = (row_of(small_run, "fast").latency_ns or 0) * factor
    words = f"says another time than the table in 1 of 1 row {share}. The ratios are"
    assert (words in said(small_run, time, time, 10 * time)) == bool(share)
    noisy = slowed(small_run, {0: 2.0, 1: 0.6, 2: 1.5, 3: 0.7})
    assert not said(noisy, 6e6), "where generations differ that much, so may another process"


def with_accounts(run: Run, **account: Any) -> Run:
    """The run on one thread that had its core for a quarter of the time, unless the account says otherwise."""

    def accounted(turn: Turn, _: int) -> Turn:
        facts = {"on_calling_thread": True, "thread_ns": turn.wall_ns // 4, "voluntary": 0, **account}
        return replace(turn, cpu_ns=turn.wall_ns // 4, account=Account(**facts))

    return with_turns(run, accounted)


def test_a_group_that_other_processes_took_time_from_says_so(small_run: Run) -> None:
    report = build_report(with_accounts(small_run))
    (note,) = notes_of(report)
    assert note.startswith("The machine was busy: other processes took 75 % of the time of what was timed; the ratios")
    (section,) = report.sections
    assert [row.own_ns for row in section.rows] == [pytest.approx((row.latency_ns or 0) / 4) for row in section.rows]
    (note,) = notes_of(build_report(with_accounts(small_run, throttled=1)))
    turns = sum(len(each.turns) for each in small_run.rounds)
    assert note.startswith(f"A container's limit of CPU time stopped {turns} of {turns} turns of mm@local-sync; their")


# --- What rewrites matched ---

FUNC = "--iree-preprocessing-pass-pipeline=builtin.module(func.func(cse))"
REASON = "passes for func.func find nothing, since functions are util.func by then"


def rewrite(matched: int, *, changed: bool = True) -> PluginEffect:
    return PluginEffect(name="fold", matched=matched, changed=changed)


@pytest.mark.parametrize(
    ("effects", "flag", "remarks"),
    [
        ([rewrite(16), rewrite(0, changed=False)], "", ["fold matched 16 places"]),
        ([rewrite(2, changed=False)], "", ["fold matched 2 places, and changed nothing"]),
        ([], FUNC, [REASON]),
        ([], FUNC.replace("func.func(", "util.func("), []),
    ],
)
def test_what_rewrites_matched(effects: list[PluginEffect], flag: str, remarks: list[str]) -> None:
    case = make_case("wide", compile_flags=[flag])
    build = Build(case=case.name, command=(), cache_key="", effects=tuple(effects))
    assert list(effect_remarks(case, build)) == remarks
    assert list(effect_remarks(case, None)) == []
