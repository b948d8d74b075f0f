"""This project's suites: JSON Schemas say the same as loading does, and files beside suites are what they should be."""

import copy
import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tomli
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness.errors import SuiteError
from harness.suite.flags import refusal
from harness.suite.load import find_list, load_suite
from harness.suite.schema import Kind, json_schema
from tests.builders import FLAGS, SUITE

ROOT = Path(__file__).parents[2]
FILES: list[tuple[Path, Kind]] = [(path, "flagset") for path in sorted((ROOT / "flagsets").glob("*.toml"))]
FILES += [(path, "suite" if find_list(path) is None else "list") for path in sorted((ROOT / "suites").glob("*.toml"))]
KINDS: tuple[Kind, ...] = ("suite", "list", "flagset", "variants")
VALIDATORS = {kind: Draft202012Validator(json_schema(kind)) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_in_docs_is_the_one_that_loading_checks(kind: Kind) -> None:
    schema = json_schema(kind)
    kept = json.loads((ROOT / "docs" / f"{kind}.schema.json").read_text())
    assert kept == schema, f"docs/{kind}.schema.json is out of date: run `make schema`"
    Draft202012Validator.check_schema(schema)
    for table in (schema, *schema["$defs"].values()):
        assert table["additionalProperties"] is False, table["title"]


@pytest.mark.parametrize(("path", "kind"), FILES, ids=lambda value: getattr(value, "name", value))
def test_a_file_of_this_project_names_its_schema_follows_it_and_loads(path: Path, kind: Kind) -> None:
    text = path.read_text()
    content = tomli.loads(text)
    marker, _, schema = text.splitlines()[0].partition(" ")
    assert marker == "#:schema"
    assert (path.parent / schema).resolve() == ROOT / "docs" / f"{kind}.schema.json"
    assert VALIDATORS[kind].is_valid(content)
    if kind == "suite":
        assert load_suite(path).name == path.stem
    for table in (table for key in ("flagsets", "variants", "devices") for table in content.get(key, {}).values()):
        given = [(flag, False) for key in ("compile", "flags", "compile_flags") for flag in table.get(key, ())]
        given += [(flag, True) for key in ("run", "run_flags") for flag in table.get(key, ())]
        assert [flag for flag, at_run in given if refusal(flag, at_run=at_run)] == []


PLACES = [
    *((key,) for key in ("name", "baseline", "flagset_files", "models", "matrix", "expect", "groups")),
    ("models", "net"),
    *(("models", "net", key) for key in ("mlir", "builder", "params", "inputs", "parameters", "tolerance")),
    ("variants", "tiled", "flags"),
    ("devices", "cpu"),
    ("measure", "budget_s"),
]

texts = st.sampled_from(["net.mlir", "stock", "tiling", "--a-flag", "shape", "dtype", "npy", "cases", "title"])
texts |= st.text(st.characters(min_codepoint=32, exclude_categories=["C"]), max_size=300)
values = st.recursive(
    texts | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suites")
    (folder / "net.mlir").touch()
    (folder / "flags.toml").write_text(FLAGS)
    return folder


@given(place=st.sampled_from(PLACES), value=values)
def test_any_value_anywhere_is_a_suite_or_one_sentence(place: tuple[str, ...], value: Any, folder: Path) -> None:
    content = copy.deepcopy(tomli.loads(SUITE))
    here = content
    for part in place[:-1]:
        here = here.setdefault(part, {})
    here[place[-1]] = value
    path = folder / "suite.toml"
    path.write_text(tomli_w.dumps(content), encoding="utf-8")
    try:
        load_suite(path)
    except SuiteError as error:
        sentence = str(error)
        assert sentence.startswith((f"{path}: ", f"{folder / 'flags.toml'}: ", f"{folder / 'net.mlir'}: "))
        assert "\n" not in sentence
        assert len(sentence) < 600 + len(str(path))
    else:
        assert VALIDATORS["suite"].is_valid(content)


# --- Files beside suites: what scripts write there, and what the documentation shows ---


KNOWN = ROOT / "suites/known-issues"


def test_the_right_outputs_of_known_issues_are_those_that_numpy_computes() -> None:
    written = dict(runpy.run_path(str(KNOWN / "right.py"))["right_outputs"]())
    assert {file.name for file in written} == {file.name for file in KNOWN.glob("*.npy")}
    for file, values in written.items():
        np.testing.assert_allclose(np.load(file), values, rtol=1e-6, err_msg=file.name)


@pytest.mark.parametrize("program", sorted(KNOWN.glob("*.mlir")), ids=lambda path: path.stem)
def test_a_known_issue_is_in_the_suite_and_in_the_documentation(program: Path) -> None:
    suite = load_suite(ROOT / "suites/known-issues.toml")
    assert program.name in [model.mlir.name for model in suite.models if model.mlir is not None]
    documented = (ROOT / "docs/known-issues.md").read_text()
    assert program.stem in documented
    # prelu and cbrt with another number or function
    alike = {"prelu-wide", "powf", "atan2", "sinh", "asinh", "atanh", "acosh", "asin-f16", "atanh-f16"}
    assert program.read_text() in documented or program.stem in alike


def test_the_smoke_suite_s_network_is_the_one_its_script_writes() -> None:
    script = runpy.run_path(str(ROOT / "suites/smoke/network.py"))
    assert onnx.load(script["FILE"]) == onnx.load_model_from_string(script["network"]())
