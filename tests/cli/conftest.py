"""The folder in which commands are called."""

from pathlib import Path

import pytest

from tests.builders import FLAGS, SUITE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the suite small.toml."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("small.toml", SUITE), ("flags.toml", FLAGS), ("net.mlir", "")):
        (tmp_path / name).write_text(text)
    return tmp_path
