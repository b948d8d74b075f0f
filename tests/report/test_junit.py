"""JUnit's XML as a parser of CI systems reads it."""

from dataclasses import replace

import pytest
from junitparser import JUnitXml, Properties, TestCase

from harness.errors import ExitCode, UsageError
from harness.records.comparison import Comparison
from harness.records.run import Run
from harness.report import form_of, render
from harness.report.run_report import build_report
from tests.report.builders import (
    NASTY,
    make_comparison,
    make_full_comparison,
    make_full_run,
    make_nasty_comparison,
    make_small_run,
    make_timed,
    make_unfinished_run,
    with_cases,
)
from tests.report.explanations import make_explanation

SKIPPED = replace(make_small_run(), builds=(), rounds=())
SKIPPED = with_cases(SKIPPED, "stock", "fast", "inert", skip="no Vulkan device was found")
REGRESSED = make_timed("mm/stock@cpu", 4, 1.2, "regressed")
ALLOWED, BEYOND = replace(REGRESSED, gate="passed"), replace(REGRESSED, verdict="unchanged", gate="violated")


def read(source: Run | Comparison) -> dict[str, TestCase]:
    (suite,) = JUnitXml.fromstring(render(source, "junit").encode())
    found = {f"{test.classname} {test.name}": test for test in suite}
    wrong = [test for test in found.values() if test.is_failure or test.is_error]
    assert (len(found), len(wrong)) == (suite.tests, suite.failures + suite.errors), "names are unique, and counted"
    return found


def outcomes(source: Run | Comparison) -> dict[str, str]:
    return {name: test.result[0].type if test.result else "passed" for name, test in read(source).items()}


def test_each_case_is_a_test_with_what_became_of_it() -> None:
    found = outcomes(make_full_run())
    assert {name.removeprefix("esrgan.rdb ").removesuffix("@local-sync"): what for name, what in found.items()} == {
        **dict.fromkeys(("stock", "channels-last", "im2col", "data-tiling", "fuse-padding"), "passed"),
        **dict.fromkeys(("aggressive-im2col", "loop-peeling", "shared-concat"), "passed"),
        **dict.fromkeys(("esrgan.matmul-512 stock@local-task", "esrgan.matmul-512 data-tiling@local-task"), "passed"),
        "wide-vectors": "compile",
        "pixel-shuffle": "verify",
        "ukernels": "measure",
        "forgotten": "missing",
        "strided": "expected failure",
        "onnx-if": "works now",
        "stock@vulkan": "skipped",
    }


def test_a_test_says_what_it_took_and_how_to_repeat_it() -> None:
    found, report = read(make_full_run()), build_report(make_full_run())
    rows = {row.variant: row for row in report.rows() if row.device == "local-sync"}
    last, wide = (found[f"esrgan.rdb {name}@local-sync"] for name in ("channels-last", "wide-vectors"))
    assert rows["channels-last"].latency_ns == pytest.approx(last.time * 1e9)
    properties = last.child(Properties)  # type: ignore[no-untyped-call]
    facts = {fact.name: fact.value for fact in properties}
    assert (
        facts.items() >= {"toolchain": "3.13.0", "dispatches": str(rows["channels-last"].figure("dispatches"))}.items()
    )
    assert wide.result[0].message == rows["wide-vectors"].remarks[0]
    assert "\n".join(rows["wide-vectors"].repro) in wide.result[0].text


@pytest.mark.parametrize(
    "source",
    [
        *(make_small_run(), make_small_run(generations=1), make_unfinished_run(), SKIPPED),
        *(make_full_comparison(), make_comparison([]), make_nasty_comparison()),
        *(make_comparison([row]) for row in (REGRESSED, ALLOWED, BEYOND, replace(REGRESSED, verdict="inconclusive"))),
    ],
)
def test_something_is_wrong_where_the_exit_status_says_so(source: Run | Comparison) -> None:
    shown = build_report(source) if isinstance(source, Run) else source
    wrong = any(test.is_failure or test.is_error for test in read(source).values())
    assert wrong == (form_of(shown).exit_status(shown) is not ExitCode.OK)


def test_rows_are_tests_and_undecided_ones_are_no_failures() -> None:
    undecided = replace(REGRESSED, verdict="inconclusive", metric="compile-time", stderr=f"{NASTY}\x00\ufffe\ud800")
    found = read(make_comparison([REGRESSED, undecided]))
    suite = next(iter(found)).partition(".")[0]
    assert [name.removeprefix(f"{suite}.mm ") for name in found] == ["stock@cpu", "stock@cpu compile-time"]
    assert outcomes(make_comparison([REGRESSED, undecided]))[f"{suite}.mm stock@cpu"] == "regressed"
    assert found[f"{suite}.mm stock@cpu"].time == pytest.approx(4.8e-3)
    assert found[f"{suite}.mm stock@cpu compile-time"].is_skipped


def test_what_has_no_verdicts_is_refused() -> None:
    with pytest.raises(UsageError, match="an explanation has nothing that passes or fails"):
        render(make_explanation(), "junit")
