"""Nights of a made-up machine: runs of one small suite under a reference toolchain and the newest."""

import hashlib
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np

from harness.history.changes import Change
from harness.history.failures import FailingCase
from harness.history.series import SeriesRow
from harness.records.run import Run, ToolchainRecord
from harness.report.rows import rows_of
from harness.store.run_directory import Record, RunDirectory
from harness.store.schema import TABLES, RowsOf, connect, create_tables, insert_rows
from harness.store.tables import Tables
from tests.report.builders import make_build, make_case, make_header, make_rounds

REFERENCE, NEWEST = "3.12.0", "3.13.0"
FIRST_NIGHT = datetime(2026, 1, 1, 2, tzinfo=timezone.utc)
_VARIANTS = {"stock": 2e6, "tiled": 1.2e6}

Factor = Callable[[int], float]


def night_id(night: int, suite: str = "nightly") -> str:
    """Id of the run of a night."""
    return f"{FIRST_NIGHT + timedelta(days=night):%Y%m%d-%H%M%S}-{suite}"


def level(night: int) -> float:
    """No change."""
    return 1.0


def step(at: int, by: float) -> Factor:
    """From one night on, everything takes so many times as long."""
    return lambda night: by if night >= at else 1.0


def make_night(
    night: int = 0,
    *,
    machine: Factor = level,
    compiler: Factor = level,
    toolchains: Sequence[str] = (REFERENCE, NEWEST),
    same_modules: bool = False,
    generations: int = 2,  # noise between them is what matters to a history
    rounds: int = 2,
    dispatches: int = 7,
    reference_dispatches: int | None = None,
    **given: Any,
) -> Run:
    """One night's run, finished, with these fields of its header.

    `machine` and `compiler` say how much slower everything, and what the newest toolchain compiles, is.
    """
    noise, began, newest = np.random.default_rng(night), FIRST_NIGHT + timedelta(days=night), toolchains[-1]
    cases = tuple(
        make_case(
            "net",
            variant,
            "cpu",
            id=hashlib.sha256(variant.encode()).hexdigest()[:16],
            name=f"net/{variant}@cpu{f':{toolchain}' if len(toolchains) > 1 else ''}",
            toolchain=toolchain,
            baseline=(variant, toolchain) == ("stock", toolchains[0]),
        )
        for variant in _VARIANTS
        for toolchain in toolchains
    )
    records = [ToolchainRecord(version=each, revision="5e" * 20, compiler_sha256="c0" * 32) for each in toolchains]
    if not same_modules:
        revision = hashlib.sha1(str(night).encode(), usedforsecurity=False).hexdigest()
        records[-1] = replace(records[-1], revision=revision)
    facts: dict[str, Any] = {
        "id": night_id(night),
        "suite": "suites/nightly.toml",
        "suite_name": "nightly",
        "started": began.isoformat(timespec="seconds"),
        "toolchains": tuple(records),
        "harness_commit": "35217dcf00dfeedc0ffee",
        **given,
    }
    code = "a" if same_modules else f"{night:04d}"
    builds = [
        make_build(
            case,
            code=f"{case.variant}{case.toolchain}{code if case.toolchain == newest else ''}".encode().hex(),
            dispatches=dispatches if case.toolchain == newest else reference_dispatches or dispatches,
            copies=2,
            transient=4096,
            cached=case.toolchain != newest,
        )
        for case in cases
    ]
    speed = machine(night) * (1 + 0.008 * noise.standard_normal())
    wall_ns = {
        case.name: _VARIANTS[case.variant]
        * (compiler(night) if case.toolchain == newest else 1.0)
        * speed
        * (1 + 0.003 * noise.standard_normal())
        for case in cases
    }
    measured = make_rounds("net@cpu", wall_ns, generations=generations, rounds=rounds, instructions=False)
    return Run(header=make_header(cases, **facts), builds=tuple(builds), rounds=tuple(measured), finished=True)


def make_nights(count: int, **given: Any) -> list[Run]:
    """One run a night."""
    return [make_night(night, **given) for night in range(count)]


def of_other_programs(run: Run) -> Run:
    """The run as if all toolchains had been given something else to compile."""
    builds = (replace(one, module_sha256=f"7a7a{one.module_sha256}"[:64]) for one in run.builds)
    return replace(run, builds=tuple(builds))


def with_compile_times(run: Run, factor: float) -> Run:
    """The run with modules that all took about so many seconds to compile."""
    noise = np.random.default_rng(int(run.header.started[8:10]) + 100)
    took = int(1e9 * factor * (1 + 0.01 * noise.standard_normal()))
    return replace(run, builds=tuple(replace(one, cached=False, compile_ns=took) for one in run.builds))


def with_peer(run: Run) -> Run:
    """The run with a peer that takes what the reference toolchain's stock case does."""
    case = make_case("net", "ort", "cpu", id="feedfeedfeedfeed", name="net/ort@cpu", peer="onnxruntime", toolchain="")
    rounds = []
    for one in run.rounds:
        beside = next(turn for turn in one.turns if turn.case == f"net/stock@cpu:{REFERENCE}")
        rounds.append(replace(one, turns=(*one.turns, replace(beside, case=case.name, counters={}))))
    environment = {**run.header.environment, "peers": {"ort": "onnxruntime 1.20.0"}}
    header = replace(run.header, cases=(*run.header.cases, case), environment=environment)
    return replace(run, header=header, rounds=tuple(rounds))


class InMemory(Tables):
    """A history of runs that lie in no folder: the tables of a results folder, without files."""

    def __init__(
        self,
        runs: Sequence[Run] = (),
        tables: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Of runs, or of the rows of tables; a column that a row does not have is NULL."""
        self.connection = connect()
        self.notes = list(notes)
        self._turns_loaded = True
        create_tables(self.connection)
        of_runs = [rows_of(run) for run in runs]
        filled = {name: list(itertools.chain.from_iterable(rows.get(name, ()) for rows in of_runs)) for name in TABLES}
        for name, rows in (filled if tables is None else tables).items():
            insert_rows(self.connection, name, [defaultdict(lambda: None, row) for row in rows])


def store(results: Path, run: Run, rows: RowsOf | None = None) -> Path:
    """A run's folder, as `harness run` leaves it behind; without `rows`, without tables."""
    with RunDirectory.create(results, run.header) as directory:
        kept: tuple[tuple[Record, ...], ...] = (run.builds, run.ir, run.checks, run.references, run.rounds, run.lost)
        for record in itertools.chain.from_iterable(kept):
            directory.append(record)
        if run.finished:
            directory.finish(lambda _: "# The report\n", rows)
        return directory.path


def make_series(series: str, **facts: Any) -> SeriesRow:
    """A series of a stock case under the newest toolchain."""
    defaults: dict[str, Any] = {
        "suite": "esrgan", "case": "rdb/stock@cpu", "case_id": "c1", "model": "rdb", "variant": "stock",
        "device": "cpu", "peer": "", "role": "newest", "machine_class": "AMD EPYC, 2 cores", "metric": "latency",
        "unit": "ns", "points": 30, "first_run": "a", "last_run": "b", "last_value": 1e6,
    }  # fmt: skip
    return SeriesRow(series=series, **{**defaults, **facts})


def make_change(**facts: Any) -> Change:
    """A latency that the compiler made longer at `run25`."""
    defaults: dict[str, Any] = {
        "series": "a335a65fb23408a2", "suite": "nightly", "case": "net/stock@cpu", "metric": "latency", "unit": "ns",
        "machine_class": "AMD EPYC, 2 cores", "role": "newest", "kind": "step", "direction": "slower",
        "before": 2e6, "after": 2.08e6, "first_bad": "run25", "last_good": "run24", "earliest": "run25",
        "latest": "run25", "started": "2026-02-10T02:00:00+00:00", "p": 1e-9, "cause": "compiler",
        "evidence": "the ratio to the reference toolchain 3.12.0 moved by +3.9 %",
        "toolchain_before": "3.13.0 (aaaaaaaaaa)", "toolchain_after": "3.13.0 (bbbbbbbbbb)", "commits": "",
        "points": 30, "until": "run25",
    }  # fmt: skip
    values = {**defaults, **facts}
    return Change(**{"ratio": values["after"] / values["before"] if values["before"] else math.inf, **values})


def make_news(**facts: Any) -> FailingCase:
    """A case that fails to compile since `run07`."""
    defaults: dict[str, Any] = {
        "suite": "nightly", "case": "net/tiled@cpu", "machine_class": "AMD EPYC, 2 cores",
        "since": "run07", "started": "2026-01-08T02:00:00+00:00", "toolchain": "3.13.0", "runs": 3,
        "stage": "compile", "message": "iree-compile exited with 1: cannot tile", "recent": True,
    }  # fmt: skip
    return FailingCase(**{**defaults, **facts})
