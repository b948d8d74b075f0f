"""What makes points one series: a hash of everything that must stay the same for them to be compared."""

from __future__ import annotations

import hashlib
import json

from harness.history.values import Role

ID_DIGITS = 16

LATENCY_VS_BASELINE = "latency-vs-baseline"
LATENCY_VS_REFERENCE = "latency-vs-reference"


def series_id(suite: str, case_id: str, metric: str, machine_class: str, role: Role, beside: str = "") -> str:
    """16 hex digits that tell one series from all others.

    Args:
        suite: Its name.
        case_id: Of what is compiled and how it runs; the same after the variant was renamed.
        machine_class: In words, see harness.history.machine_class.
        beside: What else has to stay the same: the release of a reference or of another fixed toolchain, or the case's
            name where a suite has two cases of one id.
    """
    definition = [suite, case_id, metric, machine_class, role, beside]
    text = json.dumps(definition, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]


def toolchain_role(place: int, count: int) -> Role:
    """What the toolchain at a place (from 0) is among so many: the last is the newest, the first of several fixed."""
    if place == count - 1:
        return "newest"
    return "reference" if place == 0 else "other"
