"""Plugins by registered name: entry points of the group `harness.plugins`, from installed packages only."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from harness.errors import SuiteError
from harness.options import check_options
from harness.plugins.values import REWRITE_PHASES, Applied, Plugin, Rewrite, Step
from harness.registered import load_registered
from harness.suite.toml_file import did_you_mean

ENTRY_POINT_GROUP = "harness.plugins"


def registered_plugins() -> tuple[str, ...]:
    """Names of all plugins that installed packages register, sorted."""
    return tuple(sorted(point.name for point in entry_points(group=ENTRY_POINT_GROUP)))


def load_plugin(name: str) -> Plugin[Any]:
    """The plugin of that registered name.

    Raises:
        SuiteError: No package registers it, or the one that does fails to import or gives something else than a Plugin.
    """
    points = tuple(entry_points(group=ENTRY_POINT_GROUP, name=name))
    if not points:
        hint = did_you_mean(name, registered_plugins()) or "; no installed package registers a plugin"
        advice = "" if hint.endswith("?") else "; install the package that brings it"
        raise SuiteError(f"there is no plugin {name!r}{hint}{advice}")
    return load_registered(points[0], Plugin, "harness.plugins.Plugin", f"plugin {name!r}")


def apply_plugin(name: str, options: Mapping[str, Any], where: str = "plugins") -> Applied:
    """A plugin, found by its registered name, with options.

    Args:
        where: The table and key that name it, for error messages: `[variants.shared] plugins`.

    Raises:
        SuiteError: There is no such plugin, an option is wrong, or the plugin cannot say what it does with them.
    """
    try:
        plugin = load_plugin(name)
    except SuiteError as error:
        raise SuiteError(f"{where}: {error}") from error.__cause__
    label = f"plugin {name!r}"
    checked = check_options(plugin.options, options, where=f"{where}: {name}", owner=label, noun="option")
    try:
        steps = tuple(plugin.steps(checked))
        sources = _sources_sha256(steps)
        for file in (getattr(step, "file", None) for step in steps):
            if file is not None:
                file.unique_name  # noqa: B018 (reads it, so that a missing one is told here)
    except SuiteError as error:
        raise SuiteError(f"{where}: {label}: {error}") from None
    except OSError as error:
        raise SuiteError(
            f"{where}: {label}: {error.filename} cannot be read ({error.strerror}); install its package again"
        ) from None
    except Exception as error:
        text = " ".join(str(error).split()) or "no reason given"
        raise SuiteError(
            f"{where}: {label} refuses these options ({type(error).__name__}: {text}); change them or repair it"
        ) from error
    return Applied(plugin=plugin, options=dataclasses.asdict(checked), steps=steps, sources_sha256=sources)


def _sources_sha256(steps: tuple[Step, ...]) -> str:
    """Hash of the Python files of the packages that the rewrites lie in, so that editing one rewrites anew.

    Raises:
        SuiteError: A rewrite names no function of an installed package, or a phase that rewrites cannot stand at.
    """
    folders: set[Path] = set()
    for step in steps:
        if isinstance(step, Rewrite):
            if step.phase not in REWRITE_PHASES:
                hint = did_you_mean(step.phase, REWRITE_PHASES)
                raise SuiteError(f"its rewrite stands at phase {step.phase!r}, where none can{hint}")
            folders.add(_folder_of(step.function))
    digest = hashlib.sha256()
    for file in sorted(file for folder in folders for file in folder.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest() if folders else ""


def _folder_of(function: str) -> Path:
    """The folder of the module that a rewrite's function lies in; the module itself is not imported here."""
    point = EntryPoint(name="rewrite", value=function, group=ENTRY_POINT_GROUP)
    try:
        spec = importlib.util.find_spec(point.module) if point.attr else None
    except (ImportError, AttributeError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise SuiteError(
            f"its rewrite {function!r} names no function of an installed package, as in 'package.module:name'"
        )
    return Path(spec.origin).parent
