"""A GitHub that runs here, clients of it, and a time in which nobody waits."""

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from harness import github_api as api
from harness.github_api import Client
from tests.github.fake_github import FakeGitHub, running_github

TOKEN = "ghs_not-a-real-token"  # noqa: S105
NOON = 1_800_000_000.0


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    """A GitHub without anything in it."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running_github() as github:
        yield github


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every wait of a client, in seconds; time passes by nothing else."""
    seconds: list[float] = []

    def now() -> float:
        return NOON + sum(seconds)

    monkeypatch.setattr(
        api,
        "time",
        SimpleNamespace(**{**vars(time), "time": now, "monotonic": now, "sleep": seconds.append}),
    )
    return seconds


@pytest.fixture
def sentences() -> list[str]:
    """What the client says while it works."""
    return []


@pytest.fixture
def client_with(github: FakeGitHub, waits: list[float], sentences: list[str]) -> Callable[[float], Client]:
    """A client with that much patience."""
    return lambda patience_s: Client(github.url, TOKEN, patience_s=patience_s, say=sentences.append)


@pytest.fixture
def client(client_with: Callable[[float], Client]) -> Client:
    return client_with(300)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that says nothing for a moment counts as silent."""
    monkeypatch.setattr(api, "_READ_S", 0.1)
