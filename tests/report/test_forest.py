"""Which rows of a comparison a forest shows, in which order, and what it says of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.records.comparison import Comparison, Row
from harness.records.run import Run
from harness.report.forest import Forest, ForestRow, forest_of
from harness.report.run_changes import forest_of_run
from harness.report.run_report import build_report
from tests.report.compared import make_comparison, make_row, make_side, make_timed
from tests.report.made import make_build, make_case, make_header, make_rounds


def rows_of(*rows: Row, **given: Any) -> list[ForestRow]:
    return list(forest_of(make_comparison(rows), **given).rows())


def labels(*rows: Row, **given: Any) -> list[str]:
    return [row.label for row in rows_of(*rows, **given)]


def test_latency_comes_first_then_compile_time_then_the_rest(full_comparison: Comparison) -> None:
    forest = forest_of(full_comparison)
    assert [block.title for block in forest.blocks] == [
        "Median Latency",
        "Compilation Time",
        "Transient Memory",
        "Copies",
        "Dispatch Count",
        "Instructions",
    ]
    assert forest.rest == "Not drawn: 1 new, 1 unchanged, 2 identical."


def test_changes_come_first_the_largest_on_top() -> None:
    assert labels(
        make_timed("a/v@d", 1.0, 1.0, "unchanged"),
        make_timed("b/v@d", 1.0, 1.3, "inconclusive"),
        make_timed("c/v@d", 1.0, 1.05, "regressed"),
        make_timed("d/v@d", 1.0, 0.5, "improved"),
        make_row("e/v@d", verdict="failed"),
    ) == ["d/v@d", "c/v@d", "e/v@d", "b/v@d", "a/v@d"]


def test_rows_of_one_model_and_device_stand_together() -> None:
    forest = forest_of(
        make_comparison(
            [
                make_timed("rdb/a@cpu", 1.0, 1.02, "regressed"),
                make_timed("mm/a@cpu", 1.0, 1.3, "regressed"),
                make_timed("rdb/b@cpu", 1.0, 1.5, "regressed"),
                make_timed("mm/b@cpu", 1.0, 1.1, "regressed"),
            ]
        )
    )
    assert [(group.title, [row.label for row in group.rows]) for group in forest.blocks[0].groups] == [
        ("rdb @ cpu", ["b", "a"]),
        ("mm @ cpu", ["a", "b"]),
    ]


def test_two_cases_of_one_variant_have_their_whole_names() -> None:
    facts = {"model": "rdb", "variant": "stock", "device": "cpu"}
    rows = [make_timed(f"rdb/stock@cpu:{version}", 1.0, 1.2, "regressed", **facts) for version in ("3.12.0", "3.13.0")]
    assert labels(*rows) == ["rdb/stock@cpu:3.12.0", "rdb/stock@cpu:3.13.0"]


def test_what_is_known_to_be_equal_is_counted_and_not_drawn() -> None:
    forest = forest_of(
        make_comparison(
            [
                make_row("a/v@d", verdict="identical"),
                make_row("a/v@d", "dispatches", base_value=14, head_value=14),
                make_timed("b/v@d", 1.0, 1.001, "unchanged", control=True),
            ]
        )
    )
    assert not forest.has_ratios
    assert forest.rest == "Not drawn: 1 unchanged, 1 identical."


def test_only_so_many_and_of_those_that_failed_only_a_few() -> None:
    rows = [make_row(f"f{n}/v@d", verdict="failed") for n in range(9)]
    rows += [make_timed(f"m{n}/v@d", 1.0, 1.1, "inconclusive") for n in range(9)]
    forest = forest_of(make_comparison(rows), top=8)
    assert [row.word for row in forest.rows()] == ["failed"] * 5 + ["inconclusive"] * 3
    assert forest.rest == "Not drawn: 6 inconclusive, 4 failed."


def test_from_nothing_to_something_is_beyond_every_axis() -> None:
    (row,) = rows_of(make_row("m/v@d", "copies", "regressed", base_value=0, head_value=3, ratio=None))
    assert row.beyond == "right"
    assert (row.ratio, row.figure, row.values) == (None, "from nothing", "0 → 3")


def test_from_something_to_nothing_is_beyond_the_other_end_and_comes_first() -> None:
    rows = rows_of(
        make_row("a/v@d", "copies", "improved", base_value=13, head_value=4),
        make_row("b/v@d", "copies", "improved", base_value=13, head_value=0),
    )
    assert [(row.label, row.beyond, row.figure, row.values) for row in rows] == [
        ("b/v@d", "left", "0", "13 → 0"),
        ("a/v@d", None, "0.308", "13 → 4"),
    ]


def test_what_is_counted_needs_no_interval() -> None:
    counted, timed = (
        make_row("m/v@d", "copies", "improved", base_value=2, head_value=1),
        make_timed("m/v@d", 1, 2, "regressed"),
    )
    assert [row.exact for row in rows_of(counted, timed)] == [False, True]


def test_a_violated_gate_is_remarked_whatever_the_verdict() -> None:
    (row,) = rows_of(make_timed("m/v@d", 1.0, 1.004, "unchanged", gate="violated"))
    assert (row.remark, row.tone) == ("gate violated", "same")


def test_intervals_that_a_logarithm_cannot_hold_reach_to_the_end() -> None:
    (row,) = rows_of(make_timed("m/v@d", 1.0, 1.02, "inconclusive", ci_low=-0.5, ci_high=2.0))
    assert row.low is not None
    assert 0 < row.low < 1e-200


def test_figures_that_are_no_numbers_are_left_out(nasty_comparison: Comparison) -> None:
    forest = forest_of(nasty_comparison)
    assert "a|`b` <script>" in forest.title
    assert all(row.ratio is None or 0 < row.ratio < float("inf") for row in forest.rows())


def test_a_run_is_named_by_its_id() -> None:
    side = make_side("/home/me/results/20261121-1-esrgan/", "3.13.0", run="20261121-1-esrgan")
    assert forest_of(make_comparison([], head=side)).title == "esrgan: 20261121-1-esrgan against iree==3.12.0"


def variants_run() -> Run:
    stock, fast, slow = make_case("mm", "stock"), make_case("mm", "tiled"), make_case("mm", "slow")
    peer = make_case("mm", "onnxruntime", peer="onnxruntime", toolchain="")
    times = {stock.name: 9e6, fast.name: 4e6, slow.name: 12e6, peer.name: 3e6}
    return Run(
        header=make_header((stock, fast, slow, peer)),
        builds=tuple(
            make_build(case, code=code, dispatches=1, copies=0, transient=0)
            for case, code in ((stock, "57"), (fast, "fa"), (slow, "51"))
        ),
        rounds=tuple(make_rounds(stock.group, times, generations=4, rounds=3)),
        finished=True,
    )


def of_variants() -> Forest:
    return forest_of_run(build_report(variants_run()))


def test_variants_and_peers_against_the_baseline_the_largest_first() -> None:
    (block,) = of_variants().blocks
    assert [(row.label, row.word, row.tone, row.peer) for row in block.rows] == [
        ("onnxruntime", "faster", "better", True),
        ("tiled", "faster", "better", False),
        ("slow", "slower", "worse", False),
    ]
    assert block.values == "baseline → variant, ms"
    assert block.rows[1].values.startswith("9.0")
    assert block.rows[1].low is not None


def test_one_generation_gives_ratios_without_intervals() -> None:
    run = variants_run()
    short = replace(run, rounds=tuple(one for one in run.rounds if one.generation == 0))
    found = forest_of_run(build_report(short))
    assert {row.tone for row in found.rows()} == {"open"}
    assert all(row.low is None for row in found.rows())


def test_only_cases_that_are_wanted_and_only_so_many() -> None:
    report = build_report(variants_run())
    assert [row.label for row in forest_of_run(report, keep=lambda case: "slow" in case).rows()] == [
        "mm/slow@local-sync"
    ]
    cut = forest_of_run(report, top=1)
    assert len(list(cut.rows())) == 1
    assert cut.rest == "Not drawn: 1 faster, 1 slower."


def test_a_run_without_measurements_has_none(full_run: Run) -> None:
    assert not forest_of_run(build_report(replace(full_run, rounds=()))).has_ratios


def test_the_rest_is_counted_by_what_became_of_it(full_run: Run) -> None:
    found = forest_of_run(build_report(full_run))
    assert found.has_ratios
    assert found.title == "esrgan: variants against stock"
    assert found.rest.startswith("Not drawn: ")
