"""A fleet that several tests use, one after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A scheduler alone, for a test that ends it, or hosts of its own."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    world = World(tmp_path)
    yield world
    world.end()


@pytest.fixture
def two_hosts(lasting: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """For tests that leave both hosts as they find them."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return lasting.for_another_run(tmp_path)


@pytest.fixture(scope="session")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A scheduler and the hosts host-a and host-b, with caches that last."""
    world = World(tmp_path_factory.mktemp("fleet"))
    world.hosts("host-a", "host-b")
    yield world
    world.end()
