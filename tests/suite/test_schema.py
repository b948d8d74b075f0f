"""The JSON Schemas that editors use say the same as loading does, as far as a schema can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomli
from jsonschema import Draft202012Validator

from harness.suite.load import find_list, load_suite
from harness.suite.schema import Kind, json_schema
from tests.small_suite import FLAGS
from tests.suite.bad_suites import FLAG_SET_FORM, FLAG_SET_MEANING, FORM, MEANING, Row
from tests.suite.conftest import SUITE, replaced

ROOT = Path(__file__).parents[2]
SUITES = [path for path in sorted((ROOT / "suites").glob("*.toml")) if find_list(path) is None]
LISTS = [path for path in sorted((ROOT / "suites").glob("*.toml")) if find_list(path) is not None]
FLAG_SETS = sorted((ROOT / "flagsets").glob("*.toml"))

KINDS = ("suite", "list", "flagset")


def accepts(kind: Kind, text: str) -> bool:
    return Draft202012Validator(json_schema(kind)).is_valid(tomli.loads(text))


def name_of(value: Path | Row) -> str:
    return value.name if isinstance(value, Path) else value.what


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_in_docs_is_the_one_that_loading_checks(kind: Kind) -> None:
    kept = json.loads((ROOT / "docs" / f"{kind}.schema.json").read_text())
    assert kept == json_schema(kind), f"docs/{kind}.schema.json is out of date: run `make schema`"


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_itself_valid(kind: Kind) -> None:
    Draft202012Validator.check_schema(json_schema(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_checked_and_no_other_is_allowed(kind: Kind) -> None:
    schema = json_schema(kind)
    for table in (schema, *schema["$defs"].values()):
        assert table["additionalProperties"] is False, table["title"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        *((path, "suite") for path in SUITES),
        *((path, "list") for path in LISTS),
        *((path, "flagset") for path in FLAG_SETS),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_a_file_of_this_project_names_its_schema_and_follows_it(path: Path, kind: Kind) -> None:
    text = path.read_text()
    marker, _, schema = text.splitlines()[0].partition(" ")
    assert marker == "#:schema"
    assert (path.parent / schema).resolve() == ROOT / "docs" / f"{kind}.schema.json"
    assert accepts(kind, text)


@pytest.mark.parametrize("path", SUITES, ids=name_of)
def test_a_suite_of_this_project_loads(path: Path) -> None:
    assert load_suite(path).suite.name == path.stem


@pytest.mark.parametrize("row", FORM, ids=name_of)
def test_an_editor_underlines_a_suite_of_the_wrong_form(row: Row) -> None:
    assert accepts("suite", SUITE)
    assert not accepts("suite", replaced(SUITE, row.old, row.new))


@pytest.mark.parametrize("row", MEANING, ids=name_of)
def test_an_editor_does_not_know_what_a_suite_refers_to(row: Row) -> None:
    assert accepts("suite", replaced(SUITE, row.old, row.new))


@pytest.mark.parametrize("row", FLAG_SET_FORM, ids=name_of)
def test_an_editor_underlines_a_flag_set_of_the_wrong_form(row: Row) -> None:
    assert accepts("flagset", FLAGS)
    assert not accepts("flagset", replaced(FLAGS, row.old, row.new))


@pytest.mark.parametrize("row", FLAG_SET_MEANING, ids=name_of)
def test_an_editor_does_not_know_what_a_flag_set_means(row: Row) -> None:
    assert accepts("flagset", replaced(FLAGS, row.old, row.new))


def test_editors_can_say_what_a_key_is_for() -> None:
    properties: dict[str, Any] = json_schema("suite")["$defs"]["DeviceTable"]["properties"]
    assert properties["uri"]["description"].startswith("What --device= takes")
