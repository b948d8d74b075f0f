"""How far the machine's verdicts can be trusted: one line under every report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.records.comparison import Row, SelfcheckFacts


def machine_line(selfcheck: SelfcheckFacts | None) -> str:
    """How often this machine's verdicts are wrong, and what they see; plain text of nothing but words and numbers."""
    if selfcheck is None or not selfcheck.rows or not math.isfinite(selfcheck.upper_bound):
        return "this machine's A/A rate is not known; `harness selfcheck SUITE` measures it"
    if selfcheck.detects is None or not math.isfinite(selfcheck.detects):
        detects = "detects nothing smaller than a doubling"
    else:
        detects = f"detects {_share(selfcheck.detects)}"
    suite = "".join(letter if letter.isprintable() else " " for letter in selfcheck.suite)  # it may be anybody's
    time = f" in {selfcheck.seconds:.0f} s" if math.isfinite(selfcheck.seconds) else ""
    return (
        f"on this machine: {selfcheck.flagged} of {selfcheck.rows} A/A rows flagged (at most "
        f"{_share(selfcheck.upper_bound)} by the 95 % bound); {detects}{time} (checked with {suite})"
    )


def controls_line(controls: Sequence[Row]) -> str:
    """What the A/A controls of a comparison showed; "" without any."""
    if not controls:
        return ""
    flagged = sum(row.verdict in ("regressed", "improved") for row in controls)
    what = (
        "1 identical row was measured as an A/A control"
        if len(controls) == 1
        else f"{len(controls)} identical rows were measured as A/A controls"
    )
    if not flagged:
        failed = sum(row.verdict == "failed" for row in controls)
        return f"{what}: none flagged{f', {failed} failed' if failed else ''}"
    return f"{what}: {flagged} flagged, so some verdicts here are likely to be false too"


def _share(value: float) -> str:
    """Two digits of a small share: `0.75 %`."""
    return f"{value * 100:.2g} %" if value < 0.1 else f"{value * 100:.0f} %"
