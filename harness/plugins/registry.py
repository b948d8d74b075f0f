"""Plugins by registered name: entry points of the group `harness.plugins`, from installed packages only."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points

from harness.errors import SuiteError
from harness.registered import load_registered
from harness.suite.toml_file import did_you_mean

ENTRY_POINT_GROUP = "harness.plugins"


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A preprocessing step that is expressed in compiler flags, such as a pass pipeline.

    Attributes:
        version: Changes whenever the plugin's effect does; part of a case's identity.
        compile_flags: What it adds to iree-compile's command line, after the variant's own flags.
    """

    name: str
    version: str
    description: str
    compile_flags: tuple[str, ...]

    @property
    def identity(self) -> str:
        """Name and version, as they enter a case's id and the cache key."""
        return f"{self.name}=={self.version}"


def registered_plugins() -> tuple[str, ...]:
    """Names of all plugins that installed packages register, sorted."""
    return tuple(sorted(point.name for point in entry_points(group=ENTRY_POINT_GROUP)))


def load_plugin(name: str) -> Plugin:
    """The plugin of that registered name.

    Raises:
        SuiteError: No package registers it, or the one that does fails to import or gives something else than a Plugin.
    """
    points = tuple(entry_points(group=ENTRY_POINT_GROUP, name=name))
    if not points:
        hint = did_you_mean(name, registered_plugins()) or "; no installed package registers a plugin"
        raise SuiteError(f"there is no plugin {name!r}{hint}")
    return load_registered(points[0], Plugin, "harness.plugins.Plugin", f"plugin {name!r}")
