"""Which host gets the next compile, and which it gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from harness.fleet.files import Luggage
from harness.fleet.placing import Host
from harness.fleet.state import HostState, Job, all_can_have, choose_job, next_to_compile
from tests.fleet.hosts import make_offer


def a_host(name: str) -> Host:
    return Host(name=name, classes={}, host_cpu="")


@pytest.mark.parametrize(
    ("cores", "compiles", "given"),
    [
        ({"a": 1, "b": 1}, 3, {"a": 1, "b": 1}),
        ({"a": 1, "b": 1}, 8, {"a": 1, "b": 1}),
        ({"a": 1, "b": 1}, 12, {"a": 3, "b": 3}),
        ({"a": 8, "b": 2}, 5, {"a": 4, "b": 1}),
        ({"a": 0, "b": 2}, 3, {"b": 2}),
    ],
    ids=["few", "not enough for all", "many", "by cores", "one has gone"],
)
def test_compiles_are_spread_and_the_last_ones_wait_for_a_free_core(
    cores: Mapping[str, int], compiles: int, given: Mapping[str, int]
) -> None:
    hosts = [
        HostState(
            host=a_host(name),
            offer=make_offer(name, cores=number),
            address=name if number else "",
        )
        for name, number in cores.items()
    ]
    found: Counter[str] = Counter()
    most = all_can_have(hosts)
    while found.total() < compiles and (state := next_to_compile(hosts, most, compiles - found.total())) is not None:
        found[state.name] += 1
        state.compiling.add(found.total())
    assert found == given


def test_a_host_compiles_its_own_first_and_helps_with_the_largest() -> None:
    order: Any = SimpleNamespace(toolchain=SimpleNamespace(version="3.13.0", compiler_sha256=""))
    jobs = [Job(order=order, luggage=Luggage(), cases=[], host=host) for host in ("a", "b", "b", "a")]
    assert choose_job(jobs, a_host("b"), others=True) is jobs[1]
    assert choose_job(jobs, a_host("c"), others=True) is jobs[3]
    assert choose_job(jobs, a_host("c"), others=False) is None
