"""One plan for several toolchains: the plans of each, put together so that their cases are measured side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.records.case import Case


def across_toolchains(plans: Sequence[Sequence[Case]]) -> tuple[Case, ...]:
    """The cases of one suite under several toolchains, each case followed by itself under the others.

    A single plan is left as it is. In a plan of several, names end in the toolchain, as in `net/stock@cpu:3.12.0`, and
    each group has one baseline: the suite's baseline variant under the first toolchain that runs it here. So the other
    toolchains' cases, those of the baseline variant included, are compared with that. Peers know no toolchain, and are
    there once.

    Args:
        plans: What `plan_cases` gave for each toolchain: the same cases in the same order.
    """
    if len(plans) == 1:
        return tuple(plans[0])
    compared_with = _baseline_toolchains(plans)
    return tuple(
        case
        if case.peer is not None
        else replace(
            case,
            name=f"{case.name}:{case.toolchain}",
            baseline=case.baseline and compared_with[case.group] == case.toolchain,
        )
        for alike in zip(*plans, strict=True)
        for case in (alike[:1] if alike[0].peer is not None else alike)
    )


def _baseline_toolchains(plans: Sequence[Sequence[Case]]) -> Mapping[str, str]:
    """For each group, the first toolchain under which its baseline variant is not skipped; else the first of all."""
    found: dict[str, str] = {}
    for skipped_too in (False, True):
        for plan in plans:
            for case in plan:
                if case.baseline and (skipped_too or case.skip is None):
                    found.setdefault(case.group, case.toolchain)
    return found
