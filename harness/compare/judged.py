"""Rows judged by IREE's own old rule, for people who must compare with old reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from harness.compare.pairs import Pair
from harness.compare.upstream import UPSTREAM_METRICS, judge_upstream, upstream_name
from harness.records.comparison import Row


def judge_by_upstream(rows: Iterable[Row], pairs: Mapping[str, Pair], architecture: str) -> Iterator[Row]:
    """The rows that upstream had, with its verdicts; what it did not judge is left out, and so are our intervals.

    A row without figures, such as a failed or an identical one, keeps its verdict.

    Args:
        pairs: By name, as in the rows' `case`.
        architecture: Of the machine, as platform.machine() has it.
    """
    for row in rows:
        if row.metric not in UPSTREAM_METRICS:
            continue
        if row.base_value is None or row.head_value is None:
            yield row
            continue
        name = upstream_name(pairs[row.case].case, architecture)
        judged = judge_upstream(row.metric, name, row.base_value, row.head_value)
        yield replace(
            row,
            verdict=judged.verdict,
            floor=judged.floor,
            reason=judged.reason,
            ratio=row.head_value / row.base_value if row.base_value else None,
            ci_low=None,
            ci_high=None,
            p=None,
        )
