"""The line itself: suite.toml -> Suite -> [Case] -> [Build] -> [Check] -> [Round] -> a run directory.

Read `run_suite` from top to bottom. Each stage takes what the stages before it gave and what an interrupted run has
already done, and every result is on disk before the next one begins. An `Executor` is where that is done: this machine,
or a fleet, with the same functions of the stages.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness import __version__
from harness.cache import cache_root
from harness.compare.comparison import Plan
from harness.compare.remeasure import RowPlace, ThisMachine
from harness.compile import BuildCache
from harness.compile.iree_compile import CompileRequest, cache_key
from harness.errors import HarnessError, Interrupted, RunError
from harness.machine.environment import harness_commit
from harness.measure.session import only_one_measures
from harness.models.materialize import ModelArtifact, record
from harness.progress import Progress, duration
from harness.records.run import SCHEMA_VERSION, Build, Check, Failure, Header, ModelRecord, Run, ToolchainRecord
from harness.report import render
from harness.report.rows import rows_of
from harness.stages.build import compile_stage, requests_of, require_cache
from harness.stages.checking import contradictions
from harness.stages.count import ir_stage, peak_stage, work_stage
from harness.stages.measure import call_again_stage, lay_out_stage, measure_stage, reference_stage, verify_stage
from harness.stages.models import materialize_models, skip_unfit_peers
from harness.stages.options import RunOptions
from harness.stages.prepare import Context, DevicePlace, Done, FailureNotes, GivenUp, Prepared, prepare
from harness.store.folders import folder_names
from harness.store.run_directory import RunDirectory, load_run, new_run_id, require_writable
from harness.store.work_directory import ComparisonDirectory
from harness.suite.cases import parse_shard
from harness.text import plural
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import environment_here

# So many of the newest runs are looked at.
_MOST_RUNS = 20


def step_seconds(results: Path, models: Collection[str], but: Path) -> dict[str, float]:
    """Mean seconds of a compile and of a check in the newest runs of a results folder with these models."""
    ns: dict[str, list[int]] = {"Compile": [], "Verify": []}
    for name in folder_names(results, "run")[-_MOST_RUNS:]:
        with contextlib.suppress(HarnessError):  # a damaged run says nothing
            run = load_run(results / name, rounds=False)
            if name != but.name and not {model.mlir_sha256 for model in run.header.models}.isdisjoint(models):
                ns["Compile"] += [build.compile_ns for build in run.builds if build.compile_ns]
                ns["Verify"] += [check.wall_ns for check in run.checks if check.wall_ns]
    return {stage: statistics.fmean(every) / 1e9 for stage, every in ns.items() if every}


def to_do(
    context: Context, requests: Sequence[CompileRequest], models: Collection[str], step_s: Mapping[str, float]
) -> tuple[str, dict[str, float]]:
    """What a run that begins or goes on has to do, with these models: in a sentence, and the seconds of its stages."""
    options, done, settings = context.options, context.done, context.directory.header.settings
    records: list[Build | Check] = [*done.builds.values(), *done.checks.values()]
    over = {record.case for record in records if record.failure is not None} | done.checks.keys() | done.lost.keys()
    left = [case for case in context.prepared.cases if case.skip is None and case.model in models]
    checks = sum(case.name not in over and (options.measure or case.peer is None) for case in left)
    cache, keys = BuildCache(cache_root()), {cache_key(request): request.case.name for request in requests}
    cached = sum(cache.find(key, name) is not None for key, name in keys.items())
    compiles = len(keys) - cached
    steps = {"Compile": math.ceil(compiles / options.compilers), "Verify": checks}
    planned_s = {stage: number * step_s[stage] for stage, number in steps.items() if stage in step_s}
    parts = []
    if keys:
        more = f" ({cached:,} more {'is' if cached == 1 else 'are'} in the cache)" if cached else ""
        parts.append(f"{plural(compiles, 'compile')}{more}")
    if checks:
        parts.append(plural(checks, "check"))
    if options.measure:
        had_s = sum(seconds for seconds, _ in done.generations.values())
        planned_s["Measure"] = max(float(settings["budget_s"]) - had_s, 0.0)
        parts.append(f"{planned_s['Measure']:.0f} s of timed rounds")
    is_known = all(stage in step_s for stage, number in steps.items() if number)
    about = f"; about {duration(sum(planned_s.values()))}" if is_known and parts else ""
    return f"To do: {', '.join(parts) or 'nothing more'}{about}", planned_s


class Executor(DevicePlace):
    """Where a run's cases are compiled, checked and measured: this machine, of which a fleet is another kind."""

    hosts: Mapping[str, str] = MappingProxyType({})  # That a suite is planned for, with the class of each

    @property
    def address(self) -> str:
        """What `--fleet` says of it; "": this machine."""
        return ""

    def following(self, runs: Sequence[Path]) -> Executor:  # noqa: ARG002 (a fleet needs it)
        """The same place, for a run that goes on or is compared with these runs, which may be begun only."""
        return self

    def rows(self, plan: Plan, directory: ComparisonDirectory, progress: Progress, noise: float) -> RowPlace:  # noqa: ARG002
        """Where the rows of a comparison are measured."""
        return ThisMachine(progress=progress, noise=noise)

    def run(self, context: Context, artifacts: Mapping[str, ModelArtifact | Failure], scratch: Path) -> None:
        """Do all of a run that is not done yet; each result is on disk before the next one begins."""
        options = context.options
        made = {name: item.sha256 for name, item in artifacts.items() if isinstance(item, ModelArtifact)}
        requests = requests_of(context, artifacts)
        step_s = step_seconds(options.results, made.values(), context.directory.path)
        sentence, planned_s = to_do(context, requests, made, step_s)
        context.progress.note(sentence)
        context.progress.expect(planned_s)
        compile_stage(context, artifacts, requests)
        directory, builds = context.directory, context.done.builds
        directory.before_failure = partial(require_cache, directory.path, artifacts, builds)
        ir_stage(context, artifacts)
        if options.measure:
            work_stage(context, artifacts)
        runnable = lay_out_stage(context, artifacts, scratch)
        right = verify_stage(context, runnable)
        if not options.measure:
            right = call_again_stage(context, right)
            if not context.with_reference:
                return
        with only_one_measures(context.progress.note, wait=options.wait):
            if context.with_reference:
                reference_stage(context, right)
            if options.measure:
                peak_stage(context, right)
                measure_stage(context, right)


LOCAL = Executor()


# --- the run itself ---


def run_suite(
    options: RunOptions,
    progress: Progress,
    toolchains: Sequence[Toolchain] = (),
    executor: Executor = LOCAL,
    *,
    others: Sequence[Toolchain] = (),
    purpose: str = "",
    on_begin: Callable[[RunDirectory], None] = lambda _: None,
    with_reference: bool = True,
) -> Path:
    """Run a suite, or go on with an interrupted run of it; the run's directory."""
    assert options.suite is not None  # noqa: S101 (the caller's contract)
    shard = parse_shard(options.shard) if options.shard is not None else None
    require_writable(options.results)
    if options.resume is not None:
        executor = executor.following([options.resume])
    prepared = prepare(options.suite, options, toolchains, others, shard, executor)
    if shard is not None and not prepared.cases:
        progress.note(f"{options.suite}: shard {shard} has none of its cases; there is nothing to run")
    for finding in contradictions(prepared):
        progress.note(f"{options.suite}: {finding}")
    artifacts = materialize_models(prepared, options.compile_limits, progress)
    prepared = skip_unfit_peers(prepared, artifacts)
    directory, done = _open(prepared, artifacts, options, purpose, executor)
    context = Context(
        prepared=prepared,
        options=options,
        directory=directory,
        done=done,
        progress=progress,
        failures=FailureNotes(progress),
        given_up=GivenUp(keep_going=options.keep_going),
        with_reference=with_reference,
    )
    for case in prepared.cases:
        for before in (done.builds.get(case.name), done.checks.get(case.name)):
            context.given_up.note(case, before.failure if before is not None else None)
    try:
        with directory, tempfile.TemporaryDirectory(prefix="harness-run-") as scratch:
            on_begin(directory)
            directory.before_failure = partial(require_cache, directory.path, artifacts, {})
            if prepared.cases:
                executor.run(context, artifacts, Path(scratch))
            directory.finish(lambda run: render(run, "markdown", full=True), rows_of)
    except KeyboardInterrupt:
        sentence = f"interrupted; go on with `{options.command_to_go_on(directory.path, executor.address)}`"
        raise Interrupted(sentence, run=directory.path) from None
    return directory.path


def _open(
    prepared: Prepared,
    artifacts: Mapping[str, ModelArtifact | Failure],
    options: RunOptions,
    purpose: str,
    executor: Executor,
) -> tuple[RunDirectory, Done]:
    if options.resume is None:
        header = _header(prepared, artifacts, options, purpose, executor)
        return RunDirectory.create(options.results, header), Done(Run(header=header))
    directory, run = RunDirectory.resume(options.resume)
    measured_by = run.header.settings.get("fleet")
    if measured_by and not executor.address:
        raise RunError(f"{options.resume}: hosts of a fleet measured it; go on with --fleet {measured_by}")
    if executor.address and not measured_by:
        raise RunError(f"{options.resume}: one machine measured it; go on there, without --fleet")
    here = {toolchain.version: toolchain.compiler_sha256 for toolchain in prepared.toolchains}
    for begun in run.header.toolchains:
        if here.get(begun.version, begun.compiler_sha256) != begun.compiler_sha256:
            raise RunError(
                f"{options.resume}: this run began with another build of IREE {begun.version} than the one here; start "
                "a new run"
            )
    planned = {(case.id, case.name, case.toolchain) for case in run.header.cases}
    if planned != {(case.id, case.name, case.toolchain) for case in prepared.cases}:
        raise RunError(
            f"{options.resume}: its cases are no longer those of {options.suite} with this toolchain; start a new run"
        )
    if run.header.suite_sha256 != prepared.loaded.text_sha256:
        raise RunError(f"{options.resume}: {options.suite} has changed since this run began; start a new run")
    done = Done(run)
    if executor.address:
        _require_devices(run.header, prepared, done, options.resume)
    directory.set(keep_going=options.keep_going or bool(run.header.settings.get("keep_going")))
    return directory, done


def _require_devices(begun: Header, prepared: Prepared, done: Done, path: Path) -> None:
    """Refuse to end a run without cases whose hosts are away at this moment."""
    able = {case.name for case in begun.cases if case.skip is None}
    for case in prepared.cases:
        if case.skip is not None and case.name in able and not done.has_all_of(case, begun.settings):
            raise RunError(
                f"{path}: {case.name} cannot go on now ({case.skip}); start its host again, or begin a new run"
            )


def _header(
    prepared: Prepared,
    artifacts: Mapping[str, ModelArtifact | Failure],
    options: RunOptions,
    purpose: str,
    executor: Executor,
) -> Header:
    now = datetime.now(timezone.utc)
    suite = prepared.suite
    fleet = {"fleet": executor.address, "hosts": dict(executor.hosts)} if executor.address else {}
    run = {case.variant for case in prepared.cases if case.peer is not None and case.skip is None}
    return Header(
        schema_version=SCHEMA_VERSION,
        id=new_run_id(suite.name, now),
        suite=suite.path.as_posix(),
        suite_name=suite.name,
        suite_description=suite.description,
        suite_sha256=prepared.loaded.text_sha256,
        started=now.isoformat(timespec="seconds"),
        harness_version=__version__,
        harness_commit=harness_commit(),
        command=("harness", *sys.argv[1:]),
        baseline=suite.baseline,
        toolchains=tuple(
            ToolchainRecord(
                version=toolchain.version, revision=toolchain.revision, compiler_sha256=toolchain.compiler_sha256
            )
            for toolchain in prepared.toolchains
        ),
        models=tuple(
            record(artifact, cache=cache_root(), suite_folder=suite.path.parent)
            if isinstance(artifact, ModelArtifact)
            else ModelRecord(name=name, mlir_sha256="", mlir_bytes=0, function="", inputs=(), failure=artifact)
            for name, artifact in artifacts.items()
        ),
        cases=prepared.cases,
        groups=suite.groups,
        floors=dict(suite.floors),
        gates=suite.gates,
        settings={**_settings(prepared, options), "purpose": purpose, **fleet},
        environment={
            **environment_here(),
            "devices": dict(prepared.devices),
            "device_names": dict(prepared.device_names),
            "peers": {label: peer.version for label, peer in prepared.peers.items() if label in run},
        },
    )


def _settings(prepared: Prepared, options: RunOptions) -> dict[str, Any]:
    return {
        "budget_s": options.budget_s or prepared.suite.budget_s,
        "generations": options.generations or prepared.suite.generations,
        "seed": options.seed or 0,
        "jobs": options.compilers,
        "measure": options.measure,
        "patterns": list(options.patterns),
        "tags": list(options.tags),
        "keep_going": options.keep_going,
        **({"shard": str(prepared.shard)} if prepared.shard is not None else {}),
    }
