"""What becomes of orders that do not go as they should."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.fleet import tasks
from harness.fleet.connection import HostChange
from harness.fleet.desk import Answered, Desk, Died, Event, Failed, HostWaits
from harness.fleet.files import Item
from harness.fleet.orders import Compiled, Trouble
from harness.records.run import Build

_ITEM = Item(place="builds/3f/3f/module.vmfb", sha256="aa", size=3, build="3f")
_COMPILED = Compiled(build=Build(case="net/stock@cpu", command=(), cache_key="3f"), stderr="", items=(_ITEM,))
_Submit = Callable[..., Future[Any]]


def event_of(submit: _Submit, *, is_connected: bool = True) -> Event | None:
    """What comes of one compile."""
    client = SimpleNamespace(submit=submit)
    fleet: Any = SimpleNamespace(client=client, is_connected=is_connected, listen=lambda _: None)
    with Desk(fleet) as desk:
        desk.give("host-a", "tcp://a", tasks.compile_case, name="compile", resource="compile")
        return desk.take(10.0)


def test_what_a_host_cannot_send_is_its_trouble_and_not_the_end_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    gone = Trouble(message="module.vmfb: No such file or directory")

    def submit(task: object, *_: object, **__: object) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(_COMPILED if task is tasks.compile_case else gone)
        return future

    assert event_of(submit) == Answered(ticket=1, value=gone)


def test_a_file_that_comes_damaged_is_its_hosts_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))

    def submit(task: object, *_: object, **__: object) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(_COMPILED if task is tasks.compile_case else b"xyz")
        return future

    event = event_of(submit)
    assert isinstance(event, Answered)
    assert isinstance(event.value, Trouble)
    assert event.value.message.startswith("builds/3f/3f/module.vmfb: has come damaged")


def test_a_host_that_waits_for_another_harness_is_heard_of() -> None:
    listeners: list[Callable[[HostChange], None]] = []
    fleet: Any = SimpleNamespace(is_connected=True, listen=listeners.append)
    with Desk(fleet) as desk:
        listeners[0](HostChange(change="waits", name="host-a", address="tcp://a"))
        event = desk.take(10.0)
    assert isinstance(event, HostWaits)
    assert event.sentence == "host-a waits for another harness that measures there"


def test_an_order_that_cannot_be_given_is_heard_of() -> None:
    error = TypeError("cannot pickle this")

    def submit(*_: object, **__: object) -> Future[Any]:
        raise error

    assert event_of(submit) == Failed(error=error)
    assert event_of(submit, is_connected=False) == Died(ticket=1, address="tcp://a")
