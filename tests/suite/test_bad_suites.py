"""Anything wrong in a suite is one sentence that names file, table and key, and says what is known or close."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ExitCode, SuiteError
from harness.suite.load import load_suite
from tests.small_suite import FLAGS
from tests.suite.bad_suites import FLAG_SET_FORM, FLAG_SET_MEANING, FORM, MEANING, Row
from tests.suite.conftest import WriteSuite, replaced


def refusal(path: Path) -> str:
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    assert caught.value.exit_code == ExitCode.USAGE
    return str(caught.value)


@pytest.mark.parametrize("row", [*FORM, *MEANING], ids=lambda row: row.what)
def test_a_wrong_suite(row: Row, write_suite: WriteSuite) -> None:
    assert refusal(write_suite(row.old, row.new)) == f"suite.toml: {row.sentence}"


@pytest.mark.parametrize("row", [*FLAG_SET_FORM, *FLAG_SET_MEANING], ids=lambda row: row.what)
def test_a_wrong_flag_set(row: Row, write_suite: WriteSuite) -> None:
    path = write_suite(flags=replaced(FLAGS, row.old, row.new))
    assert refusal(path) == f"flags.toml: {row.sentence}"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "",
            "[variants.stock]\n",
            "[variants.stock] is defined twice, the second time in line 18; rename or remove one of them",
        ),
        (
            'name = "small"',
            'name = "small"\n\nname = "other"',
            "name is given twice, the second time in line 3; remove one of them",
        ),
        (
            "[variants.stock]\n",
            '[variants.stock]\nflags = []\nflags = [\n    "--a=1",\n]\n',
            "[variants.stock] flags is given twice, the second time in line 12; remove one of them",
        ),
        (
            "[variants.stock]\n",
            "[name]\n[variants.stock]\n",
            "[name] is defined twice, the second time in line 10; rename or remove one of them",
        ),
        (
            "",
            "pin = true\npin = true",
            "[devices.cpu] pin is given twice, the second time in line 19; remove one of them",
        ),
    ],
    ids=["a variant", "a key", "a key of a variant", "a key that is a table too", "the last line"],
)
def test_what_is_defined_twice(old: str, new: str, sentence: str, write_suite: WriteSuite) -> None:
    assert refusal(write_suite(old, new)) == f"suite.toml: {sentence}"


def test_a_flag_set_that_two_files_define(write_suite: WriteSuite) -> None:
    path = write_suite('["flags.toml"]', '["flags.toml", "more.toml"]')
    Path("more.toml").write_text(FLAGS)
    assert refusal(path) == "more.toml: [flagsets.tiling] is defined in flags.toml too; rename one of them"


def test_text_that_is_not_toml(write_suite: WriteSuite) -> None:
    sentence = refusal(write_suite('name = "small"', "name = small"))
    assert sentence.startswith("suite.toml: is not valid TOML: ")
    assert "line 1" in sentence


def test_text_that_is_not_utf_8(write_suite: WriteSuite) -> None:
    path = write_suite()
    path.write_bytes(b'name = "caf\xe9"')
    assert refusal(path) == "suite.toml: is not UTF-8 text (byte 11); save it as UTF-8"


def test_a_suite_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(Path("suite.toml")) == "suite.toml: there is no such file; check the path"


def test_a_suite_that_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("suites").mkdir()
    assert refusal(Path("suites")) == ("suites: cannot be read (Is a directory); check the path and its permissions")
