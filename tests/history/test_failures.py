"""Cases that fail, work again or are new, by what became of them each night."""

from collections.abc import Collection
from dataclasses import replace

from harness.history.failures import CaseNews, case_news
from harness.records.run import Failure, Run
from tests.history.made import InMemory, make_night, night_id

TILED = "net/tiled@cpu"
WHY = Failure(stage="compile", message="iree-compile exited with 1: cannot tile", stderr="error")

# A letter for what became of a case each night, and what of it is news after the last of six; `-`: not planned.
STATUS = {".": "measured", "x": "failed", "s": "skipped", "e": "expected failure"}
FATES: dict[str, tuple[str, str, int, bool] | None] = {
    "......": None,
    ".xxxxx": ("fails", "run1", 5, False),
    "xxxxxx": ("fails", "run0", 6, False),
    ".x.xxx": ("fails", "run3", 3, True),
    ".....x": ("fails", "run5", 1, True),
    ".xx...": ("works again", "run3", 3, True),
    ".xxsss": None,  # skipped is as if it had not been planned
    ".xxs.s": None,
    ".xs.s.": ("works again", "run3", 2, True),
    ".xxeee": None,  # an expected failure is none, and does not work either
    ".x....": None,  # it works for longer than the last three runs
    "---...": ("new", "run3", 3, True),
    "--....": None,
    "----xx": ("fails", "run4", 2, True),
    ".xxxx-": None,  # its suite does not have it any more
    ".x-xxx": ("fails", "run1", 4, False),
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


def night(number: int) -> Run:
    return make_night(number, generations=2, rounds=2)


def news_of(*runs: Run) -> list[CaseNews]:
    return case_news(InMemory(runs), 10)


def test_where_and_why_a_case_fails_is_that_of_its_last_run() -> None:
    other = replace(WHY, message="another reason")

    (news,) = news_of(failing(night(0), why=other), failing(night(1)), failing(night(2)))

    assert (news.suite, news.case, news.toolchain) == ("nightly", TILED, "3.13.0")
    assert (news.state, news.since, news.runs, news.recent) == ("fails", night_id(0), 3, True)
    assert (news.stage, news.message) == ("compile", WHY.message)
    assert news.started.startswith("2026-01-01T02:00")


def test_a_case_that_never_came_is_missing_and_fails() -> None:
    bad = night(1)
    rounds = [
        replace(timed, turns=tuple(turn for turn in timed.turns if TILED not in turn.case)) for timed in bad.rounds
    ]

    (news,) = news_of(night(0), replace(bad, rounds=tuple(rounds)))

    assert (news.state, news.since, news.stage, news.message) == ("fails", night_id(1), "", "")


def history_of(fates: Collection[str]) -> InMemory:
    """A history of one suite in which each of these became of the case that it names."""
    nights = range(len(next(iter(fates))))
    suite = {"suite": "nightly", "machine_class": "AMD EPYC", "finished": True, "clock": "", "cases": 1}
    suite |= dict.fromkeys(("measured", "failed", "missing"), 0)
    runs = [{**suite, "run": f"run{night}", "started": f"2026-01-{night + 1:02}"} for night in nights]
    outcome = {"role": "newest", "toolchain": "3.13.0", "stage": "", "message": ""}
    cases = [
        {**outcome, "run": f"run{night}", "case": fate, "status": STATUS[fate[night]]}
        for night in nights
        for fate in fates
        if fate[night] != "-"
    ]
    return InMemory(tables={"runs": runs, "cases": cases})


def test_what_became_of_each_of_many_cases() -> None:
    news = case_news(history_of(FATES), 3)

    found = {case.case: (case.state, case.since, case.runs, case.recent) for case in news}
    assert found == {fate: wanted for fate, wanted in FATES.items() if wanted is not None}
    assert [case.state for case in news] == ["fails"] * 6 + ["works again"] * 2 + ["new"]
