"""The compiler's hash goes into every cache key: taken once, kept, and taken again when the compiler changes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from harness.toolchain import find, find_toolchain
from tests.toolchain.conftest import Installation


def compiler_hash() -> str:
    return find_toolchain().compiler_sha256


def test_it_is_of_the_program_and_the_library(installation: Installation) -> None:
    (installation.compiler_tools / "iree-compile").write_bytes(b"program")
    (installation.compiler_tools / "libIREECompiler.so").write_bytes(b"library")
    assert compiler_hash() == hashlib.sha256(b"programlibrary").hexdigest()


def test_it_is_kept(installation: Installation, cache: Path) -> None:
    first = compiler_hash()
    (memo,) = (cache / "toolchains").iterdir()
    memo.write_text('"kept"')
    assert compiler_hash() == "kept"
    memo.write_text("{ torn")
    assert compiler_hash() == first


@pytest.mark.parametrize("file", ["iree-compile", "libIREECompiler.so"])
def test_it_is_taken_again_when_a_file_changes(file: str, installation: Installation) -> None:
    first = compiler_hash()
    (installation.compiler_tools / file).write_bytes(b"another build")
    assert compiler_hash() != first


def test_it_is_taken_again_when_a_file_of_the_same_size_is_newer(installation: Installation) -> None:
    library = installation.compiler_tools / "libIREECompiler.so"
    library.write_bytes(b"old")
    first = compiler_hash()
    before = library.stat().st_mtime_ns
    library.write_bytes(b"new")
    os.utime(library, ns=(before + 1, before + 1))
    assert compiler_hash() != first


def test_a_cache_that_cannot_be_written_is_no_error(installation: Installation, cache: Path) -> None:
    cache.write_text("a file where a folder belongs")
    assert compiler_hash() == hashlib.sha256(b"").hexdigest()


def test_the_real_one_is_found_again_without_reading_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiler_hash()

    class NoHash:
        """Stands in for hashlib; the stamp of names, sizes and times may be hashed, the files may not."""

        @staticmethod
        def sha256(*data: bytes) -> object:
            assert data, "the files are hashed again"
            return hashlib.sha256(*data)

    monkeypatch.setattr(find, "hashlib", NoHash)
    assert compiler_hash() == first
