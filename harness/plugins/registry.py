"""Objects that installed packages register as entry points: builders, peers, and plugins with their options."""

import hashlib
import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from harness.errors import SuiteError
from harness.plugins.child import where_raised
from harness.plugins.options import as_json, check_options
from harness.plugins.plugin import REWRITE_PHASES, Applied, Plugin, Rewrite, Step
from harness.text import did_you_mean, one_line

_T = TypeVar("_T")


@cache
def installed(group: str, _search_path: tuple[str, ...]) -> EntryPoints:
    """The entry points of a group on Python's search path; looking at every package's takes milliseconds."""
    return entry_points(group=group)


@dataclass(frozen=True, kw_only=True)
class Registry(Generic[_T]):
    """What installed packages register under the names of one group of entry points."""

    group: str  # `harness.plugins`
    noun: str  # What each of them is called: `plugin`
    kind: type[_T]  # What each of them has to be an instance of
    kind_name: str  # The public name of that class, for error messages

    @property
    def names(self) -> tuple[str, ...]:
        """All registered names, sorted; nothing is imported."""
        return tuple(sorted({point.name for point in self._points}))

    @property
    def _points(self) -> EntryPoints:
        return installed(self.group, tuple(sys.path))

    def distribution_of(self, name: str) -> str:
        """The package that registers a name, with its version: `iree-harness 0.1.0`; "" where that is unknown."""
        found = next(iter(self._points.select(name=name))).dist
        return f"{found.name} {found.version}" if found is not None else ""

    def package_of(self, name: str) -> str:
        """The package that registers a name."""
        return _package(next(iter(self._points.select(name=name))).value)

    def find(self, name: str, where: str = "") -> _T:
        """What is registered by that name; only its package is imported. `where` names it, for error messages."""
        prefix = f"{where}: " if where else ""
        chosen = self._points.select(name=name)
        if not chosen:
            hint = did_you_mean(name, self.names)
            advice = "" if hint.endswith("?") else "; install the package that brings it"
            raise SuiteError(f"{prefix}there is no {self.noun} {name!r}{hint}{advice}")
        label = f"{prefix}{self.noun} {name!r}"
        values = sorted({point.value for point in chosen})
        if len(values) > 1:
            raise SuiteError(f"{label} is registered by {' and by '.join(values)}; remove all packages but one")
        try:
            found = next(iter(chosen)).load()
        except Exception as error:
            place = where_raised(error, _package(values[0]))
            raise SuiteError(
                f"{label}: {values[0]} cannot be loaded ({_one_line(error)}){place}; "
                "repair or remove the package that registers it"
            ) from error
        if not isinstance(found, self.kind):
            raise SuiteError(f"{label}: {values[0]} is not a {self.kind_name}; ask its package's author")
        return found


PLUGINS: Registry[Plugin[Any]] = Registry(
    group="harness.plugins", noun="plugin", kind=Plugin, kind_name="harness.plugins.Plugin"
)


def apply_plugin(name: str, options: Mapping[str, Any], where: str = "plugins") -> Applied:
    """A plugin, found by its registered name, with options."""
    plugin = PLUGINS.find(name, where)
    label = f"plugin {name!r}"
    if plugin.name != name:
        raise SuiteError(f"{where}: {label} calls itself {plugin.name!r}; ask its package's author")
    checked = check_options(plugin.options, options, where=f"{where}: {name}", owner=label, noun="option")
    try:
        values = as_json(checked)
        steps = plugin.steps(checked)
        if not isinstance(steps, tuple) or not all(isinstance(step, Step) for step in steps):
            raise SuiteError("its steps are no tuple of steps; ask its package's author")
        applied = Applied(plugin=plugin, options=values, steps=steps, sources_sha256=_sources_sha256(steps))
        for file in applied.files:
            file.unique_name  # noqa: B018 (reads it, so that a missing one is told here)
    except SuiteError as error:
        raise SuiteError(f"{where}: {label}: {error}") from None
    except OSError as error:
        raise SuiteError(
            f"{where}: {label}: {error.filename} cannot be read ({error.strerror}); install its package again"
        ) from None
    except Exception as error:
        raise SuiteError(
            f"{where}: {label} refuses these options ({type(error).__name__}: {_one_line(error)})"
            f"{where_raised(error, PLUGINS.package_of(name))}; change them or repair it"
        ) from error
    return applied


def _sources_sha256(steps: tuple[Step, ...]) -> str:
    """Hash of the Python files of the packages that the rewrites lie in, so that editing one rewrites anew."""
    sources: set[Path] = set()
    for step in steps:
        if isinstance(step, Rewrite):
            if step.phase not in REWRITE_PHASES:
                hint = did_you_mean(step.phase, REWRITE_PHASES)
                raise SuiteError(f"its rewrite stands at phase {step.phase!r}, where none can{hint}")
            json.dumps(dict(step.arguments or {}))
            sources.update(_sources_of(step.function))
    digest = hashlib.sha256()
    for file in sorted(sources):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest() if sources else ""


def _sources_of(function: str) -> Iterator[Path]:
    """The Python files that a rewrite may be made of: its module, or all of the package that it lies in."""
    module, _, name = function.partition(":")
    parts = module.split(".")
    try:
        spec = importlib.util.find_spec(module) if name else None
        root = importlib.util.find_spec(".".join(parts[: 2 if parts[0] == "harness" else 1]))
        if spec is None or spec.origin is None or not spec.has_location or root is None:
            raise ImportError("it is in no file")
    except Exception as error:  # of a name that is none, or of a package around the module
        what = f"its rewrite {function!r} names no function of an installed package, as in 'package.module:name'"
        raise SuiteError(f"{what} ({type(error).__name__}: {_one_line(error)})") from None
    yield Path(spec.origin)
    for folder in root.submodule_search_locations or ():
        yield from Path(folder).rglob("*.py")


def _package(function: str) -> str:
    """`example_plugins.rewrites:one_exp` -> `example_plugins`."""
    return function.partition(":")[0].partition(".")[0]


def _one_line(error: Exception) -> str:
    return one_line(str(error)) or "no reason given"
