"""From a list of suites to a checked SuiteList. Its suites are loaded when it is their turn."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import SuiteError
from harness.suite.schema import ListFile
from harness.suite.toml_file import read_content, shown, validated
from harness.suite.values import SuiteList


def find_list(path: Path) -> SuiteList | None:
    """The list that a file holds; None where it is no list, but for example a suite.

    Raises:
        SuiteError: The file cannot be read, or the list is wrong; the message names file, table and key.
    """
    content, _ = read_content(path)
    if not _is_list(content):
        return None
    table = validated(path, content, ListFile)
    suites = tuple(path.parent / name for name in table.suites)
    places = [os.path.normpath(name) for name in table.suites]
    for name, place in zip(table.suites, places, strict=True):
        if places.count(place) > 1:
            raise SuiteError(f"{path}: suites: {shown(name)} is there twice; remove one of them")
    return SuiteList(
        name=table.name,
        description=table.description,
        path=path,
        suites=suites,
        budget_s=table.measure.budget_s,
        generations=table.measure.generations,
    )


def refuse_list(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse a list where one suite is wanted.

    Raises:
        SuiteError: The content of the file is a list's.
    """
    if _is_list(content):
        names = content["suites"]
        example = f", such as {shown(names[0])}" if isinstance(names, list) and names else ""
        raise SuiteError(f"{path}: is a list of suites; name one of its suites instead{example}")


def _is_list(content: Mapping[str, Any]) -> bool:
    return "suites" in content and "models" not in content
