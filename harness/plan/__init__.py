"""Suite -> [Case]; pure."""

from harness.plan.cases import Selection, plan_cases, unknown_flags
from harness.plan.cell import chain_of, suits
from harness.plan.chain import Arranged
from harness.plan.toolchains import across_toolchains
from harness.plan.values import Case

__all__ = ["Arranged", "Case", "Selection", "across_toolchains", "chain_of", "plan_cases", "suits", "unknown_flags"]
