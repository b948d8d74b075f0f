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
from harness.plugins.registry import PLUGINS, apply_plugin

__all__ = [
    "PLUGINS",
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
    "package_file",
    "written_file",
]
