"""The parts that the matrix of programs, targets, threads and releases is measured in; each is a run of its own.

A part takes at most 45 minutes on two cores. What was stopped goes on, and what is finished stays; its lines over the
releases, the judged ratios between neighbours and what failed are kept as Parquet.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import pandas as pd

from harness.cache import write_atomically
from harness.errors import RunError, ToolchainError
from harness.machine.environment import processor
from harness.records.run import Run
from harness.report.releases import Releases, releases_of
from harness.report.run_report import build_report
from harness.store.folders import folder_names
from harness.store.run_directory import load_run
from harness.suite.load import load_suite
from harness.toolchain import releases_named

ROOT = Path(__file__).parents[2]
SUITE = "suites/field.toml"
# A folder for a measurement of one's own, from the project's folder; without it, what is committed goes on.
_OWN = os.environ.get("FIELD_OUT", "")
RESULTS, SITE = Path(_OWN or "results") / "field", Path(_OWN or "results") / "field-site"
KEPT = ROOT / _OWN / "tables" if _OWN else ROOT / "results" / "published" / "field"
IS_COMMITTED = not _OWN
PAGES = ROOT / _OWN / "pages" if _OWN else ROOT / "docs" / "field"
FIRST = "3.0.0"
FLOOR = 0.10  # Below it no step between releases is a finding
# This release and the newest are measured twice, from two installations: no step may be found between the two.
CONTROL = "3.6.0"
DEVICES = ("v3", "host", "v3-threads", "host-threads")
SHARDS = 2
GENERATIONS, FEW_GENERATIONS = 5, 3  # The few of a quick look, and of threads, which repeat what one thread shows
# Seconds of timed turns that a model has in a generation. Its sixteen processes take as long to start.
SECONDS = 1.2


@dataclass(frozen=True, kw_only=True)
class FieldPart:
    """A run of the suite, by what chooses its cases."""

    name: str
    pattern: str
    shard: str | None = None
    tags: tuple[str, ...] = ()

    def run(self) -> Path | None:
        """The folder of its run, finished or not; None where it was not begun."""
        wanted = {"patterns": [self.pattern], "shard": self.shard, "tags": list(self.tags)}
        for name in reversed(folder_names(RESULTS, "run")):
            settings = load_run(RESULTS / name, rounds=False).header.settings
            if settings["purpose"] == "" and all(settings.get(key) == value for key, value in wanted.items()):
                return RESULTS / name
        return None

    @property
    def is_kept(self) -> bool:
        """Whether its tables are there."""
        return (KEPT / f"{self.name}-steps.parquet").is_file()  # the last that is written


def all_parts(*, quick: bool) -> list[FieldPart]:
    """The parts of the whole, or the one of a quick look."""
    if quick:
        return [FieldPart(name="quick", pattern="*@v3", tags=("quick",))]
    shards = [f"{shard}/{SHARDS}" for shard in range(1, SHARDS + 1)]
    return [
        FieldPart(name=f"{device}-{shard[0]}", pattern=f"*@{device}", shard=shard)
        for device in DEVICES
        for shard in shards
    ]


def measure(part: FieldPart, more: Sequence[str], *, quick: bool) -> Run | None:
    """Run a part, or go on with it; the finished run, or None where it was stopped."""
    begun = part.run()
    if begun is None:
        generations = FEW_GENERATIONS if quick or "threads" in part.name else GENERATIONS
        cases = sum(fnmatchcase(case, part.pattern) for case in _groups(part))
        words = [SUITE, "--filter", part.pattern, *(["--shard", part.shard] if part.shard else [])]
        words += [word for tag in part.tags for word in ("--tag", tag)]
        words += ["--generations", str(generations), "--budget", str(round(SECONDS * generations * cases))]
        named = [f"{FIRST}..newest"] if quick else _with_controls()
        words += [word for name in named for word in ("--toolchain", name)]
    else:
        words = ["--resume", str(begun)]
    if begun is None or not load_run(begun, rounds=False).finished:
        harness("run", *words, "--results", str(RESULTS), "--format", "csv", *more, quiet=True)
        begun = part.run()
    run = load_run(begun) if begun is not None else None
    return run if run is not None and run.finished else None


def _groups(part: FieldPart) -> list[str]:
    """Names of what the run's seconds are shared out over: `model@device`, of all shards."""
    suite = load_suite(ROOT / SUITE)
    models = [model.name for model in suite.models if not part.tags or {*part.tags} & {*model.tags}]
    return [f"{model}@{device.name}" for model in models for device in suite.devices]


def harness(*words: str, quiet: bool = False) -> int:
    """Call the harness from the project's folder; its exit status."""
    command = [sys.executable, "-m", "harness", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL if quiet else None) as child:
        try:
            return child.wait()
        except KeyboardInterrupt:  # which the child got too: it keeps what it has, and says how to go on
            child.wait()
            raise


def _with_controls() -> list[str]:
    """What `--toolchain` says of all releases, each control behind its release."""
    releases = releases_named([f"{FIRST}..newest"], lambda _: None)
    return [name for release in releases for name in (release, *_again(release, releases[-1]))]


def _again(release: str, newest: str) -> list[str]:
    return [str(wheels(release))] if release in (CONTROL, newest) else []


def wheels(release: str) -> Path:
    """A folder with a release's wheels, which is another toolchain than the release itself."""
    folder = ROOT / "results" / "again" / release
    if not folder.is_dir():
        packages = [f"iree-base-{part}=={release}" for part in ("compiler", "runtime")]
        fresh = folder.with_name(f"{release}.part")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(fresh), *packages]
        if subprocess.run(command, check=False).returncode:
            raise ToolchainError(f"pip cannot download IREE {release}, as it says above; call this again when it can")
        fresh.rename(folder)
    return folder


def read_json(file: Path) -> Any:
    """What a file of the evidence holds; None where it is not there."""
    try:
        return json.loads(file.read_text()) if file.is_file() else None
    except ValueError as error:
        raise RunError(f"{file} is damaged ({error}); remove it, or take it from git again") from None


def write_json(file: Path, value: object) -> None:
    """Write a file of the evidence, all of it or nothing."""
    write_atomically(file, f"{json.dumps(value, indent=1)}\n".encode())


# --- A finished part -> tables ---


def keep(part: FieldPart, run: Run) -> None:
    """Write a part's tables."""
    KEPT.mkdir(parents=True, exist_ok=True)
    releases = releases_of(build_report(run), FLOOR)
    facts = {"part": part.name, "run": run.header.id, "cpu": processor(run.header.environment)}
    for name, rows in (("lines", _points(releases)), ("steps", _steps(releases, _page_faults(run)))):
        found = [facts | row for row in rows]
        if not found:
            raise RunError(
                f"part {part.name} has no {name}: no two releases of a case could be measured in {run.header.id}"
            )
        file = KEPT / f"{part.name}-{name}.parquet"
        duckdb.from_df(pd.DataFrame(found)).write_parquet(f"{file}.new", compression="zstd")
        Path(f"{file}.new").replace(file)


def _points(releases: Releases) -> Iterator[dict[str, object]]:
    for line in releases.lines:
        names = {"line": line.name, "model": line.model, "variant": line.variant, "device": line.device}
        for point in line.points:
            yield {**names, **asdict(point)}


def _page_faults(run: Run) -> dict[str, float]:
    """Pages that a call of a case faults in, the median over its turns; of those that run on the thread that calls."""
    found: dict[str, list[float]] = {}
    for turn in (turn for each in run.rounds for turn in each.turns):
        if turn.account is not None and turn.account.on_calling_thread and turn.account.minor_faults is not None:
            found.setdefault(turn.case, []).append(turn.account.minor_faults / turn.calls)
    return {case: median(values) for case, values in found.items()}


def _steps(releases: Releases, faults: Mapping[str, float]) -> Iterator[dict[str, object]]:
    for step in releases.neighbours:
        row = step.row
        yield {
            "line": step.line.name,
            "model": step.line.model,
            "variant": step.line.variant,
            "device": step.line.device,
            "before": step.before,
            "after": step.after,
            "control": is_control(step.before, step.after),
            "verdict": row.verdict,
            "ratio": row.ratio,
            "low": row.ci_low,
            "high": row.ci_high,
            "p": row.p,
            "generations": row.generations,
            "rounds": row.rounds,
            "base_ns": row.base_value,
            "head_ns": row.head_value,
            "base_faults": faults.get(f"{step.line.name}:{step.before}", math.nan),
            "head_faults": faults.get(f"{step.line.name}:{step.after}", math.nan),
        }


def public(release: str) -> str:
    """A toolchain's release, whatever build of it it is."""
    return release.partition("+")[0]


def is_control(before: str, after: str) -> bool:
    """Whether a release is measured beside itself."""
    return public(before) == public(after)
