"""Machines as the files that they show of themselves below /proc, /sys and /etc."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

CPU = "sys/devices/system/cpu"

MakeMachine = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def make_machine(tmp_path: Path) -> MakeMachine:
    """Write files below a folder that then serves as the root."""

    def make(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return make


def cache_files(index: int, level: int, kind: str, size: str) -> dict[str, str]:
    """What a processor's first core says of one of its caches."""
    folder = f"{CPU}/cpu0/cache/index{index}"
    return {f"{folder}/level": f"{level}\n", f"{folder}/type": f"{kind}\n", f"{folder}/size": f"{size}\n"}
