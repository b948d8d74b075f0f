"""A fleet that several tests use, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fleet.world import World


@pytest.fixture(scope="session")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A scheduler and the hosts host-a and host-b, with caches that last."""
    world = World(tmp_path_factory.mktemp("fleet"))
    world.hosts("host-a", "host-b")
    yield world
    world.end()
