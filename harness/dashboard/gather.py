"""History -> what the pages are made of: numbers in arrays, names once each.

Runs, series, names and toolchains are numbered in the database, so that half a million points travel as integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from harness.dashboard.coding import key_of
from harness.dashboard.words import signed
from harness.history.changes import Change

if TYPE_CHECKING:
    import pandas as pd

_RUNS = "SELECT run, row_number() OVER (ORDER BY started, run) - 1 AS run_number FROM runs"
_SERIES = "SELECT series, row_number() OVER (ORDER BY series) - 1 AS series_number FROM series"
_NAMES = """
SELECT suite, "case", row_number() OVER (ORDER BY suite, "case") - 1 AS name_number
FROM (SELECT suite, "case" FROM cases UNION SELECT suite, "case" FROM points)
"""
_TOOLS = """
SELECT toolchain, revision, row_number() OVER (ORDER BY toolchain, revision) - 1 AS tool_number
FROM (SELECT DISTINCT toolchain, revision FROM points)
"""
_SERIES_ROWS = f"""
SELECT s.*, n.name_number FROM series s JOIN ({_NAMES}) n ON n.suite = s.suite AND n."case" = s."case" ORDER BY s.series
"""  # noqa: S608 (no input in it)
_NAME_ROWS = """
SELECT suite, "case", any_value(model) AS model, any_value(variant) AS variant, any_value(device) AS device,
       any_value(peer) AS peer
FROM (SELECT suite, "case", model, variant, device, peer FROM cases
      UNION SELECT suite, "case", model, variant, device, peer FROM points)
GROUP BY suite, "case" ORDER BY suite, "case"
"""
_POINTS = f"""
SELECT s.series_number, r.run_number, n.name_number, t.tool_number, p.value, p.low, p.high,
       coalesce(p.module_sha256 <> lag(p.module_sha256) OVER w, true) AND p.module_sha256 <> '' AS new_module
FROM points p JOIN ({_RUNS}) r USING (run) JOIN ({_SERIES}) s USING (series)
     JOIN ({_NAMES}) n ON n.suite = p.suite AND n."case" = p."case"
     JOIN ({_TOOLS}) t ON t.toolchain = p.toolchain AND t.revision = p.revision
WINDOW w AS (PARTITION BY p.series ORDER BY r.run_number)
ORDER BY s.series_number, r.run_number
"""  # noqa: S608 (no input in it)
# The toolchain is taken out of the commands, so that one text stands for those of all nights.
_CASES = f"""
SELECT r.run_number, n.name_number, c.role, c.toolchain, c.status, c.stage, c.message, c.flags,
       CASE WHEN c.toolchain = '' OR contains(c.repro, chr(1)) THEN c.repro
            ELSE replace(c.repro, c.toolchain, chr(1)) END AS repro
FROM cases c JOIN ({_RUNS}) r USING (run) JOIN ({_NAMES}) n ON n.suite = c.suite AND n."case" = c."case"
WHERE r.run_number >= {{first}} AND r.run_number < {{end}}
ORDER BY r.run_number, n.name_number, c.toolchain
"""  # noqa: S608 (likewise)
_CASES_AT_ONCE = 200_000


class Source(Protocol):
    """What a dashboard is made of; `harness.history.open.History` is one."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be read, and why."""

    def query(self, sql: str) -> pd.DataFrame:
        """The answer of DuckDB over the views of a history."""


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Everything but what became of single cases, which is read run by run.

    Attributes:
        place: The results folder, as the user gave it; commands name it.
        runs: Table `runs` in order of time, with `key`; its index is what `run_number` counts.
        series: View `series` by id, with `key` and `name_number`.
        names: Suite, case, model, variant, device and peer of every case.
        tools: Toolchain and revision of points.
        points: Numbers of series, run, name and tool, value, low, high, new_module; by series, then time.
        comparisons: Table `comparisons`, newest first.
    """

    source: Source
    place: str
    runs: pd.DataFrame
    series: pd.DataFrame
    names: pd.DataFrame
    tools: pd.DataFrame
    points: pd.DataFrame
    comparisons: pd.DataFrame
    changes: tuple[Change, ...]
    notes: tuple[str, ...]

    def batches_of_cases(self) -> Iterator[tuple[range, pd.DataFrame]]:
        """Table `cases` of some runs at a time."""
        total = len(self.runs)
        cases = max(int(self.runs["cases"].max()), 1) if total else 1
        step = max(1, _CASES_AT_ONCE // cases)
        for first in range(0, total, step):
            end = min(first + step, total)
            yield range(first, end), self.source.query(_CASES.format(first=first, end=end))


def gather(source: Source, place: str, changes: Sequence[Change]) -> Gathered:
    """Read a history."""
    runs = source.query("SELECT * FROM runs ORDER BY started, run")
    runs["key"] = [key_of(run) for run in runs["run"]]
    series = source.query(_SERIES_ROWS)
    series["key"] = [key_of(one) for one in series["series"]]
    return Gathered(
        source=source,
        place=place,
        runs=runs,
        series=series,
        names=source.query(_NAME_ROWS),
        tools=source.query(f"{_TOOLS} ORDER BY tool_number"),
        points=source.query(_POINTS),
        comparisons=source.query('SELECT * FROM comparisons ORDER BY created DESC, comparison, metric, "case"'),
        changes=tuple(replace(change, evidence=signed(change.evidence)) for change in changes),
        notes=source.notes,
    )
