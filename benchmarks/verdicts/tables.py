"""The tables of docs/statistics.md: every number in them is counted, none is typed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from benchmarks.documents import replace_between
from benchmarks.verdicts.facts import Facts
from benchmarks.verdicts.goals import goals
from benchmarks.verdicts.preempted import preempted_rounds
from benchmarks.verdicts.programs import workloads
from benchmarks.verdicts.recording import Recorded
from benchmarks.verdicts.rival_tables import rivals, statistics
from benchmarks.verdicts.stream_names import slowdown_of
from benchmarks.verdicts.trials import Streams
from benchmarks.verdicts.verdict_tables import beside_others, clocks, false_alarms, power, together, waiting
from harness.report.markdown import blocks, details, table

BEGIN, END = "<!-- made by `make verdicts`: begin -->", "<!-- made by `make verdicts`: end -->"


@dataclass(frozen=True, kw_only=True)
class Recording:
    """All streams of one machine."""

    streams: Streams
    facts: Facts | None


def write_tables(document: Path, here: Recording, elsewhere: Recording | None) -> None:
    """Replace what stands between the document's marks.

    Args:
        elsewhere: Of another machine; only the goals are counted there.

    Raises:
        RuntimeError: There are no such marks.
    """
    replace_between(document, BEGIN, END, render(here, elsewhere))


def render(here: Recording, elsewhere: Recording | None) -> str:
    """All tables, as Markdown."""
    streams = here.streams
    return blocks(
        "### What was recorded",
        "The streams took turns, a few generations each. `ms a call` is the base's, by the clock that decides; `taken` "
        "is the share of the time of its turns that other processes took; threads of one device also take some from "
        "each other.",
        recorded(here),
        f"Elsewhere: {recorded(elsewhere)}" if elsewhere else "",
        "### The goals",
        goals(streams, elsewhere.streams if elsewhere else {}),
        "### False alarms: a module against itself",
        false_alarms(streams),
        "### Power: heads that are slower by a known share",
        power(streams),
        "### Own time and wall time",
        clocks(streams),
        "### Devices with threads",
        preempted_rounds(streams),
        "### Beside others",
        beside_others(streams),
        "### Heads that wait",
        waiting(streams),
        "### Many rows in one comparison",
        together(streams),
        "### Other tools' rules on the same turns",
        rivals(streams, quiet=True),
        "### Other tools' rules beside others",
        rivals(streams, quiet=False),
        "### Which statistic of a generation",
        statistics(streams),
    )


def recorded(recording: Recording) -> str:
    """Where, when, and each stream's size."""
    streams, facts = recording.streams, recording.facts
    every = [one for stream in streams.values() for one in stream]
    when = [f"{datetime.fromtimestamp(one.started_unix, timezone.utc):%Y-%m-%d %H:%M}" for one in every]
    where = "on a machine that was not noted"
    if facts is not None:
        kind = "virtual machine" if facts.virtual else "machine"
        where = f"on {facts.cpu}, {facts.cores} cores ({kind}, {facts.system}), with IREE {facts.iree}"
    titles = {name: one.title for name, one in workloads().items()}
    rows = [
        [
            name,
            titles.get(slowdown_of(name)[0], "-"),
            f"{np.median([np.median(one.sides[0]) for one in stream]) / 1e6:.3g}",
            f"{len(stream)}",
            f"{sum(one.seconds for one in stream):.0f}",
            f"{np.mean([one.seconds for one in stream]):.2f}",
            f"{np.median([len(one.head_first) for one in stream]):.0f}",
            _taken(stream),
        ]
        for name, stream in streams.items()
    ]
    heads = ["stream", "program", "ms a call", "generations", "seconds", "s each", "rounds each", "taken"]
    total = f"{len(every)} generations, {sum(one.seconds for one in every) / 60:.0f} minutes of them"
    return blocks(
        f"Recorded from {min(when)} to {max(when)} UTC {where}: {total}; load average, over a minute, "
        f"{np.median([one.load for one in every]):.1f} (median).",
        details("Each stream", table(heads, rows, numbers=[False, False, *[True] * 6])),
    )


def _taken(stream: Sequence[Recorded]) -> str:
    shares = [share for one in stream for share in one.taken if share is not None]
    return f"{np.mean(shares) * 100:.1f} %" if shares else "-"
