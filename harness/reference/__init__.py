"""iree-benchmark-module's own figure for each case."""

from harness.reference.benchmark_module import benchmark_command, run_benchmark_module

__all__ = ["benchmark_command", "run_benchmark_module"]
