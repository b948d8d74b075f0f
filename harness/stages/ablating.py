"""`harness ablate`: a suite and a plugin -> a suite in which each of the plugin's switches is a variant of its own.

The new suite is a file like any other, so that its runs can be repeated, exported and compared like any other's.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from harness.errors import UsageError
from harness.plugins import PLUGINS
from harness.plugins.options import switches_of
from harness.plugins.plugin import Plugin
from harness.stages.options import AblateOptions
from harness.stages.prepare import require_name
from harness.store.files import writing
from harness.suite.load import load_suite, with_variant_files
from harness.suite.schema import LONGEST_NAME, SuiteFile
from harness.suite.toml_file import read_toml

# Where a suite does not say which ops to count: buffers that a program asks for, what fills and copies them, and what
# a dispatch allocates for itself.
DEFAULT_IR: Mapping[str, Sequence[str]] = {
    "input": ["tensor.empty", "linalg.fill", "linalg.transpose", "linalg.matmul", "linalg.generic"],
    "flow": ["flow.tensor.update"],
    "bufferized": ["executables:memref.alloc*"],
}
WITHOUT = "without"
NONE = "none"
ALL = "all"


def write_ablation(options: AblateOptions) -> Path:
    """Write the suite of an ablation into its folder of results; its file.

    A variant that has the plugin already keeps its place and its other options.
    """
    suite, plugin, folder = options.suite, options.plugin, options.results
    load_suite(suite)
    table, _ = with_variant_files(suite, read_toml(suite, SuiteFile)[0])
    models = tuple(dict.fromkeys(options.models))
    devices = tuple(dict.fromkeys(options.devices)) or tuple(table.devices)[:1]
    on = options.on or table.baseline
    for kind, names, tables in (
        ("model", models, table.models),
        ("device", devices, table.devices),
        ("variant", (on,), table.variants),
    ):
        for name in names:
            require_name(suite, kind, name, list(tables))
    content = table.model_dump(exclude_none=True, exclude_defaults=True)
    base = content["variants"][on]
    given = [option for use in _uses(base) if use["name"] == plugin for option in use.get("options", {})]
    steps = ablation_steps(switches(PLUGINS.find(plugin), given))
    content_of_ablation = {
        "name": joined_name([table.name, "ablate", plugin]),
        "description": f"What each option of {plugin} does: added to {on} alone, left out alone, and all",
        "baseline": WITHOUT,
        "flagset_files": [moved_path(file, suite, folder) for file in table.flagset_files],
        "models": {name: moved_model(content["models"][name], suite, folder) for name in models},
        "variants": {name: _variant(base, plugin, switched) for name, switched in steps.items()},
        "devices": {name: content["devices"][name] for name in devices},
        "ir": content.get("ir") or DEFAULT_IR,
        "measure": {**content.get("measure", {}), **({"budget_s": options.budget_s} if options.budget_s else {})},
    }
    # Two ablations of one plugin and model may differ by these.
    chosen = [*([options.on] if options.on else []), *(devices if options.devices else [])]
    path = folder / f"{joined_name([table.name, 'ablate', plugin, *models, *chosen])}.toml"
    with writing(path, "choose another folder with --results"):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(tomli_w.dumps(content_of_ablation), encoding="utf-8")
    return path


def switches(plugin: Plugin[Any], options: Collection[str] = ()) -> tuple[str, ...]:
    """The options of a plugin that are true or false, in order."""
    fields = dataclasses.fields(plugin.options) if dataclasses.is_dataclass(plugin.options) else ()
    names = switches_of(plugin.options)
    if not names:
        raise UsageError(
            f"plugin {plugin.name!r} has no options that are true or false, so there is nothing to ablate; "
            "compare a variant with it and one without"
        )
    for field in fields:
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and field.name not in (*names, *options):
            raise UsageError(
                f"plugin {plugin.name!r} needs its option {field.name!r}; name a variant with --on that gives it"
            )
    return names


def ablation_steps(names: Sequence[str]) -> dict[str, dict[str, bool] | None]:
    """Variants by name, and how each has the switches; None for the one without the plugin.

    The plugin left out, all switches off, each alone, all but each, and all; what would be there twice is left out.
    """
    steps: dict[str, dict[str, bool] | None] = {WITHOUT: None, NONE: dict.fromkeys(names, False)}
    if len(names) > 1:
        steps |= {f"only-{name}": {other: other == name for other in names} for name in names}
    if len(names) > 2:
        steps |= {f"no-{name}": {other: other != name for other in names} for name in names}
    return {**steps, ALL: dict.fromkeys(names, True)}


def _variant(base: Mapping[str, Any], plugin: str, options: Mapping[str, bool] | None) -> dict[str, Any]:
    """The base variant with these options of the plugin, where it has it already and else as its last one."""
    rest = {key: value for key, value in base.items() if key != "plugins"}
    uses = _uses(base)
    if options is None:
        uses = [use for use in uses if use["name"] != plugin]
        return {**rest, "plugins": uses} if uses else rest
    if not any(use["name"] == plugin for use in uses):
        uses = [*uses, {"name": plugin}]
    switched = [
        {**use, "options": {**use.get("options", {}), **options}} if use["name"] == plugin else use for use in uses
    ]
    return {**rest, "plugins": switched}


def _uses(variant: Mapping[str, Any]) -> list[dict[str, Any]]:
    uses: list[dict[str, Any]] = variant.get("plugins", [])
    return uses


def joined_name(parts: Sequence[str]) -> str:
    """A name as suites may have it, of names that may hold anything."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", "-".join(parts))[:LONGEST_NAME]


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
    if "inputs" in moved:
        moved["inputs"] = [
            {**table, "npy": moved_path(table["npy"], suite, folder)} if "npy" in table else table
            for table in moved["inputs"]
        ]
    return moved
