"""Which changes of a history a bisect over releases can date more closely, and by which command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.history.bisects import RunOfSuite, open_questions, runs_of_suites
from harness.history.events import ChangeEvent
from harness.history.open import open_history
from tests.history.made import make_change, make_night, night_id, store

SUITE = "suites/nightly.toml"
RUNS = {
    "run23": RunOfSuite(suite=SUITE, release="3.11.0", before="3.11.0"),
    "run24": RunOfSuite(suite=SUITE, release="3.12.0", before="3.11.0"),
    "run25": RunOfSuite(suite=SUITE, release="3.13.0", before="3.12.0"),
    "run26": RunOfSuite(suite=SUITE, release="3.13.0", before="3.13.0"),
    "first": RunOfSuite(suite=SUITE, release="3.13.0", before=""),
}
COMMAND = f"harness bisect {SUITE} --case net/stock@cpu --good iree==3.12.0 --bad iree==3.13.0"


def event(*, recent: bool = True, **facts: Any) -> ChangeEvent:
    return ChangeEvent(changes=(make_change(**facts),), recent=recent)


def commands(*events: ChangeEvent) -> list[str]:
    return [question.command for question in open_questions(events, RUNS)]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (event(), [COMMAND]),
        (event(metric="latency-vs-reference"), [COMMAND]),
        (event(metric="compile-time"), [f"{COMMAND} --metric compile-time"]),
        (event(metric="flow/tensor.empty"), [f"{COMMAND} --metric flow/tensor.empty"]),
        # It may have happened a run before the one in which it is seen.
        (event(first_bad="run26", earliest="run25", latest="run26"), [COMMAND]),
        (event(earliest="run23", latest="run24"), [COMMAND.replace("3.12.0", "3.11.0").replace("3.13.0", "3.12.0")]),
        (event(metric="something of later"), []),
        (event(recent=False), []),
        (event(cause="machine"), []),
        (event(kind="drift"), []),
        (event(peer="onnxruntime"), []),
        (event(role="reference"), []),
        (event(earliest="run26", latest="run26"), []),
        (event(earliest="first", latest="first"), []),
        (event(earliest="gone"), []),
    ],
)
def test_steps_that_came_with_another_release_have_a_command(found: ChangeEvent, expected: list[str]) -> None:
    assert commands(found) == expected


def test_each_command_is_there_once_and_not_many_and_first_of_what_fails() -> None:
    assert commands(event(), event(metric="latency-vs-baseline")) == [COMMAND]
    many = [event(case=f"net/v{number}@cpu", direction="faster") for number in range(9)]
    assert commands(*many, event())[0] == COMMAND
    assert len(commands(*many)) == 5


def test_a_run_knows_the_release_of_the_run_before_it(tmp_path: Path) -> None:
    for night, newest in enumerate(("3.13.0", "3.13.0", "3.14.0")):
        store(tmp_path, make_night(night, toolchains=("3.12.0", newest), generations=1, rounds=1))
    with open_history(str(tmp_path)) as history:
        runs = runs_of_suites(history)
    assert [(runs[night_id(night)].before, runs[night_id(night)].release) for night in range(3)] == [
        ("", "3.13.0"),
        ("3.13.0", "3.13.0"),
        ("3.13.0", "3.14.0"),
    ]
