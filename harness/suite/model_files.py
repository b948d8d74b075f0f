"""A suite's table with the models that it takes from other suites, `[model_files]`, as if they stood in it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import SuiteError
from harness.suite.schema import SuiteFile
from harness.suite.toml_file import errors_name, file_beside, read_content, read_toml, shown, validated
from harness.text import matching


def read_suite_table(path: Path) -> tuple[SuiteFile, list[Path]]:
    """A suite file's table, models of other suites among its own, and the files that these came from."""
    content, _ = read_content(path)
    table = validated(path, content, SuiteFile)
    models: dict[str, Any] = dict(table.models)
    origins = dict.fromkeys(models, path)
    for name, wanted in table.model_files.items():
        where = f"[model_files.{shown(name)}]"
        with errors_name(path):
            file = file_beside(path, where, name)
        found, _ = read_toml(file, SuiteFile)
        dumped = found.model_dump(exclude_none=True, exclude_defaults=True, by_alias=True).get("models", {})
        for pattern in wanted.models:
            if not any(map(matching([pattern]).match, dumped)):
                raise SuiteError(f"{path}: {where} models: {shown(pattern)} matches none; correct it")
        for model in filter(matching(wanted.models).match, dumped):
            own = f"{wanted.prefix}{model}"
            if own in models:
                how = "choose other models, or another prefix"
                raise SuiteError(f"{path}: {where}: {own!r} is of {origins[own]} too; {how}")
            models[own], origins[own] = moved_model(dumped[model], file, path.parent), file
    if not models:
        raise SuiteError(f"{path}: [models] is missing; add it, or [model_files]")
    merged = validated(path, {**content, "models": models}, SuiteFile) if table.model_files else table
    return merged, [file for file in dict.fromkeys(origins.values()) if file != path]


def moved_path(file: str, suite: Path, folder: Path) -> str:
    """A path that is relative to the suite, relative to another folder; where that is a link, to what it leads to."""
    path = suite.parent / file
    return Path(os.path.relpath(path.parent.resolve() / path.name, folder.resolve())).as_posix()


def moved_model(model: Mapping[str, Any], suite: Path, folder: Path) -> dict[str, Any]:
    """A model's table, whose paths are relative to the suite, for a suite in another folder."""
    moved = dict(model)
    for key in ("mlir", "onnx"):
        if key in moved:
            moved[key] = moved_path(moved[key], suite, folder)
    if "expected" in moved:
        moved["expected"] = [moved_path(file, suite, folder) for file in moved["expected"]]
    if "parameters" in moved:
        moved["parameters"] = {scope: moved_path(file, suite, folder) for scope, file in moved["parameters"].items()}
    for table in moved.get("inputs", ()):
        if "npy" in table:
            table["npy"] = moved_path(table["npy"], suite, folder)
    return moved
