"""suite.toml -> Suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.lazy import lazily

if TYPE_CHECKING:
    from harness.suite.lists import find_list
    from harness.suite.load import LoadedSuite, load_suite
else:
    __getattr__ = lazily(
        __name__,
        {
            "lists": ("find_list",),
            "load": (
                "LoadedSuite",
                "load_suite",
            ),
        },
    )

__all__ = ["LoadedSuite", "find_list", "load_suite"]
