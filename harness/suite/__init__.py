"""suite.toml -> Suite."""

from harness.suite.load import LoadedSuite, load_suite

__all__ = ["LoadedSuite", "load_suite"]
