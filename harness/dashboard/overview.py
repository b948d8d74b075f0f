"""What pages tell of suites and machines: what changed, what fails, how each last run went; the heat map.

A template shows each value by its name.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np

from harness.dashboard.encode import cut, day, figure, key_of, metric_title, seconds, sparkline
from harness.dashboard.gather import Gathered
from harness.history.changes import Change
from harness.history.failures import failing_cases, failure_groups
from harness.history.series import frame_records
from harness.metrics import FLOORS, is_exact
from harness.report.units import interval_text, ratio_text

OUTCOME_DAYS = 30  # before the newest run of the suite on that machine; what is older is no longer part of the suite
# Factors at which a shade begins, on both sides of 1; and every shade of a ratio with what it stands for.
BOUNDS = (1.02, 1.1, 1.25, 2.0)
LEGEND = {
    "faster-4": "0.5 and below",
    "faster-3": "0.5 to 0.8",
    "faster-2": "0.8 to 0.91",
    "faster-1": "0.91 to 0.98",
    "even": "within 2 % of 1, or the interval holds 1",
    "slower-1": "1.02 to 1.1",
    "slower-2": "1.1 to 1.25",
    "slower-3": "1.25 to 2",
    "slower-4": "2 and above",
}
BAD = ("failed", "missing")

# The last outcome of every case on every class of machines, with its figures.
_QUERY = """
WITH outcomes AS (
    SELECT cases.*, runs.machine_class AS machine_class,
           max(runs.started) OVER (PARTITION BY cases.suite, runs.machine_class) AS newest
    FROM cases JOIN runs ON runs.run = cases.run
    WHERE finished AND clock = '' AND "role" = 'newest' AND status <> 'not measured yet'
    QUALIFY row_number() OVER (
        PARTITION BY cases.suite, runs.machine_class, cases."case" ORDER BY runs.started DESC, runs.run DESC
    ) = 1
), figures AS (
    SELECT run, "case", metric, series, "value", low, high FROM points WHERE "role" = 'newest'
)
SELECT outcomes.suite, machine_class, device, model, variant, peer, outcomes."case" AS "case", outcomes.run AS run,
       outcomes.started AS started, newest, toolchain, status, stage, message,
       latency."value" AS latency_ns, latency.series AS latency_series,
       ratios."value" AS ratio, ratios.low AS low, ratios.high AS high, ratios.series AS ratio_series
FROM outcomes
LEFT JOIN figures AS latency
    ON latency.run = outcomes.run AND latency."case" = outcomes."case" AND latency.metric = 'latency'
LEFT JOIN figures AS ratios
    ON ratios.run = outcomes.run AND ratios."case" = outcomes."case" AND ratios.metric = 'latency-vs-baseline'
ORDER BY newest DESC, outcomes.suite, machine_class, device, model, peer <> '', variant
"""

Facts = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One case."""

    text: str = ""  # What the cell shows: a ratio, a time where there is no ratio, or what became of the case
    shade: str = "plain"  # Its colour: `faster-1` to `faster-4`, `even`, `slower-1` to `slower-4`, `failed`
    words: str = ""  # All of it in one sentence; "" of an empty cell
    series: str = ""  # Whose course it is the last value of; "" where it has none
    run: str = ""  # The run that has its message; "" of what did not fail
    name: int = 0  # Place of the case among `Gathered.names`


def heat_maps(gathered: Gathered) -> dict[str, list[dict[str, Any]]]:
    """By suite, what a template shows of each device; on several classes of machines, of each of them."""
    by_device: dict[tuple[str, str, str], list[Facts]] = defaultdict(list)
    for outcome in frame_records(gathered.history.query(_QUERY)):
        if seconds(outcome["newest"]) - seconds(outcome["started"]) <= OUTCOME_DAYS * 86_400:
            by_device[outcome["suite"], outcome["machine_class"], outcome["device"]].append(outcome)
    maps: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (suite, _, _), outcomes in by_device.items():
        maps[suite].append(_heat_map(outcomes, gathered))
    return maps


def shade_of(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """The colour of a ratio; `even` where its interval holds 1, since nothing is known then."""
    if not math.isfinite(ratio):
        return "plain"
    if low is not None and high is not None and low <= 1 <= high:
        return "even"
    level = sum(max(ratio, 1 / ratio) >= bound for bound in BOUNDS) if ratio > 0 else len(BOUNDS)
    return "even" if not level else f"{'slower' if ratio > 1 else 'faster'}-{level}"


def _heat_map(outcomes: Sequence[Facts], gathered: Gathered) -> dict[str, Any]:
    """The cases of one suite on one device; the longer of models and variants goes down."""
    baselines = _baselines(outcomes)
    same = set(baselines.values())
    baseline = (next(iter(same)), "") if len(same) == 1 else None
    cells = {(each["variant"], each["peer"], each["model"]): _cell(each, baselines, gathered) for each in outcomes}
    found = dict.fromkeys((variant, peer) for variant, peer, _ in cells)
    # The baseline comes first, and other engines last.
    variants = sorted(found, key=lambda variant: (variant != baseline, bool(variant[1])))
    models = list(dict.fromkeys(outcome["model"] for outcome in outcomes))
    # Columns are variants, rows models; and turned round where there are more variants.
    columns = [[cells.get((*variant, model), Cell()) for model in models] for variant in variants]
    names = [f"{name} (baseline)" if (name, peer) == baseline else name for name, peer in variants]
    is_turned = len(variants) > len(models)
    rows = columns if is_turned else [list(row) for row in zip(*columns, strict=True)]
    heads, titles = (models, names) if is_turned else (names, models)
    newest = max(outcomes, key=lambda outcome: (outcome["started"], not outcome["peer"]))
    return {
        "device": newest["device"],
        "machine": newest["machine_class"],
        "started": newest["started"],
        "toolchain": newest["toolchain"],
        "corner": "Variant" if is_turned else "Model",
        "heads": heads,
        "rows": list(zip(titles, rows, strict=True)),
        "failed": sum(outcome["status"] in BAD for outcome in outcomes),
    }


def _baselines(outcomes: Sequence[Facts]) -> Mapping[str, str]:
    """The baseline variant of each model: the one that has a time and no ratio, where others of its run have one."""
    timed = [outcome for outcome in outcomes if outcome["latency_ns"] is not None]
    rated = {(outcome["model"], outcome["run"]) for outcome in timed if outcome["ratio"] is not None}
    unrated: dict[str, list[str]] = defaultdict(list)
    for outcome in timed:
        if outcome["ratio"] is None and not outcome["peer"] and (outcome["model"], outcome["run"]) in rated:
            unrated[outcome["model"]].append(outcome["variant"])
    return {model: variants[0] for model, variants in unrated.items() if len(variants) == 1}


def _cell(outcome: Facts, baselines: Mapping[str, str], gathered: Gathered) -> Cell:
    status, latency, ratio = outcome["status"], outcome["latency_ns"], outcome["ratio"]

    def says(what: str) -> str:
        title = f"{cut(outcome['model'], 80)}, {cut(outcome['variant'], 80)}"
        return f"{title}: {what} ({day(outcome['started'])} UTC, {cut(outcome['toolchain'], 60)})"

    why = f": {cut(outcome['message'], 300)}" if outcome["message"] else ""
    if status in BAD:
        where = f"failed at {outcome['stage']}" if outcome["stage"] else status
        name = gathered.name_numbers[outcome["suite"], outcome["case"]]
        return Cell(text=f"✗ {status}", shade="failed", words=says(f"{where}{why}"), run=outcome["run"], name=name)
    if latency is None:
        return Cell(text=status, words=says(f"{status}{why}"))
    time = figure(latency, "ns")
    if ratio is None:
        is_baseline = baselines.get(outcome["model"]) == outcome["variant"] and not outcome["peer"]
        words = says(f"the baseline, {time}" if is_baseline else f"{time}, not held against a baseline")
        return Cell(text=time, words=words, series=outcome["latency_series"])
    low, high = outcome["low"], outcome["high"]
    against = cut(baselines.get(outcome["model"], "the baseline variant"), 80)
    words = says(f"{interval_text(ratio, low, high)} of the time of {against}, {time}")
    return Cell(text=ratio_text(ratio), shade=shade_of(ratio, low, high), words=words, series=outcome["ratio_series"])


LATELY_DAYS = 30  # before the newest run
_RECENT = 10  # runs whose noise stands for the machine today
_SERIES = 5  # of one group


# --- Machines ---


def machines(gathered: Gathered) -> list[Facts]:
    """Every class of machines, the one that ran last first."""
    by_class = gathered.runs.groupby("machine_class", sort=False)
    health = [_health(str(name), frame_records(runs)) for name, runs in by_class]
    return sorted(health, key=lambda machine: str(machine["last"]), reverse=True)


def _health(name: str, runs: Sequence[Facts]) -> Facts:
    def lately(fact: str) -> float | None:
        """The median of the last runs that have this figure."""
        values = [run[fact] for run in runs[-_RECENT:] if run[fact] is not None]
        return statistics.median(values) if values else None

    checked = {run["selfcheck_when"]: run for run in runs if run["selfcheck_when"] is not None}
    return {
        "name": name,
        "runs": len(runs),
        "last": runs[-1]["started"],
        "noise": lately("noise"),
        "load": lately("load_1min"),
        "selfchecks": list(reversed(checked.values())),  # runs whose selfchecks differ, the newest first
    }


# --- Suites ---


def suites(gathered: Gathered) -> list[Facts]:
    """Every suite, those with the newest runs first, and of each what changed lately and what fails."""
    groups, maps, failing = _groups(gathered), heat_maps(gathered), _failures(gathered)
    last = {run["suite"]: run for run in gathered.run_rows}
    runs, series = (frame["suite"].value_counts() for frame in (gathered.runs, gathered.series))
    facts = [
        {
            "name": name,
            "last": run,
            "runs": int(runs[name]),
            "series": int(series.get(name, 0)),
            "maps": maps.get(name, []),
            "groups": groups[name],
            "failing": failing[name],
        }
        for name, run in last.items()
    ]
    return sorted(facts, key=lambda suite: str(suite["last"]["started"]), reverse=True)


def known_changes(gathered: Gathered) -> list[Facts]:
    """Changes of the last 30 days of the history that are acknowledged or marked as fixed, the newest first."""
    recent = set(lately(gathered))
    return [
        {"change": event.lead, "cases": len(event.cases), "said": gathered.said(event.lead)}
        for event in dict.fromkeys(gathered.settled.values())
        if not recent.isdisjoint(event.changes)
    ]


def _failures(gathered: Gathered) -> dict[str, list[Facts]]:
    """By suite the cases that fail, once a cause, the latest first."""
    whole = [row for row in gathered.run_rows if row["finished"] and not row["clock"]]
    last = {(row["suite"], row["machine_class"]): row for row in whole}
    failures: dict[str, list[Facts]] = defaultdict(list)
    for group in failure_groups(failing_cases(gathered.history, last=1)):
        first = group[0]
        where = f"failed at {first.stage}" if first.stage else "failed" if first.message else "missing"
        cases = [{"case": case.case, "name": gathered.name_numbers[case.suite, case.case]} for case in group]
        facts = {"first": first, "last": last[first.suite, first.machine_class], "where": where, "cases": cases}
        failures[first.suite].append(facts)
    return failures


def lately(gathered: Gathered) -> list[Change]:
    """Changes of the last 30 days of the history, the newest first, but small ones and the reference toolchain's."""
    changes = (change for change in gathered.changes if change.role != "reference" and not is_small(change))
    recent = [change for change in changes if is_recent(gathered, change.started)]
    return sorted(recent, key=lambda change: change.started, reverse=True)


def is_recent(gathered: Gathered, started: str) -> bool:
    """Whether it is of the last 30 days of the history."""
    return seconds(gathered.runs["started"].iloc[-1]) - seconds(started) <= LATELY_DAYS * 86_400


def is_small(change: Change) -> bool:
    """Whether it is a counted figure's, and below the metric's floor: a module that grew by 0.06 %."""
    return is_exact(change.metric) and abs(change.ratio - 1) < FLOORS.get(change.metric, 0.0)


def _groups(gathered: Gathered) -> dict[str, list[Facts]]:
    """By suite, new changes that came with one run and have one cause."""
    bundles: dict[tuple[str, str, str], list[Change]] = defaultdict(list)
    for change in lately(gathered):
        if change not in gathered.settled:
            bundles[change.suite, change.first_bad, change.cause].append(change)
    groups: dict[str, list[Facts]] = defaultdict(list)
    for (suite, _, _), bundle in bundles.items():
        groups[suite].append(_group(gathered, bundle))
    for own in groups.values():
        own.sort(key=lambda group: _order(group["first"]))
    return groups


def _group(gathered: Gathered, changes: Sequence[Change]) -> Facts:
    # Times before counted figures, and the largest first: what people look for.
    ordered = sorted(changes, key=_order)
    worse, first = sum(change.is_worse for change in changes), ordered[0]
    return {
        "first": first,  # of which cause, evidence and toolchains are said
        "about": f"{first.case}, {metric_title(first.metric).lower()}",
        "commits": _commits(gathered, first),
        "worse": worse,
        "better": len(changes) - worse,
        "lines": [_line(gathered, change) for change in ordered[:_SERIES]],
        "more": max(0, len(changes) - _SERIES),
    }


def _order(change: Change) -> tuple[bool, float]:
    return change.unit != "ns", -abs(math.log(max(change.ratio, 1e-9)))


def _line(gathered: Gathered, change: Change) -> Facts:
    days = [gathered.runs_by_id[run]["started"][:10] for run in (change.earliest, change.latest)]
    points = gathered.points_by_series.get(change.series, gathered.points[:0])
    place = sum(points["run_number"] < gathered.run_numbers[change.first_bad])
    release = change.toolchain_after.partition(" (")[0]
    anchor = urlencode({"metric": change.metric, "release": release, "run": change.first_bad})
    return {
        "change": change,
        "note": "" if change.earliest == change.latest else " to ".join(days),
        "address": f"series.html?id={key_of(change.series)}#{anchor}",
        "course": sparkline(points["value"].to_numpy(np.float64)),
        "at": (place - 0.5) / max(len(points) - 1, 1),
    }


def _commits(gathered: Gathered, change: Change) -> tuple[str, str] | None:
    """The two revisions of IREE, where it is what ran and both are known and differ."""
    if change.peer or change.toolchain_before == change.toolchain_after:
        return None  # whatever else IREE's version was in these runs
    before, after = (gathered.runs_by_id[run]["revision"] for run in (change.last_good, change.first_bad))
    return (before, after) if before and after and before != after else None
