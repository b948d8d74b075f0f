"""IREE's own tests as suites: a checkout of iree-test-suites -> tables of models, and the files that they name.

Its tests are Python, JSON and raw files in four forms, which https://github.com/iree-org/iree-test-suites describes. A
suite that is written from them has the same programs, inputs, right outputs, tolerances, flags, skips and goldens, and
runs like any other.
"""

from harness.upstream.write import write_suites

__all__ = ["write_suites"]
