"""Whatever stands where in a suite, users get a suite or one sentence, and editors never know better."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness.errors import SuiteError
from harness.suite.load import load_suite
from harness.suite.schema import json_schema
from tests.small_suite import FLAGS
from tests.suite.conftest import SUITE

SCHEMA = Draft202012Validator(json_schema("suite"))
PLACES = [
    ("name",),
    ("baseline",),
    ("flagset_files",),
    ("models",),
    ("models", "net"),
    *(("models", "net", key) for key in ("mlir", "onnx", "builder", "params", "function", "inputs", "parameters")),
    ("models", "net", "tolerance"),
    ("variants", "tiled", "flags"),
    ("variants", "tiled", "flagsets"),
    ("devices", "cpu"),
    ("devices", "cpu", "pin"),
    ("matrix",),
    ("matrix", "exclude"),
    ("expect",),
    ("groups",),
    ("measure", "budget_s"),
]

texts = st.one_of(
    st.sampled_from(
        ["net.mlir", "stock", "tiling", "--a-flag", "shape", "dtype", "seed", "npy", "f32", "cases", "title"]
    ),
    st.text(st.characters(min_codepoint=32, exclude_categories=["C"]), max_size=300),
)
numbers = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats()
values = st.recursive(
    texts | numbers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suites")
    (folder / "net.mlir").touch()
    (folder / "flags.toml").write_text(FLAGS)
    return folder


def as_toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{as_toml(key)} = {as_toml(one)}" for key, one in value.items()) + "}"
        case list():
            return f"[{', '.join(map(as_toml, value))}]"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bool():
            return str(value).lower()
    return repr(value)


def small_suite_with(place: tuple[str, ...], value: Any) -> dict[str, Any]:
    content = copy.deepcopy(tomli.loads(SUITE))
    here = content
    for part in place[:-1]:
        here = here.setdefault(part, {})
    here[place[-1]] = value
    return content


@given(place=st.sampled_from(PLACES), value=values)
def test_any_value_anywhere_is_a_suite_or_one_sentence(place: tuple[str, ...], value: Any, folder: Path) -> None:
    content = small_suite_with(place, value)
    path = folder / "suite.toml"
    path.write_text("".join(f"{key} = {as_toml(one)}\n" for key, one in content.items()), encoding="utf-8")
    try:
        load_suite(path)
    except SuiteError as error:
        sentence = str(error)
        assert sentence.startswith((f"{path}: ", f"{folder / 'flags.toml'}: ", f"{folder / 'net.mlir'}: "))
        assert "\n" not in sentence
        assert len(sentence) < 600 + len(str(path))
    else:
        assert SCHEMA.is_valid(content)
