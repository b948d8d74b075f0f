"""What is said of a failure when it happens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.models.model import Model
from harness.records.run import Failure
from harness.stages.failures import FailureNotes, dependent_cases
from tests.builders import Notes, a_model, a_suite, make_artifact, make_case
from tests.stages.conftest import UnderWay

STOCK, FAST, TILED = (make_case(variant) for variant in ("stock", "fast", "tiled"))
BROKEN = Failure(stage="compile", message="it does\nnot compile")
ALONE = Failure(stage="verify", message="nothing to compare its outputs with: the baseline on this device failed")
CRASH = Failure(stage="verify", message="iree-run-module was ended by SIGSEGV")


def test_the_same_words_are_printed_once() -> None:
    notes = Notes()
    failures = FailureNotes(notes)
    failures.case(STOCK, BROKEN)
    failures.case(FAST, BROKEN)
    assert notes.lines == [
        "Failed (compile): net/stock@cpu: it does not compile",
        "Failed (compile): net/fast@cpu: as net/stock@cpu",
    ]


def test_what_the_suite_expects_is_no_news() -> None:
    notes = Notes()
    failures = FailureNotes(notes)
    expected = replace(FAST, expected_failure="not compile")
    failures.case(expected, BROKEN)
    failures.model("net", BROKEN, [expected, expected])
    assert notes.lines == []
    failures.model("net", BROKEN, [STOCK, expected])
    assert notes.lines == ["Failed (compile): net: it does not compile; 1 case fails with it"]


def test_a_baseline_takes_the_cases_along_that_only_it_could_be_checked_with() -> None:
    notes = Notes()
    failures = FailureNotes(notes)
    failures.case(STOCK, BROKEN, 2)
    failures.check(FAST, ALONE, 0)
    failures.check(TILED, CRASH, 0)
    assert notes.lines == [
        "Failed (compile): net/stock@cpu: it does not compile; 2 cases fail with it",
        "Failed (verify): net/tiled@cpu: iree-run-module was ended by SIGSEGV",
    ]


@pytest.mark.parametrize(
    ("model", "onnx", "number"),
    [
        (a_model(), None, 1),
        (a_model(), Path("net.onnx"), 0),
        (a_model(reference="baseline"), Path("net.onnx"), 1),
        (a_model(expected=(Path("right.npy"),)), None, 0),
    ],
)
def test_who_depends_on_a_baseline(
    under_way: UnderWay, tmp_path: Path, model: Model, onnx: Path | None, number: int
) -> None:
    skipped = replace(TILED, skip="not here")
    prepared = under_way.prepared([STOCK, FAST, skipped], a_suite(models=(model,)))
    artifact = replace(make_artifact(tmp_path / "net.mlir", arguments=()), onnx=onnx)
    assert [dependent_cases(prepared, case, artifact) for case in (STOCK, FAST)] == [number, 0]
