"""Suite -> [Case]; pure."""

from harness.plan.cases import Selection, plan_cases, suits, unknown_flags
from harness.plan.values import Case

__all__ = ["Case", "Selection", "plan_cases", "suits", "unknown_flags"]
