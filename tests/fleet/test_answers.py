"""Which answers of a host are results."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.fleet.answers import of_job, of_row, of_step
from harness.fleet.orders import Checked, Compiled, Measured, Trouble
from harness.fleet.row_orders import RowMeasured
from harness.fleet.state import AGAIN, CHECK, PEAK, REFERENCE
from harness.records.run import Build, Check, Failure, Lost, Peak, Reference, Round, Turn

_NAMES = ("net/stock@cpu", "net/fast@cpu")
_FAILURE = Failure(stage="measure", message="it crashed")
_ORDER: Any = SimpleNamespace(cases=[SimpleNamespace(name=name) for name in _NAMES], checks={})
_ASKED = _ORDER, SimpleNamespace(group="net@cpu", generation=2)
_CHECKS = tuple(
    Check(case=name, against="", command=(), relative_tolerance=0.0, absolute_tolerance=0.0) for name in _NAMES
)
_REFERENCES = tuple(Reference(case=name, command=()) for name in _NAMES)
_LOST = (Lost(case=_NAMES[0], generation=2, failure=_FAILURE),)
_TURNS = tuple(Turn(case=name, calls=1, wall_ns=1, cpu_ns=1) for name in _NAMES)
_ROUND = Round(group="net@cpu", generation=2, round=0, started_unix_ns=0, turns=_TURNS)
_BUILD = Build(case=_NAMES[0], command=(), cache_key="5e")


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        (CHECK, Checked(checks=_CHECKS)),
        (AGAIN, ()),
        (AGAIN, _LOST),
        (REFERENCE, _REFERENCES),
        (PEAK, None),
        (PEAK, Peak(device="cpu", threads=1)),
        (2, Measured(results=(_ROUND,))),
        (2, Measured(results=(_LOST,))),
        (2, Trouble(message="its disk is full")),
    ],
)
def test_a_result_of_a_step_is_kept(step: Any, answer: Any) -> None:
    assert of_step(step, _ASKED, answer) is answer


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        (CHECK, None),
        (CHECK, Checked(checks=_CHECKS[:1])),
        (AGAIN, None),
        (AGAIN, (replace(_LOST[0], case="mlp/stock@cpu"),)),
        (REFERENCE, ()),
        (REFERENCE, _CHECKS),
        (PEAK, "much"),
        (2, None),
        (2, Measured(results=())),
        (2, Measured(results=(replace(_ROUND, generation=1),))),
        (2, Measured(results=(replace(_ROUND, group="mlp@cpu"),))),
        (2, Measured(results=(replace(_ROUND, turns=(replace(_TURNS[0], case="mlp/stock@cpu"),)),))),
    ],
)
def test_what_is_no_result_of_a_step_is_the_hosts_trouble(step: Any, answer: Any) -> None:
    found = of_step(step, _ASKED, answer)
    assert isinstance(found, Trouble)
    assert found.message.startswith("its answer is no result of what it was asked (")


def test_a_build_has_the_key_of_its_order_and_a_generation_of_a_row_is_one() -> None:
    order: Any = SimpleNamespace(key="5e")
    failed = Compiled(build=replace(_BUILD, cache_key="", failure=_FAILURE), stderr="")
    for good in (Compiled(build=_BUILD, stderr=""), failed):
        assert of_job(order, good) is good
    for bad in (None, Compiled(build=replace(_BUILD, cache_key="77"), stderr=""), RowMeasured()):
        assert isinstance(of_job(order, bad), Trouble)
        assert isinstance(of_row(bad or ()), Trouble)
    failure = RowMeasured(failure=_FAILURE)
    assert (of_row(None), of_row(failure)) == (None, failure)  # None: the worker has gone
