"""The Python rewrites of the built-in plugins. They run under a toolchain's own Python: see harness.plugins.child."""
