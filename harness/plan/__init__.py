"""Suite -> [Case]; pure."""

from harness.plan.cases import Selection, plan_cases, suits, unknown_flags
from harness.plan.toolchains import across_toolchains
from harness.plan.values import Case

__all__ = ["Case", "Selection", "across_toolchains", "plan_cases", "suits", "unknown_flags"]
