"""Suite -> [Case]; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.lazy import lazily

if TYPE_CHECKING:
    from harness.plan.chain import Arranged
    from harness.records.case import Case
    from harness.suite.cases import Selection, plan_cases, unknown_flags
    from harness.suite.cell import chain_of, suits
    from harness.suite.toolchains import across_toolchains
else:
    __getattr__ = lazily(
        __name__,
        {
            "cases": (
                "Selection",
                "plan_cases",
                "unknown_flags",
            ),
            "cell": (
                "chain_of",
                "suits",
            ),
            "chain": ("Arranged",),
            "toolchains": ("across_toolchains",),
            "values": ("Case",),
        },
    )

__all__ = ["Arranged", "Case", "Selection", "across_toolchains", "chain_of", "plan_cases", "suits", "unknown_flags"]
