"""C sources of peers: compiled once, anew when something changes, and what is said when it fails."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest

from harness.peers.libxsmm import build_library, missing_compiler

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=str(missing_compiler()))


def write(folder: Path, text: str) -> Path:
    source = folder / "number.c"
    source.write_text(text)
    return source


def test_a_source_becomes_a_library(tmp_path: Path) -> None:
    library = build_library(write(tmp_path, "int number(void) { return 42; }"), (), tmp_path)
    assert ctypes.CDLL(str(library)).number() == 42
    assert not list(tmp_path.glob("*.unfinished"))


def test_only_changes_compile_anew(tmp_path: Path) -> None:
    header = tmp_path / "version.h"
    header.write_text('#define VERSION "1"')
    source = write(tmp_path, '#include "version.h"\nint number(void) { return 1; }')
    first = build_library(source, (), tmp_path)
    assert build_library(source, (), tmp_path) == first
    header.write_text('#define VERSION "2"')
    second = build_library(source, (), tmp_path)
    assert second != first
    assert build_library(write(tmp_path, "int number(void) { return 2; }"), (), tmp_path) not in (first, second)


def test_an_error_of_the_compiler_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as raised:
        build_library(write(tmp_path, "nonsense"), (), tmp_path)
    assert re.fullmatch(r"\S+ exited with status 1: .*number\.c:1:.*error.*", str(raised.value))


def test_a_library_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="exited with status 1: "):
        build_library(write(tmp_path, "int number(void) { return 1; }"), ("no-such-library",), tmp_path)
    assert not list(tmp_path.glob("*.so"))


def test_the_compiler_is_what_cc_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert missing_compiler() == "there is no C compiler no-such-compiler"
