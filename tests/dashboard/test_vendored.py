"""What is vendored is what its note says, byte for byte."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from harness.dashboard.site import STATIC

_FOLDER = STATIC / "vendor" / "uplot"
# What makes markup or code of a text.
_MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function")
_NOTED = dict(re.findall(r"^\| (\S+) \| ([0-9a-f]{64}) \|$", (_FOLDER / "README.md").read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", ["uPlot.iife.min.js", "uPlot.min.css", "LICENSE"])
def test_a_vendored_file_has_its_noted_hash(name: str) -> None:
    assert hashlib.sha256((_FOLDER / name).read_bytes()).hexdigest() == _NOTED[name]


def test_nothing_else_is_vendored() -> None:
    assert sorted(path.name for path in _FOLDER.iterdir()) == sorted([*_NOTED, "README.md"])


def test_own_scripts_are_small_and_strict() -> None:
    for path in Path(STATIC).glob("*.js"):
        text = path.read_text()
        assert '"use strict";' in text, path
        assert len(text.splitlines()) < 250, path
        assert not _MARKUP.search(text), path
