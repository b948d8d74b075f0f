"""Why what no host has in hand waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.fleet.files import Luggage
from harness.fleet.placing import Group, Host
from harness.fleet.state import GroupState, HostState, Job
from harness.fleet.waits import Reason, by_reason, waits_of_rows, waits_of_run
from tests.fleet.hosts import make_offer

_ORDER: Any = SimpleNamespace(toolchain=SimpleNamespace(version="3.13.0", compiler_sha256=""))


def hosts(a: dict[str, Any], b: dict[str, Any]) -> dict[str, HostState]:
    """Hosts `a` and `b`, each with a CPU of its own name."""
    return {
        name: HostState(
            host=Host(name=name, classes={}, host_cpu=name),
            offer=make_offer(name),
            **{"address": f"tcp://{name}", **changes},
        )
        for name, changes in (("a", a), ("b", b))
    }


def a_job(name: str, **changes: Any) -> Job:
    cases: Any = [SimpleNamespace(name=name)]
    return Job(order=_ORDER, luggage=Luggage(), cases=cases, host="a", **changes)


def a_group(name: str, **changes: Any) -> GroupState:
    group = GroupState(need=Group(name=name, device="cpu"), number=0, cases=[], **{"host": "a", **changes})
    group.todo.append(0)
    return group


@pytest.mark.parametrize(
    ("a", "b", "job", "reason"),
    [
        ({"compiling": {1}}, {"timing": {2}}, {}, Reason("cores")),
        ({"timing": {1}}, {"timing": {2}}, {}, Reason("still")),
        ({"timing": {1}}, {}, {"host_cpu": "a"}, Reason("still")),
        ({"address": ""}, {}, {}, Reason("cores")),
        ({"address": ""}, {}, {"host_cpu": "a"}, Reason("away", "a")),
        ({"address": ""}, {"address": ""}, {}, Reason("away")),
        ({}, {"address": ""}, {"refused": {"a": "no disk"}}, Reason("away", "b")),
    ],
)
def test_a_compile_waits_for_the_hosts_that_may_do_it(
    a: dict[str, Any], b: dict[str, Any], job: dict[str, Any], reason: Reason
) -> None:
    assert waits_of_run([a_job("m/x@cpu", **job)], [], hosts(a, b)) == by_reason([(reason, "compile m/x@cpu")])


@pytest.mark.parametrize(
    ("a", "group", "reason"),
    [
        ({"measuring": [1]}, {}, Reason("busy", "a")),
        ({"helping": {1}}, {}, Reason("helps", "a")),
        ({"measuring": [1]}, {"uncompiled": {"m/x@cpu"}}, Reason("builds")),
        ({"address": ""}, {"uncompiled": {"m/x@cpu"}}, Reason("away", "a")),
        ({}, {"ticket": 3}, None),
        ({}, {"host": ""}, None),
    ],
)
def test_a_group_waits_for_its_host_or_its_builds(
    a: dict[str, Any], group: dict[str, Any], reason: Reason | None
) -> None:
    expected = [] if reason is None else by_reason([(reason, "m@cpu")])
    assert waits_of_run([], [a_group("m@cpu", **group)], hosts(a, {})) == expected


def test_a_row_waits_until_its_host_begins_it_and_while_that_is_away() -> None:
    undone, placed = {"q": False, "r": True, "s": True}, {"q": ("a",), "r": ("a",), "s": ("a", "b")}
    assert waits_of_rows(undone, placed, {"b"}) == by_reason([(Reason("busy", "a"), "q"), (Reason("away", "b"), "s")])


def test_thousands_that_wait_for_one_reason_are_counted() -> None:
    (waits,) = waits_of_run([a_job(f"m{number}") for number in range(5000)], [], hosts({}, {}))
    assert waits == {"why": "cores", "host": "", "count": 5000, "first": ["compile m0", "compile m1", "compile m2"]}
