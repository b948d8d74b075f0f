"""Files that plugins bring: where they come from, and that a name says their content."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SuiteError
from harness.plugins import PluginFile, package_file, written_file
from tests.plugins.conftest import PACKAGE


def test_a_file_of_a_package(package: Path, tmp_path: Path) -> None:
    (package / "spec.mlir").write_bytes(b"module {}\r\n\xff")
    file = package_file(PACKAGE, "spec.mlir")
    assert file.data == b"module {}\r\n\xff"
    (tmp_path / "work").mkdir()
    file.put_into(tmp_path / "work")
    (copy,) = (tmp_path / "work").iterdir()
    assert (copy.read_bytes(), copy.name) == (file.data, file.unique_name)


@pytest.mark.parametrize("name", ["spec.mlir", "specs", ""])
def test_a_file_that_is_not_in_its_package(package: Path, name: str) -> None:
    (package / "specs").mkdir()
    with pytest.raises(SuiteError) as caught:
        package_file(PACKAGE, name)
    assert str(caught.value) == f"package {PACKAGE} has no file {name}; install it again, or ask its author"


def test_a_file_is_known_by_its_content(package: Path) -> None:
    texts = ("module {}", "module { } // é", "")
    written = [written_file("spec.mlir", text) for text in texts]
    assert [(file.path, file.data.decode()) for file in written] == [(None, text) for text in texts]
    assert len({file.unique_name for file in written}) == 3
    (package / "specs").mkdir()
    (package / "specs" / "spec.mlir").write_text("module {}")
    assert package_file(PACKAGE, "specs/spec.mlir").unique_name == written[0].unique_name
    assert written_file("a", "1") == PluginFile(name="a", text="1") != written_file("a", "2")


@given(text=st.text(), name=st.sampled_from(["spec.mlir", "kernel.so", "noending", "a.b.c", "sub/spec.mlir"]))
def test_a_name_keeps_its_ending_and_can_stand_on_a_command_line(text: str, name: str) -> None:
    unique = written_file(name, text).unique_name
    assert Path(unique).suffix == Path(name).suffix
    assert re.fullmatch(r"[A-Za-z0-9.-]+-[0-9a-f]{16}[A-Za-z0-9.]*", unique)
