"""IREE's own tests, of https://github.com/iree-org/iree-test-suites, as suites that run like any other."""

from harness.upstream.write import write_suites

__all__ = ["write_suites"]
