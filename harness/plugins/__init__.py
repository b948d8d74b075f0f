"""Preprocessing plugins, by their registered names."""

from harness.plugins.registry import Plugin, load_plugin, registered_plugins

__all__ = ["Plugin", "load_plugin", "registered_plugins"]
