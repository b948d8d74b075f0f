"""The largest change of a run, as `harness bench` ends with it: which one it is, its cause, and who is asked for it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CaseError
from harness.progress import Progress
from harness.report.run_report import build_report
from harness.stages import change as module
from harness.stages.change import Change, explained, largest_change
from harness.stages.explaining import AskedPair
from harness.stages.options import BenchOptions
from tests.report.builders import FAILS, make_release_run
from tests.report.explanations import make_explanation

RELEASES = ("3.4.0", "3.5.0", "3.6.0")
OPTIONS = BenchOptions(Path("net.mlir"))


def largest(*fates: float | str) -> Change:
    found = largest_change(build_report(make_release_run({"net": list(fates)}, *RELEASES[: len(fates)])))
    assert found is not None
    return found


def test_the_largest_step_between_neighbours_is_told_else_what_fails() -> None:
    found = largest(1.0, 1.2, 3.6)
    assert found.base is not None
    assert (found.is_certain, found.base.toolchain, found.head.toolchain) == (True, "3.5.0", "3.6.0")
    assert found.sentence.startswith("net/stock@local-sync goes from 1.20 ")
    assert " on IREE 3.5.0 to 3.61 " in found.sentence and " (3 times [" in found.sentence
    failed = largest(1.0, FAILS)
    assert failed.base is not None
    assert (failed.is_certain, failed.base.toolchain, failed.head.toolchain) == (False, "3.4.0", "3.5.0")
    same = largest(1.0, 1.0)
    assert (same.is_certain, same.row is not None) == (False, True)


def test_each_release_is_a_side_of_its_own_and_a_cause_that_few_generations_show_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, asked = largest(1.0, 3.0), list[AskedPair]()
    said = make_explanation()
    outcome: list[Any] = ["improved", "inconclusive", "unchanged", CaseError("ir", "no dispatch")]

    def explain(pair: AskedPair, *_: object) -> Any:
        asked.append(pair)
        verdict = outcome.pop(0)
        if isinstance(verdict, CaseError):
            raise verdict
        return replace(said, latency=replace(said.latency, verdict=verdict)), Path("results/x")

    monkeypatch.setattr(module, "explain_and_keep", explain)
    monkeypatch.setattr(module, "toolchains_here", lambda *_: {})
    measured_again = explained(found, OPTIONS, Progress())
    assert measured_again.row is not None and measured_again.row.case == said.case
    causes = [explained(found, OPTIONS, Progress()).cause for _ in range(3)]
    assert "2 convolutions, where the pipeline goes" in causes[0]
    assert causes[1:] == ["measured once more for its cause, both take as long", "why is not known (no dispatch)"]
    (one, *_) = asked
    assert (one.base.label, one.head.label, one.pair.name) == ("iree==3.4.0", "iree==3.5.0", "net/stock@local-sync")
    assert [*one.base.toolchains] == ["3.4.0"] and not one.within
