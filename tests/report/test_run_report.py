"""Every planned case becomes one row that says what became of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from harness.errors import ExitCode
from harness.records.run import Build, Failure, ModelRecord, Reference, Run, Turn
from harness.report.outcome import exit_code
from harness.report.run_report import Report, build_report
from harness.report.run_rows import Row


def row_of(report: Report, variant: str, group: str = "") -> Row:
    return next(row for row in report.rows() if row.variant == variant and (not group or row.group == group))


def with_turns(run: Run, change: dict[str, int]) -> Run:
    """The run with another wall time for all turns of some cases."""

    def changed(turn: Turn) -> Turn:
        return replace(turn, wall_ns=change[turn.case]) if turn.case in change else turn

    return replace(run, rounds=tuple(replace(one, turns=tuple(map(changed, one.turns))) for one in run.rounds))


def without(run: Run, case: str) -> Run:
    """The run as if a case had never been measured."""

    def left(turns: Iterable[Turn]) -> tuple[Turn, ...]:
        return tuple(turn for turn in turns if turn.case != case)

    return replace(run, rounds=tuple(replace(one, turns=left(one.turns)) for one in run.rounds))


def test_sections_and_rows_keep_the_plans_order(full_run: Run) -> None:
    report = build_report(full_run)
    assert [section.group for section in report.sections] == ["rdb@local-sync", "rdb@vulkan", "matmul-512@local-task"]
    assert [row.case for row in report.rows()] == [case.name for case in full_run.header.cases]
    assert report.sections[0].rounds == (8, 8, 8, 8, 8)
    assert report.sections[0].call == "main(1x64x90x62xf32 random seed 0)"


def test_every_status_and_kind(full_run: Run) -> None:
    report = build_report(full_run)
    rows = [(row.variant, row.status, row.kind) for row in report.sections[0].rows]
    assert rows == [
        ("stock", "measured", None),
        ("channels-last", "measured", "faster"),
        ("im2col", "measured", "same"),
        ("data-tiling", "same", "same"),
        ("fuse-padding", "measured", "slower"),
        ("shared-concat", "measured", "faster"),
        ("aggressive-im2col", "same", "same"),
        ("wide-vectors", "failed", None),
        ("pixel-shuffle", "failed", None),
        ("ukernels", "failed", None),
        ("strided", "expected failure", None),
        ("onnx-if", "measured", "same"),
        ("loop-peeling", "measured", "unclear"),
        ("forgotten", "missing", None),
    ]
    assert row_of(report, "stock", "rdb@vulkan").status == "skipped"
    summary = report.summary
    assert summary.planned == 17
    assert (summary.measured, summary.same, summary.failed, summary.expected_failures) == (9, 2, 3, 1)
    assert (summary.skipped, summary.missing, summary.works_again) == (1, 1, 1)
    assert (summary.faster, summary.slower, summary.unchanged, summary.unclear) == (3, 1, 2, 1)


def test_figures_are_those_of_the_records(full_run: Run) -> None:
    row = row_of(build_report(full_run), "channels-last")
    per_generation = [
        np.median(
            [
                turn.wall_ns
                for one in full_run.rounds
                for turn in one.turns
                if turn.case == row.case and one.generation == g
            ]
        )
        for g in range(5)
    ]
    assert row.latency_ns == np.median(per_generation)
    assert (row.latency_low_ns, row.latency_high_ns) == (min(per_generation), max(per_generation))
    assert (row.generations, row.rounds) == (5, 40)
    assert row.estimate is not None
    assert row.estimate.ratio == pytest.approx(132 / 220, rel=0.01)
    assert (row.dispatches, row.copies, row.fills, row.transient_bytes) == (14, 13, 5, 16_742_912)
    assert (row.module_bytes, row.dispatch_bytes) == (938_345, 126_000)
    assert (row.compile_ns, row.peak_rss_bytes) == (2_870_000_000, 310 * 2**20)
    assert row.instructions_per_call == pytest.approx(132e6 * 3.1, rel=1e-6)
    assert (row.reference_ns, row.host_peak_bytes, row.device_peak_bytes) == (171e6, 21_004_288, 0)


def test_equal_modules_share_the_figures_of_the_case_that_was_measured(full_run: Run) -> None:
    report = build_report(full_run)
    stock, inert = row_of(report, "stock"), row_of(report, "data-tiling")
    assert (inert.same_as, inert.latency_ns, inert.estimate) == ("stock", stock.latency_ns, None)
    assert inert.remarks == ("inert: this flag changes nothing here (same module as stock)",)
    im2col, twin = row_of(report, "im2col"), row_of(report, "aggressive-im2col")
    assert (twin.same_as, twin.latency_ns, twin.estimate) == ("im2col", im2col.latency_ns, im2col.estimate)
    assert twin.remarks == ("same module as im2col",)


def test_an_equal_module_with_other_run_flags_is_a_case_of_its_own(small_run: Run) -> None:
    cases = tuple(
        replace(case, run_flags=("--task_topology_max_group_count=1",)) if case.variant == "inert" else case
        for case in small_run.header.cases
    )
    report = build_report(replace(small_run, header=replace(small_run.header, cases=cases)))
    assert row_of(report, "inert").status == "missing"


def test_an_equal_module_that_was_measured_anyway_shows_its_own_figures(small_run: Run) -> None:
    fast, inert = (row.case for row in build_report(small_run).rows() if not row.baseline)
    rounds = tuple(
        replace(one, turns=tuple(replace(turn, case=inert) if turn.case == fast else turn for turn in one.turns))
        for one in small_run.rounds
    )
    row = row_of(build_report(replace(small_run, rounds=rounds)), "inert")
    assert (row.status, row.same_as, row.kind) == ("same", "stock", "same")
    assert row.latency_ns is not None
    assert row.estimate is None  # equal code under one runtime is equally fast, whatever its turns say


def test_a_variant_that_adds_no_single_flag_is_not_blamed_on_a_flag(small_run: Run) -> None:
    cases = tuple(
        replace(case, compile_flags=(*case.compile_flags, "--one-more"), plugins=("fold",))
        if case.variant == "inert"
        else case
        for case in small_run.header.cases
    )
    report = build_report(replace(small_run, header=replace(small_run.header, cases=cases)))
    assert row_of(report, "inert").remarks == ("inert: this variant changes nothing here (same module as stock)",)


def test_failures_say_their_stage_and_keep_what_the_tool_said(full_run: Run) -> None:
    report = build_report(full_run)
    wide = row_of(report, "wide-vectors")
    assert wide.remarks[0].startswith("failed at compile: iree-compile exited with status 1: model.mlir:14:12: error:")
    assert wide.failure is not None
    assert "tensor<32x64x3x3xf32>" in wide.failure.stderr
    wrong = row_of(report, "pixel-shuffle")
    assert wrong.remarks[0].startswith("wrong output: its output 0 differs in 302,481 of 357,120 values")
    assert wrong.remarks[0].endswith("compared with ONNX Runtime 1.31.1 (allowed: 1e-05 + 0.0001 of each value)")
    assert (wrong.latency_ns, wrong.dispatches) == (None, 10)
    crash = row_of(report, "ukernels")
    assert crash.remarks == ("failed at measure: the worker ended by signal 11 while loading the module",)


def with_wrong_outputs_expected(run: Run, *variants: str) -> Run:
    cases = tuple(replace(case, expected_mismatch=case.variant in variants) for case in run.header.cases)
    return replace(run, header=replace(run.header, cases=cases))


def test_wrong_outputs_that_were_expected_are_no_failure(full_run: Run) -> None:
    report = build_report(with_wrong_outputs_expected(full_run, "pixel-shuffle"))
    row = row_of(report, "pixel-shuffle")
    assert (row.status, row.latency_ns) == ("expected failure", None)
    assert row.remarks[0].startswith("expected to fail: wrong output: its output 0 differs in 302,481 of 357,120")
    before = build_report(full_run).summary
    assert report.summary.failed == before.failed - 1
    assert report.summary.expected_failures == before.expected_failures + 1


def test_wrong_outputs_are_expected_but_something_else_happens(full_run: Run) -> None:
    report = build_report(with_wrong_outputs_expected(full_run, "wide-vectors", "channels-last"))
    broken, fine = row_of(report, "wide-vectors"), row_of(report, "channels-last")
    assert (broken.status, broken.remarks[1]) == ("failed", "expected to give wrong outputs instead")
    assert (fine.status, fine.remarks[0]) == ("measured", "expected to give wrong outputs, but works now")
    assert report.summary.works_again == build_report(full_run).summary.works_again + 1


def test_that_wrong_outputs_are_right_now_can_only_be_told_where_they_are_compared(full_run: Run) -> None:
    checks = tuple(one for one in full_run.checks if one.case != "rdb/channels-last@local-sync")
    report = build_report(with_wrong_outputs_expected(replace(full_run, checks=checks), "channels-last"))
    row = row_of(report, "channels-last")
    assert row.remarks[0] == (
        "expected to give wrong outputs, which cannot be told: there is nothing to compare them with"
    )
    assert report.summary.works_again == build_report(full_run).summary.works_again


def test_expected_failures_are_told_apart_by_their_message(full_run: Run) -> None:
    report = build_report(full_run)
    assert row_of(report, "strided").remarks[0].startswith("expected to fail: failed at compile: iree-compile exited")
    assert row_of(report, "onnx-if").remarks[0] == 'expected to fail with "onnx.If", but works now'
    cases = tuple(
        replace(case, expected_failure="another message") if case.variant == "strided" else case
        for case in full_run.header.cases
    )
    other = row_of(build_report(replace(full_run, header=replace(full_run.header, cases=cases))), "strided")
    assert other.status == "failed"
    assert other.remarks[1] == 'expected to fail with "another message" instead'


def test_a_model_that_cannot_be_made_fails_all_its_cases(small_run: Run) -> None:
    failure = Failure(stage="model", message="iree-import-onnx exited with status 1: no such operator")
    model = ModelRecord(name="mm", mlir_sha256="", mlir_bytes=0, function="", inputs=(), failure=failure)
    builds = tuple(Build(case=case.name, command=(), cache_key="", failure=failure) for case in small_run.header.cases)
    report = build_report(
        replace(small_run, header=replace(small_run.header, models=(model,)), builds=builds, rounds=())
    )
    assert {row.status for row in report.rows()} == {"failed"}
    assert {row.remarks for row in report.rows()} == {
        ("failed at model: iree-import-onnx exited with status 1: no such operator",)
    }
    assert {row.repro for row in report.rows()} == {()}
    assert report.sections[0].call == ""


def test_the_twin_of_a_lost_case_is_lost_with_it(full_run: Run) -> None:
    lost = replace(full_run.lost[0], case="rdb/im2col@local-sync")
    row = row_of(build_report(replace(without(full_run, lost.case), lost=(lost,))), "aggressive-im2col")
    assert row.status == "failed"
    assert row.remarks[0].startswith("same module as im2col: failed at measure: the worker ended by signal 11")


def test_without_its_baseline_a_group_has_latencies_and_no_ratios(small_run: Run) -> None:
    report = build_report(without(small_run, "mm/stock@local-sync"))
    fast = row_of(report, "fast")
    assert (fast.status, fast.kind, fast.estimate) == ("measured", None, None)
    assert fast.latency_ns is not None
    assert report.notes == ("No ratios for mm@local-sync: its baseline, stock, was not measured.",)


def test_what_is_not_there_yet_is_missing_only_once_the_run_is_finished(unfinished_run: Run) -> None:
    statuses = [row.status for row in build_report(unfinished_run).rows()]
    assert statuses == ["measured", "measured", "same", "not measured yet", "not measured yet"]
    statuses = [row.status for row in build_report(replace(unfinished_run, finished=True)).rows()]
    assert statuses == ["measured", "measured", "same", "missing", "missing"]


def test_a_run_that_was_to_time_nothing_misses_nothing(unfinished_run: Run) -> None:
    header = replace(unfinished_run.header, settings={**unfinished_run.header.settings, "measure": False})
    report = build_report(replace(unfinished_run, header=header, rounds=(), finished=True))

    assert {row.status for row in report.rows()} == {"not timed"}
    assert report.summary.not_timed == report.summary.planned
    assert exit_code(report.summary) == ExitCode.OK


def test_one_generation_has_ratios_without_intervals_and_a_note(one_generation_run: Run) -> None:
    report = build_report(one_generation_run)
    fast = row_of(report, "fast")
    assert fast.estimate is not None
    assert (fast.estimate.low, fast.estimate.high, fast.kind) == (None, None, "unclear")
    assert report.notes[0].startswith("Groups measured in one generation have ratios without intervals")


def test_turns_without_time_are_told(small_run: Run) -> None:
    row = row_of(build_report(with_turns(small_run, {"mm/fast@local-sync": 0})), "fast")
    assert row.status == "missing"
    first, *others = small_run.rounds
    broken = with_turns(replace(small_run, rounds=(first,)), {"mm/fast@local-sync": 0})
    row = row_of(build_report(replace(small_run, rounds=(*broken.rounds, *others))), "fast")
    assert row.remarks == ("1 turn without time on the clock left out",)


def test_a_case_that_missed_generations_says_so(small_run: Run) -> None:
    late = without(replace(small_run, rounds=small_run.rounds[:20]), "mm/fast@local-sync")
    row = row_of(build_report(replace(small_run, rounds=(*late.rounds, *small_run.rounds[20:]))), "fast")
    assert row.remarks == ("measured in 3 of 5 generations",)


@pytest.mark.parametrize(
    ("factor", "remark"),
    [(1.04, None), (0.97, None), (1.12, "says 4.73 ms (+12 %)"), (0.5, "(-50 %)")],
)
def test_iree_benchmark_module_is_quoted_where_it_disagrees(small_run: Run, factor: float, remark: str | None) -> None:
    latency = row_of(build_report(small_run), "fast").latency_ns
    assert latency is not None
    times = (latency * factor, latency * factor, 10 * latency)
    reference = Reference(case="mm/fast@local-sync", command=(), real_time_ns=times)
    row = row_of(build_report(replace(small_run, references=(reference,))), "fast")
    assert row.reference_ns == latency * factor
    assert len(row.remarks) == (remark is not None)
    assert remark is None or remark in row.remarks[0]


def _slowed(run: Run, factors: dict[int, float]) -> Run:
    """The run as if some of its generations had been slower."""
    return replace(
        run,
        rounds=tuple(
            replace(
                one,
                turns=tuple(
                    replace(turn, wall_ns=int(turn.wall_ns * factors.get(one.generation, 1.0))) for turn in one.turns
                ),
            )
            for one in run.rounds
        ),
    )


def test_noisy_generations_make_a_disagreement_less_remarkable_but_a_single_odd_one_does_not(small_run: Run) -> None:
    reference = Reference(case="mm/fast@local-sync", command=(), real_time_ns=(6e6,))
    quoted = replace(small_run, references=(reference,))
    assert row_of(build_report(quoted), "fast").remarks
    assert row_of(build_report(_slowed(quoted, {0: 2.0})), "fast").remarks
    noisy = _slowed(quoted, {0: 2.0, 1: 0.6, 2: 1.5, 3: 0.7})
    assert not row_of(build_report(noisy), "fast").remarks


def test_a_pinned_group_that_did_not_have_its_core_says_so(small_run: Run) -> None:
    cases = tuple(replace(case, pin=True) for case in small_run.header.cases)
    pinned = replace(small_run, header=replace(small_run.header, cases=cases))
    assert not build_report(pinned).notes
    busy = _slowed(pinned, dict.fromkeys(range(5), 2.0))
    (note,) = build_report(busy).notes
    assert "its process had its core 50 % of the time" in note


def test_useless_reference_times_are_ignored(small_run: Run) -> None:
    reference = Reference(case="mm/fast@local-sync", command=(), real_time_ns=(math.nan, 0.0, math.inf))
    assert row_of(build_report(replace(small_run, references=(reference,))), "fast").reference_ns is None


def test_a_failed_reference_does_not_undo_a_measurement(full_run: Run) -> None:
    row = row_of(build_report(full_run), "im2col")
    assert row.status == "measured"
    assert row.remarks == ("iree-benchmark-module failed: iree-benchmark-module ran for longer than 60 s",)
    row = row_of(build_report(without(full_run, row.case)), "im2col")
    assert (row.status, row.remarks[0]) == (
        "failed",
        "failed at reference: iree-benchmark-module ran for longer than 60 s",
    )


def test_a_later_record_of_a_case_replaces_an_earlier_one(small_run: Run) -> None:
    earlier = replace(small_run.builds[1], failure=Failure(stage="compile", message="stopped after 900 s"))
    assert row_of(build_report(replace(small_run, builds=(earlier, *small_run.builds))), "fast").status == "measured"


def test_exit_code_is_zero_only_where_everything_planned_was_measured(
    small_run: Run, full_run: Run, unfinished_run: Run
) -> None:
    assert exit_code(build_report(small_run).summary) == ExitCode.OK
    assert exit_code(build_report(full_run).summary) == ExitCode.CASE_FAILED
    assert exit_code(build_report(unfinished_run).summary) == ExitCode.CASE_FAILED
    skipped = tuple(replace(case, skip="no such device") for case in small_run.header.cases)
    nothing = build_report(replace(small_run, header=replace(small_run.header, cases=skipped)))
    assert exit_code(nothing.summary) == ExitCode.CASE_FAILED
