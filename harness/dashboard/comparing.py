"""A change of a series -> the command line that compares what was before it with what came after."""

from __future__ import annotations

import glob
import os
import re
import shlex
from typing import TYPE_CHECKING

from harness.compare.sides import PREFIX
from harness.history.changes import Change

if TYPE_CHECKING:
    import pandas as pd

# What can be installed again by its name, as `3.13.0` or `3.14.0rc20261120`.
_RELEASE = re.compile(r"\d+(\.\d+)+((a|b|rc|\.dev|\.post)\d+)?")


class Comparing:
    """Which runs there are, and what they were made with."""

    def __init__(self, runs: pd.DataFrame, place: str) -> None:
        """Args: table `runs`, and the results folder as commands name it."""
        self._runs = {str(row["run"]): row for row in runs.to_dict("records")}
        self._folder = place.rstrip("/") or "/"

    def command(self, change: Change, *, is_peer: bool) -> str:
        """Toolchains are compared where they differ, which works on every machine; else the two runs.

        Args:
            is_peer: Whether another engine ran the case.

        Returns:
            "" for a peer, which `harness compare` leaves out.
        """
        if is_peer:
            return ""
        sides = self._toolchains(change) if change.role == "newest" else ()
        if sides:
            words = [*sides, "--suite", str(self._runs[change.first_bad]["suite_file"])]
            return _line([*words, "--filter", glob.escape(change.case)])
        runs = (change.last_good, change.first_bad)
        paths = [os.path.join(self._folder, run) for run in runs]  # noqa: PTH118 (may be a URL)
        # Where a run has several toolchains, the names of its cases end in them.
        several = {self._has_several(run) for run in runs}
        filters = [f"{glob.escape(change.case)}{':*' if one else ''}" for one in sorted(several)]
        return _line([*paths, *(word for pattern in filters for word in ("--filter", pattern))])

    def _toolchains(self, change: Change) -> tuple[str, ...]:
        if not (change.last_good in self._runs and change.first_bad in self._runs):
            return ()
        pair = [str(self._runs[run]["toolchain"]) for run in (change.last_good, change.first_bad)]
        if pair[0] == pair[1] or not all(_RELEASE.fullmatch(one) for one in pair):
            return ()
        return tuple(f"{PREFIX}{one}" for one in pair)

    def _has_several(self, run: str) -> bool:
        reference = self._runs[run]["reference"] if run in self._runs else None
        return isinstance(reference, str) and bool(reference)


def _line(words: list[str]) -> str:
    return shlex.join(["harness", "compare", *words])
