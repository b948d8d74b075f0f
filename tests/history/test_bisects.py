"""Which changes of a history a bisect over releases can date more closely, and by which command."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.history.bisects import RunOfSuite, bisect_commands
from harness.history.events import ChangeEvent
from harness.store.marks import Acknowledgement
from tests.history.made import make_change

RUNS = {
    "run24": RunOfSuite(suite="suites/nightly.toml", release="3.12.0"),
    "run25": RunOfSuite(suite="suites/nightly.toml", release="3.13.0"),
    "run26": RunOfSuite(suite="suites/nightly.toml", release="3.13.0"),
}
COMMAND = "harness bisect suites/nightly.toml --case net/stock@cpu --good iree==3.12.0 --bad iree==3.13.0"


def event(*, recent: bool = True, **facts: Any) -> ChangeEvent:
    return ChangeEvent(changes=(make_change(**facts),), recent=recent)


@pytest.mark.parametrize(
    ("found", "commands"),
    [
        (event(), [COMMAND]),
        (event(metric="latency-vs-reference"), [COMMAND]),
        (event(metric="compile-time"), [f"{COMMAND} --metric compile-time"]),
        (event(metric="flow/tensor.empty"), [f"{COMMAND} --metric flow/tensor.empty"]),
        (event(metric="something of later"), []),
        (event(recent=False), []),
        (event(cause="machine"), []),
        (event(kind="drift"), []),
        (event(peer="onnxruntime"), []),
        (event(role="reference"), []),
        (event(last_good="run25", first_bad="run26"), []),
        (event(last_good="gone"), []),
    ],
)
def test_steps_that_came_with_another_release_have_a_command(found: ChangeEvent, commands: list[str]) -> None:
    assert bisect_commands([found], RUNS) == commands


def test_each_command_is_there_once_and_not_many() -> None:
    assert bisect_commands([event(), event(metric="latency-vs-baseline")], RUNS) == [COMMAND]
    many = [event(case=f"net/v{number}@cpu") for number in range(9)]
    assert len(bisect_commands(many, RUNS)) == 5


def test_what_somebody_knows_of_needs_none() -> None:
    mark = Acknowledgement(
        id="0123abcd",
        state="acknowledged",
        note="",
        suite="nightly",
        case="net/stock@cpu",
        metric="latency",
        changes=(),
    )
    known = replace(event(), marks=(mark,))
    assert bisect_commands([known], RUNS) == []
