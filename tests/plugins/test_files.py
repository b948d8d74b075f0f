"""Files that plugins bring: where they come from, and that a name says their content."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SuiteError
from harness.plugins import PluginFile, package_file, written_file

PACKAGE = "a_package_with_files"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An importable package, empty but for what the test puts there."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    sys.modules.pop(PACKAGE, None)


def test_a_file_of_a_package(package: Path, tmp_path: Path) -> None:
    (package / "spec.mlir").write_bytes(b"module {}\r\n\xff")
    file = package_file(PACKAGE, "spec.mlir")
    assert file.data == b"module {}\r\n\xff"
    (tmp_path / "work").mkdir()
    file.put_into(tmp_path / "work")
    (copy,) = (tmp_path / "work").iterdir()
    assert copy.read_bytes() == file.data
    assert copy.name == file.unique_name


def test_a_file_in_a_folder_of_a_package_loses_the_folder(package: Path) -> None:
    (package / "specs").mkdir()
    (package / "specs" / "tile.mlir").write_text("module {}")
    assert re.fullmatch(r"tile-[0-9a-f]{16}\.mlir", package_file(PACKAGE, "specs/tile.mlir").unique_name)


@pytest.mark.parametrize("name", ["spec.mlir", "specs", ""])
def test_a_file_that_is_not_in_its_package(package: Path, name: str) -> None:
    (package / "specs").mkdir()
    with pytest.raises(SuiteError) as caught:
        package_file(PACKAGE, name)
    assert str(caught.value) == f"package {PACKAGE} has no file {name}; install it again, or ask its author"


def test_a_file_that_is_written_has_no_path() -> None:
    file = written_file("spec.mlir", "module { } // é")
    assert file.path is None
    assert file.data == "module { } // é".encode()


def test_the_name_says_the_content(package: Path) -> None:
    names = {written_file("spec.mlir", text).unique_name for text in ("module {}", "module { }", "")}
    assert len(names) == 3
    (package / "spec.mlir").write_text("module {}")
    assert package_file(PACKAGE, "spec.mlir").unique_name == written_file("spec.mlir", "module {}").unique_name


@given(text=st.text(), name=st.sampled_from(["spec.mlir", "kernel.so", "noending", "a.b.c", "sub/spec.mlir"]))
def test_a_name_keeps_its_ending_and_can_stand_on_a_command_line(text: str, name: str) -> None:
    unique = written_file(name, text).unique_name
    assert Path(unique).suffix == Path(name).suffix
    assert re.fullmatch(r"[A-Za-z0-9.-]+", unique)


def test_files_are_values() -> None:
    assert written_file("a", "1") == PluginFile(name="a", text="1")
    assert written_file("a", "1") != written_file("a", "2")
