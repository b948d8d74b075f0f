"""Files of other tools as runs: Google Benchmark's JSON, and the job_summary.json of iree-test-suites.

Nothing of such a run can be checked or measured again. Repetitions are its samples, all of one process.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter
from packaging.version import InvalidVersion, Version

from harness import __version__
from harness.errors import UsageError
from harness.options import Results, command_options
from harness.records.case import ID_DIGITS, Case
from harness.records.run import SCHEMA_VERSION, Failure, Header, Lost, Round, ToolchainRecord, Turn
from harness.store.evidence import clock_fault, parse_time
from harness.store.run_directory import Record, new_run_id
from harness.suite.schema import LONGEST_NAME
from harness.text import shown
from harness.verify.outputs import UNIT_NS

# Of a benchmark's name, what Google Benchmark says of how it was measured.
_HOW = re.compile(r"process_time|real_time|manual_time|(iterations|repeats|min_time|min_warmup_time):.*")
_LONGEST_NS = 1e18
# Calls, and what one took in nanoseconds: by the clock, of the CPU.
_Sample: TypeAlias = tuple[int, float, float]
# What a file says of one program: its name, samples, and why it failed.
_Test: TypeAlias = tuple[str, list[_Sample], str]


@command_options
@dataclass(frozen=True)
class ImportOptions(Results):
    """What is imported, and what its files do not say.

    Attributes:
        files: What iree-benchmark-module --benchmark_format=json printed, or job_summary.json of iree-test-suites.
        toolchain_version: The release of IREE (default: what --benchmark_context=iree_version=3.13.0 left in the file).
        suite: The suite's name (default: the file's).
        device: The device's name.
        machine: The class of machines, as in the words of harness doctor (default: the number of cores).
        date: When it was measured, as 2026-11-21 or 2026-11-21T03:00:00+00:00 (default: as the file says).
        results: The results folder.
    """

    files: Annotated[list[Path], Parameter(negative="")]
    _: KW_ONLY
    toolchain_version: str | None = None
    suite: str | None = None
    device: str = "unknown"
    machine: str = ""
    date: str | None = None


def imported_run(file: Path, content: bytes, given: ImportOptions) -> tuple[Header, list[Record]]:
    """A run of one generation with what a file says."""
    try:
        document = json.loads(content)
        context = dict(document.pop("context", {}))
        tests = list(_benchmarks(document["benchmarks"]) if "benchmarks" in document else _summaries(document))
        if len({name for name, *_ in tests}) < max(len(tests), 1):
            raise UsageError("two tests of one name, or none")
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError, UsageError) as error:
        known = "what iree-benchmark-module --benchmark_format=json prints, or a job_summary.json"
        why = f"{error} is missing or unknown" if isinstance(error, KeyError) else "a value in it is of another kind"
        why = str(error) if isinstance(error, (UsageError, json.JSONDecodeError)) else why
        raise UsageError(f"{file}: has another form ({shown(why)}); give {known}") from None
    version = given.toolchain_version or str(context.get("iree_version", "unknown"))
    try:
        version = str(Version(version))
    except InvalidVersion:
        what = f"{shown(version)!r} is no release of IREE; give it, as in --toolchain-version 3.13.0"
        raise UsageError(f"{file}: {what}") from None
    time = parse_time(when := given.date or str(context.get("date", "unknown")))
    if (fault := clock_fault(when, datetime.now(timezone.utc))) or time is None:
        raise UsageError(f"{file}: {fault}; say when it was measured, as in --date 2026-11-21")
    suite, device = plain_name(given.suite or file.stem), plain_name(given.device)
    cases, records, began = list[Case](), list[Record](), int(time.timestamp() * 1e9)
    sha256 = hashlib.sha256(content).hexdigest()
    for name, samples, why in tests:
        case = Case(
            id=hashlib.sha256(f"{suite}/{name}@{device}".encode()).hexdigest()[:ID_DIGITS],
            name=f"{name}/imported@{device}",
            model=name,
            variant="imported",
            device=device,
            toolchain=version,
            baseline=True,
            uri=device,
            backend="",
            pin=False,
            compile_flags=(),
            run_flags=(),
            plugins=(),
            tags=(),
        )
        cases.append(case)
        failure = Failure(stage="measure", message=why)
        records += [Lost(case=case.name, generation=0, failure=failure)] if why else []
        for place, (calls, real, cpu_time) in enumerate(samples):
            turn = Turn(case=case.name, calls=calls, wall_ns=round(real * calls), cpu_ns=round(cpu_time * calls))
            records.append(Round(group=case.group, generation=0, round=place, started_unix_ns=began, turns=(turn,)))
    header = Header(
        schema_version=SCHEMA_VERSION,
        id=new_run_id(f"{suite}-{sha256[:8]}", time),  # the same file gives the same run
        suite=file.name,
        suite_name=suite,
        suite_description="",
        suite_sha256=sha256,
        started=time.isoformat(timespec="seconds"),
        harness_version=__version__,
        harness_commit="",
        command=("harness", "results", "import", file.name),
        baseline="imported",
        toolchains=(ToolchainRecord(version=version, revision="", compiler_sha256=""),),
        models=(),
        cases=tuple(cases),
        groups=(),
        settings={"imported": file.name, "measure": False},
        environment={"machine": {"class": given.machine}, "cpu": {"usable_cores": context.get("num_cpus")}},
    )
    return header, records


def plain_name(text: str) -> str:
    """What a suite could call it."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).lstrip("._+-")[:LONGEST_NAME] or "unknown"


def _benchmarks(rows: Sequence[Mapping[str, Any]]) -> Iterator[_Test]:
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(str(row.get("run_name", row["name"])), []).append(row)
    for name, own in by_name.items():
        right = [row for row in own if not row.get("error_occurred")]
        summaries = {row["aggregate_name"]: row for row in right if "aggregate_name" in row}
        samples = [_sample(row, int(row["iterations"])) for row in right if "aggregate_name" not in row]
        samples = samples or [_sample(summaries[kind], 1) for kind in ("median", "mean") if kind in summaries][:1]
        why = next((shown(str(row["error_message"])) for row in own if "error_message" in row), "the file has no time")
        plain = "-".join(part for part in name.removeprefix("BM_").split("/") if not _HOW.fullmatch(part))
        yield plain_name(plain), samples, "" if samples else why


def _sample(row: Mapping[str, Any], calls: int) -> _Sample:
    real_ns, cpu_ns = (float(row[clock]) * UNIT_NS[row["time_unit"]] for clock in ("real_time", "cpu_time"))
    for clock, ns, least in (("real_time", real_ns, 1e-9), ("cpu_time", cpu_ns, 0)):
        if not least <= ns * calls < _LONGEST_NS:
            raise UsageError(f"{row['name']}: its {clock}, {row[clock]} {row['time_unit']}, is no time")
    return calls, real_ns, cpu_ns


def _summaries(tables: Mapping[str, Mapping[str, Any]]) -> Iterator[_Test]:
    """A file of iree-test-suites: each time is the shortest of ten."""
    for kind, table in tables.items():
        for row in table["rows"]:
            said = {title: value for title, value in zip(table["headers"], row, strict=True) if value != "N/A"}
            name, ms = plain_name(str(said["Name"]).removesuffix(".json")), said.get("Current Time (ms)")
            timed = {"name": name, "real_time": ms, "cpu_time": 0, "time_unit": "ms"}
            why = f"its {kind} test failed" if said["Status"] == "FAILED" and ms is None else ""
            yield name, [] if ms is None else [_sample(timed, 1)], why
