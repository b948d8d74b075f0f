"""Cases that fail, by what became of them each night."""

from collections.abc import Collection
from dataclasses import replace

import pytest

from harness.history.failures import FailingCase, failing_cases, failures_tables, failures_verdict
from harness.records.run import Failure, Run
from tests.history.made import InMemory, make_news, make_night, night_id

TILED = "net/tiled@cpu"
WHY = Failure(stage="compile", message="iree-compile exited with 1: cannot tile", stderr="error")

# A letter for what became of a case each night, and how long it fails after the last of six; `-`: not planned.
STATUS = {".": "measured", "x": "failed", "s": "skipped", "e": "expected failure"}
FATES: dict[str, tuple[str, int, bool] | None] = {
    "......": None,
    ".xxxxx": ("run1", 5, False),
    "xxxxxx": ("run0", 6, False),
    ".x.xxx": ("run3", 3, True),
    ".....x": ("run5", 1, True),
    ".xx...": None,
    ".xxsss": None,  # skipped is as if it had not been planned
    ".xxeee": None,  # an expected failure is none
    "----xx": ("run4", 2, True),
    ".xxxx-": None,  # its suite does not have it any more
    ".x-xxx": ("run1", 4, False),
}


def failing(run: Run, names: Collection[str] = (f"{TILED}:3.13.0",), why: Failure = WHY) -> Run:
    """The run, but these cases do not compile."""
    return replace(
        run,
        builds=tuple(
            replace(build, failure=why, module_sha256=None, sizes=None, statistics=None)
            if build.case in names
            else build
            for build in run.builds
        ),
        rounds=tuple(
            replace(timed, turns=tuple(turn for turn in timed.turns if turn.case not in names)) for timed in run.rounds
        ),
    )


def test_where_and_why_a_case_fails_is_that_of_its_last_run() -> None:
    other = replace(WHY, message="another reason")
    runs = [failing(make_night(night), why=other if not night else WHY) for night in range(3)]
    (found,) = failing_cases(InMemory(runs), 10)
    assert (found.suite, found.case, found.toolchain) == ("nightly", TILED, "3.13.0")
    assert (found.since, found.runs, found.recent) == (night_id(0), 3, True)
    assert found.why == "compile: iree-compile exited with 1: cannot tile"


def test_what_became_of_each_of_many_cases() -> None:
    suite = {"suite": "nightly", "machine_class": "AMD EPYC", "finished": True, "clock": "", "cases": 1}
    suite |= dict.fromkeys(("measured", "failed", "missing"), 0)
    runs = [{**suite, "run": f"run{night}", "started": f"2026-01-{night + 1:02}"} for night in range(6)]
    outcome = {"role": "newest", "toolchain": "3.13.0", "stage": "", "message": ""}
    cases = [
        {**outcome, "run": f"run{night}", "case": fate, "status": STATUS[fate[night]]}
        for night in range(6)
        for fate in FATES
        if fate[night] != "-"
    ]
    found = failing_cases(InMemory(tables={"runs": runs, "cases": cases}), 3)
    wanted = {fate: wanted for fate, wanted in FATES.items() if wanted is not None}
    assert {case.case: (case.since, case.runs, case.recent) for case in found} == wanted


@pytest.mark.parametrize(
    ("news", "verdict", "names"),
    [
        ([], "", []),
        ([make_news()], "1 case fails: net/tiled@cpu since run07 (3.13.0): compile: iree-compile exited with 1: cannot "
         "tile.", [["net/tiled@cpu"]]),
        ([*(make_news(case=f"n/{number}", stage="", message="") for number in range(8)),
          make_news(case="n/late", stage="", message="", since="run08")],
         "9 cases fail: n/0 and 7 others since run07 (3.13.0): planned, but not measured; n/late since run08 (3.13.0): "
         "planned, but not measured.",
         [["n/0", "n/1", "n/2", "n/3", "n/4", "and 3 more cases"], ["n/late"]]),
    ],
)  # fmt: skip
def test_cases_that_fail_for_one_cause_are_one_row(
    news: list[FailingCase], verdict: str, names: list[list[str]]
) -> None:
    assert failures_verdict(news) == verdict
    assert [list(cell) for table in failures_tables(news) for cell in table.columns[0].cells] == names
