"""suite.toml -> Suite."""

from harness.suite.lists import find_list
from harness.suite.load import LoadedSuite, load_suite

__all__ = ["LoadedSuite", "find_list", "load_suite"]
