"""How often verdicts are right: false alarms, power, and what other tools' rules say of the same turns.

    make verdicts      (or: .venv/bin/python -m benchmarks.verdicts)

records streams of generations with the real compiler and runtime (two hours; stopped with Ctrl-C, it goes on there),
plays them back through the harness's engine and through other tools' rules, and writes the tables of
docs/statistics.md.
"""

import argparse
from pathlib import Path

from benchmarks.verdicts import facts
from benchmarks.verdicts.long_calls import write_long_calls
from benchmarks.verdicts.programs import SLOWDOWNS
from benchmarks.verdicts.recorded_runs import write_recorded_runs
from benchmarks.verdicts.recording import Company, Stream, read, record
from benchmarks.verdicts.tables import Recording, write_tables
from benchmarks.verdicts.timestamps import write_timestamps
from benchmarks.verdicts.trials import by_stream
from harness.toolchain import find_toolchain

ROOT = Path(__file__).parents[2]

_ALL_TIME: Company = "two hogs a core"
_SHORT = ("softmax", "reduction", "depthwise")

STREAMS = (
    *(Stream(workload=workload, slowdown=0, generations=1500) for workload in ("tiny", "softmax", "reduction")),
    Stream(workload="loop", slowdown=0, generations=1000),
    Stream(workload="matmul", slowdown=0, generations=400),
    Stream(workload="depthwise", slowdown=0, generations=300),
    Stream(workload="threads", slowdown=0, generations=400),
    Stream(workload="block", slowdown=0, generations=100),
    Stream(workload="loop", slowdown=0.01, generations=520),
    *(Stream(workload=workload, slowdown=0.01, generations=120) for workload in ("tiny", "threads")),
    *(Stream(workload=workload, slowdown=0.015, generations=60) for workload in _SHORT),
    *(
        Stream(workload=workload, slowdown=slowdown, generations=36)
        for workload in ("loop", "tiny", "threads")
        for slowdown in SLOWDOWNS[2:]
    ),
    Stream(workload="long", slowdown=0.03, generations=120),
    *(Stream(workload="long", slowdown=slowdown, generations=36) for slowdown in (0.01, 0.02, 0.05, 0.10)),
    Stream(workload="softmax", slowdown=0, generations=500, company=_ALL_TIME),
    Stream(workload="reduction", slowdown=0, generations=500, company=_ALL_TIME),
    Stream(workload="loop", slowdown=0, generations=300, company=_ALL_TIME),
    Stream(workload="matmul", slowdown=0, generations=250, company=_ALL_TIME),
    Stream(workload="threads", slowdown=0, generations=150, company=_ALL_TIME),
    Stream(workload="depthwise", slowdown=0, generations=130, company=_ALL_TIME),
    *(Stream(workload=workload, slowdown=0.015, generations=180, company=_ALL_TIME) for workload in _SHORT),
    Stream(workload="long", slowdown=0.03, generations=100, company=_ALL_TIME),
    Stream(workload="matmul", slowdown=0, generations=150, company="hogs that come and go"),
    Stream(workload="loop", slowdown=0.01, generations=150, company="hogs that come and go"),
    Stream(workload="loop", slowdown=0.01, generations=60, company="a hog"),
    *(
        Stream(workload="loop", slowdown=0.03, generations=36, wait=wait, company=company)
        for wait in ("sleep", "pipe", "lock", "pages")
        for company in ("", _ALL_TIME)
    ),
    Stream(workload="slow", slowdown=1, generations=32),
    Stream(workload="slow", slowdown=7, generations=18),
)


def main() -> None:
    """Record what is not recorded yet, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, default=ROOT / "results" / "verdicts.jsonl.gz")
    parser.add_argument("--elsewhere", type=Path, help="a recording of another machine, for the goals")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "statistics.md", help="where the tables go")
    parser.add_argument("--replay", action="store_true", help="record nothing, only write the tables")
    parser.add_argument("--runs", action="store_true", help="only simulate the verdicts of recorded runs, in a minute")
    parser.add_argument("--long", action="store_true", help="only measure what long calls take, in five minutes")
    parser.add_argument("--timestamps", action="store_true", help="only try a Vulkan driver's clock, in two minutes")
    arguments = parser.parse_args()
    if arguments.runs:
        write_recorded_runs(arguments.document)
        return
    if arguments.timestamps:
        write_timestamps(arguments.document, find_toolchain())
        return
    if arguments.long:
        write_long_calls(arguments.document, find_toolchain())
        return
    if not arguments.replay:
        toolchain = find_toolchain()
        facts.note(arguments.recording, toolchain)
        record(STREAMS, arguments.recording, toolchain)
    elsewhere = _load(arguments.elsewhere) if arguments.elsewhere else None
    write_tables(arguments.document, _load(arguments.recording), elsewhere)


def _load(path: Path) -> Recording:
    streams = by_stream(read(path))
    in_order = {stream.name: streams[stream.name] for stream in STREAMS if stream.name in streams}
    return Recording(streams=in_order, facts=facts.noted(path))


if __name__ == "__main__":
    main()
