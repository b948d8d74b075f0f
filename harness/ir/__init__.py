"""Case -> its IR at named phases of the compiler: how many of which ops it has, and its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.lazy import lazily

if TYPE_CHECKING:
    from harness.ir.count import count_files, count_ops
    from harness.ir.dump import dump_phases, entry_phase
    from harness.ir.storage import read_storage
    from harness.ir.text import print_ir
    from harness.ir.values import PLACES, OpCounts, check_wanted, select_counts
else:
    __getattr__ = lazily(
        __name__,
        {
            "count": (
                "count_files",
                "count_ops",
            ),
            "dump": (
                "dump_phases",
                "entry_phase",
            ),
            "storage": ("read_storage",),
            "text": ("print_ir",),
            "values": (
                "PLACES",
                "OpCounts",
                "check_wanted",
                "select_counts",
            ),
        },
    )

__all__ = [
    "PLACES",
    "OpCounts",
    "check_wanted",
    "count_files",
    "count_ops",
    "dump_phases",
    "entry_phase",
    "print_ir",
    "read_storage",
    "select_counts",
]
