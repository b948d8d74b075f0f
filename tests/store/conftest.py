"""A results folder and a cache of their own for each test, and nothing in fsspec's memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"
