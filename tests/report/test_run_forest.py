"""A run's variants against its baseline, as a forest."""

from __future__ import annotations

from dataclasses import replace

from harness.records.run import Run
from harness.report.forest import Forest
from harness.report.run_forest import forest_of_run
from harness.report.table import build_report
from tests.report.made import make_build, make_case, make_header, make_rounds


def make_run() -> Run:
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


def forest() -> Forest:
    return forest_of_run(build_report(make_run()))


def test_variants_and_peers_against_the_baseline_the_largest_first() -> None:
    (block,) = forest().blocks
    assert [(row.label, row.word, row.tone, row.peer) for row in block.rows] == [
        ("onnxruntime", "faster", "better", True),
        ("tiled", "faster", "better", False),
        ("slow", "slower", "worse", False),
    ]
    assert block.values == "baseline → variant, ms"
    assert block.rows[1].values.startswith("9.0")
    assert block.rows[1].low is not None


def test_one_generation_gives_ratios_without_intervals() -> None:
    run = make_run()
    short = replace(run, rounds=tuple(one for one in run.rounds if one.generation == 0))
    found = forest_of_run(build_report(short))
    assert {row.tone for row in found.rows()} == {"open"}
    assert all(row.low is None for row in found.rows())


def test_only_cases_that_are_wanted_and_only_so_many() -> None:
    report = build_report(make_run())
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
