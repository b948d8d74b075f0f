"""A GitHub that runs here, a client of it, and a clock on which nobody waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from harness.github import transport
from harness.github.client import Client
from harness.github.transport import Transport
from harness.github.values import Clock
from tests.github.fake_github import FakeGitHub, serve

TOKEN = "ghs_not-a-real-token"  # noqa: S105
NOON = 1_800_000_000.0


@dataclass
class Waits:
    """Every wait, in seconds; time passes by nothing else."""

    seconds: list[float] = field(default_factory=list)

    def clock(self) -> Clock:
        """A clock that notes them."""

        def now() -> float:
            return NOON + sum(self.seconds)

        return Clock(unix_s=now, monotonic_s=now, sleep=self.seconds.append)


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    """A running server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    state = FakeGitHub()
    server = serve(state)
    yield state
    state.over.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def said() -> list[str]:
    """What the client tells the user while it works."""
    return []


@pytest.fixture
def client_with(github: FakeGitHub, waits: Waits, said: list[str]) -> Callable[[float], Client]:
    """A client with that much patience."""

    def make(patience_s: float) -> Client:
        return Client(Transport(github.url, TOKEN), patience_s=patience_s, say=said.append, clock=waits.clock())

    return make


@pytest.fixture
def client(client_with: Callable[[float], Client]) -> Client:
    return client_with(300)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who says nothing for a moment is taken for silent."""
    monkeypatch.setattr(transport, "_READ_S", 0.1)
