"""How long a host waits for a scheduler, and for its name."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.errors import UsageError
from harness.fleet import worker
from harness.fleet.access import access_to
from harness.fleet.offer import own_versions
from harness.fleet.worker import await_place, host_name, require_place

_ACCESS = access_to("tcp://127.0.0.1:1", "--scheduler", None, trust_network=False)


def _answering_after(questions: int) -> Callable[..., Any]:
    """What a scheduler says that is there only at the last of so many questions."""
    left = [questions]

    def ask(*_: object) -> Any:
        left[0] -= 1
        if left[0] > 0:
            raise UsageError("nobody answers")
        return {"versions": own_versions(), "hosts": []}

    return ask


@pytest.mark.parametrize(("questions", "is_there"), [(3, True), (10**6, False)])
def test_a_host_waits_as_long_as_its_patience(questions: int, is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_TRY_AGAIN_S", 0.01)
    said: list[str] = []
    patience_s = 60.0 if is_there else 0.1
    monkeypatch.setattr(worker, "ask", _answering_after(questions))
    if is_there:
        require_place(_ACCESS, "host-a", patience_s, said.append)
    else:
        with pytest.raises(UsageError, match="nobody answers"):
            require_place(_ACCESS, "host-a", patience_s, said.append)
    assert said == ["nobody answers"]


def test_a_host_that_is_ended_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "ask", _answering_after(10**6))

    async def ended_at_once() -> object:
        stop = asyncio.Event()
        return await await_place(_ACCESS, "host-a", math.inf, lambda _: stop.set(), stop)

    with ThreadPoolExecutor(1) as apart:  # a browser's test may have left an event loop in this thread
        assert apart.submit(asyncio.run, ended_at_once()).result() is None


def test_a_host_that_returns_at_once_waits_until_its_name_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_TRY_AGAIN_S", 0.01)
    before = [{"name": "host-a", "address": "tcp://127.0.0.1:2"}]
    facts = [{"versions": own_versions(), "hosts": hosts} for hosts in (before, before, [], before)]
    monkeypatch.setattr(worker, "ask", lambda *_: facts.pop(0))
    said: list[str] = []
    require_place(_ACCESS, "host-a", 60.0, said.append)
    with pytest.raises(UsageError) as caught:
        require_place(_ACCESS, "host-a")
    assert said == [str(caught.value)]
    assert said == [
        "tcp://127.0.0.1:1: the host host-a is there already (tcp://127.0.0.1:2); choose another name with --name, or"
        " where it is this host that has just gone, wait: it is given up within a minute (the scheduler's --lost-after)"
    ]


def test_a_host_may_have_the_name_of_any_machine_or_pod() -> None:
    assert host_name("p" * 64) == "p" * 64
    for name in ("p" * 65, "", "host a", "a/b"):
        with pytest.raises(UsageError, match=r"is no name of a host; .*, at most 64"):
            host_name(name)
