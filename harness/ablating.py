"""`harness ablate`: a suite and a plugin -> a suite in which each of the plugin's switches is a variant of its own.

The new suite is a file like any other, so that its runs can be repeated, exported and compared like any other's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from harness.errors import RunError, UsageError
from harness.plugins import load_plugin
from harness.plugins.values import Plugin
from harness.suite import load_suite
from harness.suite.schema import SuiteFile
from harness.suite.toml_file import did_you_mean, read_toml

# What the seed's question is about, where a suite does not say which ops to count: buffers that a program asks for,
# what fills and copies them, and what a dispatch allocates for itself.
DEFAULT_IR: Mapping[str, Sequence[str]] = {
    "input": ["tensor.empty", "linalg.fill", "linalg.transpose", "linalg.matmul", "linalg.generic"],
    "flow": ["flow.tensor.update"],
    "bufferized": ["executables:memref.alloc*"],
}
WITHOUT = "without"
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """What is ablated.

    Attributes:
        models: Names of the suite's models.
        plugin: Its registered name.
        devices: Names of the suite's devices; (): the first.
        on: The variant that the plugin is added to; None: the suite's baseline.
        budget_s: Seconds of timed rounds; None: the suite's own.
    """

    models: tuple[str, ...]
    plugin: str
    devices: tuple[str, ...] = ()
    on: str | None = None
    budget_s: float | None = None


def write_ablation(suite: Path, ablation: Ablation, folder: Path) -> Path:
    """Write the suite of an ablation; its file.

    Variants: the plugin left out, each switch alone, all but each, and all. With one switch there is only all.

    Args:
        folder: Where the file goes.

    Raises:
        HarnessError: The suite is wrong, has no such model, device or variant, the plugin has nothing to switch, or
            the folder cannot be written.
    """
    load_suite(suite)
    table, _ = read_toml(suite, SuiteFile)
    devices = ablation.devices or (next(iter(table.devices)),)
    on = ablation.on or table.baseline
    for kind, names, known in (
        ("model", ablation.models, list(table.models)),
        ("device", devices, list(table.devices)),
        ("variant", (on,), list(table.variants)),
    ):
        for name in names:
            if name not in known:
                raise UsageError(f"{suite}: there is no {kind} {name!r}{did_you_mean(name, known)}")
    content = table.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    base = content["variants"][on]
    made = {
        "name": f"{table.name}-ablate-{ablation.plugin}",
        "description": f"What each option of {ablation.plugin} does: added to {on} alone, left out alone, and all",
        "baseline": WITHOUT,
        "flagset_files": [_moved(file, suite, folder) for file in table.flagset_files],
        "models": {name: _moved_model(content["models"][name], suite, folder) for name in ablation.models},
        "variants": {
            name: _variant(base, ablation.plugin, options) for name, options in _steps(ablation.plugin).items()
        },
        "devices": {name: content["devices"][name] for name in devices},
        "ir": content.get("ir") or DEFAULT_IR,
        "measure": {**content.get("measure", {}), **({"budget_s": ablation.budget_s} if ablation.budget_s else {})},
    }
    path = folder / f"{made['name']}-{'-'.join(ablation.models)}.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(tomli_w.dumps(made))
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror}); choose another folder with --results") from None
    return path


def switches(plugin: Plugin[Any]) -> tuple[str, ...]:
    """The options of a plugin that are true or false, in order.

    Raises:
        UsageError: It has none, or one without a default.
    """
    try:
        defaults = plugin.options()
    except TypeError:
        raise UsageError(f"plugin {plugin.name!r} has options without defaults, so it cannot be ablated") from None
    found = tuple(name for name, value in vars(defaults).items() if isinstance(value, bool))
    if not found:
        raise UsageError(
            f"plugin {plugin.name!r} has no options that are true or false, so there is nothing to ablate; "
            "compare a variant with it and one without"
        )
    return found


def _steps(name: str) -> dict[str, dict[str, bool] | None]:
    """Variants by name: the options of the plugin, or None for the one without it."""
    names = switches(load_plugin(name))
    steps: dict[str, dict[str, bool] | None] = {WITHOUT: None}
    if len(names) > 1:
        steps |= {f"only-{one}": {other: other == one for other in names} for one in names}
        steps |= {f"no-{one}": {other: other != one for other in names} for one in names}
    return {**steps, ALL: dict.fromkeys(names, True)}


def _variant(base: Mapping[str, Any], plugin: str, options: Mapping[str, bool] | None) -> dict[str, Any]:
    if options is None:
        return dict(base)
    return {**base, "plugins": [*base.get("plugins", []), {"name": plugin, "options": dict(options)}]}


def _moved(file: str, suite: Path, folder: Path) -> str:
    """A path that is relative to the suite, relative to another folder."""
    return Path(os.path.relpath(suite.parent / file, folder)).as_posix()


def _moved_model(model: Mapping[str, Any], suite: Path, folder: Path) -> dict[str, Any]:
    moved = dict(model)
    for key in ("mlir", "onnx"):
        if key in moved:
            moved[key] = _moved(moved[key], suite, folder)
    if "expected" in moved:
        moved["expected"] = [_moved(file, suite, folder) for file in moved["expected"]]
    if "parameters" in moved:
        moved["parameters"] = {scope: _moved(file, suite, folder) for scope, file in moved["parameters"].items()}
    if "inputs" in moved:
        moved["inputs"] = [
            {**one, "npy": _moved(one["npy"], suite, folder)} if "npy" in one else one for one in moved["inputs"]
        ]
    return moved
