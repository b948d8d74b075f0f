"""Preprocessing plugins, by their registered names: what they are, and what a variant makes them do."""

from harness.plugins.options import NoOptions
from harness.plugins.plugin import (
    Applied,
    CompilerPlugin,
    ExecutablePlugin,
    Flags,
    PassPipeline,
    PdlSpec,
    Plugin,
    PluginFile,
    Rewrite,
    Step,
    TransformLibrary,
    TransformSpec,
    TuningSpec,
    package_file,
    written_file,
)
from harness.plugins.registry import apply_plugin, load_plugin, registered_plugins

__all__ = [
    "Applied",
    "CompilerPlugin",
    "ExecutablePlugin",
    "Flags",
    "NoOptions",
    "PassPipeline",
    "PdlSpec",
    "Plugin",
    "PluginFile",
    "Rewrite",
    "Step",
    "TransformLibrary",
    "TransformSpec",
    "TuningSpec",
    "apply_plugin",
    "load_plugin",
    "package_file",
    "registered_plugins",
    "written_file",
]
