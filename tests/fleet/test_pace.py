"""How long a run on a fleet still takes."""

from __future__ import annotations

from collections import deque

from harness.fleet.pace import Pace
from harness.fleet.state import CHECK, GroupState, Step
from tests.fleet.test_placing import a_group


def a_state(model: str, host: str, *todo: Step, uncompiled: int = 0) -> GroupState:
    state = GroupState(need=a_group(model), number=0, cases=[], host=host, todo=deque(todo))
    state.uncompiled = {str(number) for number in range(uncompiled)}
    return state


def test_the_host_that_has_most_to_do_says_how_long_the_rest_takes() -> None:
    now = 0.0
    pace = Pace(lambda: now)
    groups = [a_state("a", "ash", 1, 2), a_state("b", "ash", 0, 1, 2), a_state("c", "elm", 1)]
    assert pace.left(groups).words == ""
    for host, at in (("ash", 10.0), ("elm", 11.0), ("ash", 40.0), ("elm", 200.0), ("ash", 70.0), ("ash", 101.0)):
        now = at
        pace.end(host, 0)
    assert pace.left(groups).seconds == 5 * 30.5  # that elm waited for a compile does not count
    assert pace.left([*groups, a_state("d", "elm", CHECK)]).words == "at least 3 min"
    assert pace.left([*groups, a_state("d", "elm", uncompiled=1)]).words == "at least 3 min"
    assert pace.left([]).words == ""
