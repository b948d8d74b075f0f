"""A results folder and a cache of their own for each test."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"
