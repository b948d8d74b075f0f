"""A file with `suites` and no models is a list: what it says, and that it is refused where one suite is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import SuiteError
from harness.suite.load import SuiteList, find_list, load_suite
from tests.suite.conftest import WriteSuite

ROOT = Path(__file__).parents[2]


def write_list(folder: Path, text: str) -> Path:
    path = folder / "night.toml"
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> str:
    """The sentence, without the path before it."""
    path = write_list(folder, text)
    with pytest.raises(SuiteError) as caught:
        find_list(path)
    return str(caught.value).removeprefix(f"{path}: ")


def test_a_list_that_says_everything(tmp_path: Path) -> None:
    text = """
        name = "night"
        description = "all of them"
        suites = ["a.toml", "more/b.toml"]
        [measure]
        budget_s = 2.5
        generations = 3
    """
    assert find_list(path := write_list(tmp_path, text)) == SuiteList(
        name="night",
        description="all of them",
        path=path,
        suites=(tmp_path / "a.toml", tmp_path / "more/b.toml"),
        budget_s=2.5,
        generations=3,
    )


def test_what_a_list_does_not_say_its_suites_do(tmp_path: Path) -> None:
    found = find_list(write_list(tmp_path, 'name = "night"\nsuites = ["a.toml"]'))
    assert found is not None
    assert (found.budget_s, found.generations) == (None, None)


def test_a_suite_is_no_list_and_neither_is_what_has_models_as_well(write_suite: WriteSuite, tmp_path: Path) -> None:
    assert find_list(write_suite()) is None
    assert find_list(write_list(tmp_path, 'name = "night"\nsuites = ["a.toml"]\n[models.net]')) is None
    assert find_list(write_list(tmp_path, "")) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('suites = ["a.toml"]', "name is missing; add it"),
        ('name = "n"\nsuites = []', "suites: [] must have at least 1 entry"),
        ('name = "n"\nsuites = [""]', "suites[0]: '' must not be empty"),
        ('name = "n"\nsuites = "a.toml"', "suites: 'a.toml' must be a list"),
        ('name = "n"\nsuites = ["a.toml", "./a.toml"]', "suites: 'a.toml' is there twice; remove one of them"),
        ('name = "n"\nsuites = ["a.toml"]\nbaseline = "s"', "baseline is not a known key; known: description, "
            "measure, name, suites"),
        ('name = "n"\nsuites = ["a.toml"]\n[measure]\nbudget_s = 0', "[measure] budget_s: 0 must be more than 0"),
    ],
)  # fmt: skip
def test_a_wrong_list(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in refusal(tmp_path, text)


def test_where_one_suite_is_wanted_a_list_is_refused(tmp_path: Path) -> None:
    path = write_list(tmp_path, 'name = "night"\nsuites = ["a.toml", "b.toml"]')
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    assert str(caught.value) == f"{path}: is a list of suites; name one of its suites instead, such as 'a.toml'"


def test_the_nightly_list_has_all_suites() -> None:
    nightly = find_list(ROOT / "suites/nightly.toml")
    assert nightly is not None
    assert {path.name for path in nightly.suites} == {
        path.name for path in (ROOT / "suites").glob("*.toml") if find_list(path) is None
    }
