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
from harness.stages.options import RunOptions, command_in_public
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
    context: Context, requests: Sequence[CompileRequest], step_s: Mapping[str, float]
) -> tuple[str, dict[str, float]]:
    """What a run that begins or goes on has to do: in a sentence, and the seconds of its stages."""
    options, done, settings = context.options, context.done, context.directory.header.settings
    records: list[Build | Check] = [*done.builds.values(), *done.checks.values()]
    over = {record.case for record in records if record.failure is not None} | done.checks.keys() | done.lost.keys()
    made = context.made
    left = [case for case in context.prepared.cases if case.skip is None and case.model in made]
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
    address = ""  # What `--fleet` says of it; "": this machine

    def following(self, runs: Sequence[Path]) -> Executor:  # noqa: ARG002 (a fleet needs it)
        """The same place, for a run that goes on or is compared with these runs, which may be begun only."""
        return self

    def rows(self, plan: Plan, directory: ComparisonDirectory, progress: Progress, noise: float) -> RowPlace:  # noqa: ARG002
        """Where the rows of a comparison are measured."""
        return ThisMachine(progress=progress, noise=noise)

    def run(self, context: Context, scratch: Path) -> None:
        """Do all of a run that is not done yet; each result is on disk before the next one begins."""
        options = context.options
        requests, models = requests_of(context), [model.sha256 for model in context.made.values()]
        step_s = step_seconds(options.results, models, context.directory.path)
        sentence, planned_s = to_do(context, requests, step_s)
        context.progress.note(sentence)
        context.progress.expect(planned_s)
        compile_stage(context, requests)
        context.directory.before_failure = partial(require_cache, context, context.done.builds)
        ir_stage(context)
        if options.measure:
            work_stage(context)
        runnable = lay_out_stage(context, scratch)
        right = verify_stage(context, runnable)
        if not options.measure:
            right = call_again_stage(context, right)
            if context.with_reference:
                reference_stage(context, right)
            return
        with only_one_measures(context.progress.note, wait=options.wait):
            if context.with_reference:
                reference_stage(context, right)
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
    if options.resume is None:
        run = Run(header=_header(prepared, artifacts, options, purpose, executor))
        directory = RunDirectory.create(options.results, run.header)
    else:
        directory, run = RunDirectory.resume(options.resume)
        _require_same(run, options.resume, prepared, executor)
        directory.set(keep_going=options.keep_going or bool(run.header.settings.get("keep_going")))
    context = Context(
        prepared=prepared,
        artifacts=artifacts,
        options=options,
        directory=directory,
        done=Done(run),
        progress=progress,
        failures=FailureNotes(progress),
        given_up=GivenUp(keep_going=options.keep_going),
        with_reference=with_reference and prepared.suite.benchmark_module,
    )
    for case in prepared.cases:
        for before in (context.done.builds.get(case.name), context.done.checks.get(case.name)):
            context.given_up.note(case, before.failure if before is not None else None)
    try:
        with directory, tempfile.TemporaryDirectory(prefix="harness-run-") as scratch:
            on_begin(directory)
            directory.before_failure = partial(require_cache, context, {})
            if prepared.cases:
                executor.run(context, Path(scratch))
            directory.finish(lambda run: render(run, "markdown", full=True), rows_of)
    except KeyboardInterrupt:
        sentence = f"interrupted; go on with `{options.command_to_go_on(directory.path, executor.address)}`"
        raise Interrupted(sentence, run=directory.path) from None
    return directory.path


def _require_same(run: Run, path: Path, prepared: Prepared, executor: Executor) -> None:
    """Refuse to go on with a run where the suite, a toolchain, the machine or the fleet is another one now."""
    begun, suite = run.header, prepared.suite.path
    measured_by = begun.settings.get("fleet")
    if measured_by and not executor.address:
        raise RunError(f"{path}: hosts of a fleet measured it; go on with --fleet {measured_by}")
    if executor.address and not measured_by:
        raise RunError(f"{path}: one machine measured it; go on there, without --fleet")
    here = {toolchain.version: toolchain.compiler_sha256 for toolchain in prepared.toolchains}
    for known in begun.toolchains:
        if here.get(known.version, known.compiler_sha256) != known.compiler_sha256:
            began = f"this run began with another build of IREE {known.version} than the one here"
            raise RunError(f"{path}: {began}; start a new run")
    planned = {(case.id, case.name, case.toolchain) for case in begun.cases}
    if planned != {(case.id, case.name, case.toolchain) for case in prepared.cases}:
        raise RunError(f"{path}: its cases are no longer those of {suite} with this toolchain; start a new run")
    if begun.suite_sha256 != prepared.suite.text_sha256:
        raise RunError(f"{path}: {suite} has changed since this run began; start a new run")
    if executor.address:  # hosts may be away at this moment, and the run is not to end without their cases
        able, done = {case.name for case in begun.cases if case.skip is None}, Done(run)
        for case in prepared.cases:
            if case.skip is not None and case.name in able and not done.has_all_of(case, begun.settings):
                how = "start its host again, or begin a new run"
                raise RunError(f"{path}: {case.name} cannot go on now ({case.skip}); {how}")


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
        suite_sha256=prepared.suite.text_sha256,
        started=now.isoformat(timespec="seconds"),
        harness_version=__version__,
        harness_commit=harness_commit(),
        command=command_in_public(("harness", *sys.argv[1:])),
        baseline=suite.baseline,
        toolchains=tuple(
            ToolchainRecord(
                version=toolchain.version,
                revision=toolchain.revision,
                compiler_sha256=toolchain.compiler_sha256,
                runtime_sha256=toolchain.runtime_sha256,
                remarks=toolchain.remarks,
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
        settings={
            "budget_s": options.budget_s or suite.budget_s,
            "generations": options.generations or suite.generations,
            "seed": options.seed or 0,
            "jobs": options.compilers,
            "measure": options.measure,
            "patterns": list(options.patterns),
            "tags": list(options.tags),
            "keep_going": options.keep_going,
            **({"shard": str(prepared.shard)} if prepared.shard is not None else {}),
            "purpose": purpose,
            **fleet,
        },
        environment={
            **environment_here(),
            "devices": dict(prepared.devices),
            "device_names": dict(prepared.device_names),
            "peers": {label: peer.version for label, peer in prepared.peers.items() if label in run},
        },
    )
