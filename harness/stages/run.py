"""The line itself: suite.toml -> Suite -> [Case] -> [Build] -> [Check] -> [Round] -> a run directory.

Read `run_suite` from top to bottom. Each stage takes what the stages before it gave and what an interrupted run has
already done, and every result is on disk before the next one begins. An `Executor` is where that is done: this machine,
or a fleet, with the same functions of the stages.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
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
from harness.compile.request import CompileRequest, cache_key
from harness.errors import HarnessError, Interrupted, RunError
from harness.machine.environment import harness_commit
from harness.measure.alone import only_one_measures
from harness.models.materialize import ModelArtifact, record
from harness.progress import Progress, WithTimeLeft, time_left
from harness.records.run import SCHEMA_VERSION, Build, Check, Failure, Header, ModelRecord, ToolchainRecord
from harness.report import render
from harness.report.rows import rows_of
from harness.stages.build import compile_stage, requests_of, require_cache
from harness.stages.checking import contradictions, no_longer_needed
from harness.stages.context import (
    COMPILE,
    IR,
    MEASURE,
    REFERENCE,
    VERIFY,
    Context,
    Done,
    FailureNotes,
    GivenUp,
    done_in,
    give_up,
)
from harness.stages.count import ir_stage, kept_counts, peak_stage, work_stage
from harness.stages.measure import call_again_stage, lay_out_stage, measure_stage, reference_stage, verify_stage
from harness.stages.models import materialize_models, skip_unfit_peers
from harness.stages.options import RunOptions
from harness.stages.prepare import DevicePlace, Prepared, prepare
from harness.store.folders import folder_names
from harness.store.journal import new_run_id, require_writable
from harness.store.run_directory import RunDirectory, load_run
from harness.store.work_directory import ComparisonDirectory
from harness.suite.cases import Selection
from harness.suite.shards import parse_shard
from harness.text import plural
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import environment_here

# So many of the newest runs are looked at.
_MOST_RUNS = 20
_NOUNS = {COMPILE: "compiles", VERIFY: "checks"}


def earlier_steps(results: Path, models: Iterable[str], but: Path) -> dict[str, float]:
    """Mean seconds of a compile, a check and a reference in the newest runs of a results folder with these models."""
    wanted = set(models)
    ns: dict[str, list[int | None]] = {COMPILE: [], VERIFY: [], REFERENCE: []}
    for name in list(reversed(folder_names(results, "run")))[:_MOST_RUNS]:
        try:
            run = load_run(results / name, rounds=False)
        except HarnessError:  # a damaged run says nothing
            continue
        if name != but.name and wanted & {model.mlir_sha256 for model in run.header.models}:
            ns[COMPILE] += [build.compile_ns for build in run.builds]
            ns[VERIFY] += [check.wall_ns for check in run.checks]
            ns[REFERENCE] += [reference.wall_ns for reference in run.references]
    known = {stage: [one for one in every if one is not None] for stage, every in ns.items()}
    return {stage: statistics.fmean(every) / 1e9 for stage, every in known.items() if every}


def foresee(
    context: Context, requests: Sequence[CompileRequest], models: Collection[str], step_s: Mapping[str, float]
) -> tuple[str, dict[str, float | None]]:
    """What a run that begins or goes on has to do, with these models: in a sentence, and the seconds of each stage."""
    options, done, prepared = context.options, context.done, context.prepared
    records: list[Build | Check] = [*done.builds.values(), *done.checks.values()]
    given_up = {record.case for record in records if record.failure is not None} | done.lost
    cases = [case for case in prepared.cases if case.skip is None and case.model in models]
    cases = [case for case in cases if case.name not in given_up]
    own = [case.name for case in cases if case.peer is None]
    by_key: dict[str, list[str]] = {}
    for request in requests:
        by_key.setdefault(cache_key(request), []).append(request.case.name)
    cache = BuildCache(cache_root())
    compiles = {key: names for key, names in by_key.items() if cache.find(key, names[0]) is None}
    sharing, cached = sum(map(len, compiles.values())), len(by_key) - len(compiles)
    uncounted = [key for key in by_key if not kept_counts(key).is_file()] if prepared.suite.ir else []
    checks = set(own if not options.measure else [case.name for case in cases]) - done.checks.keys()
    asked = set(own if context.with_reference else ()) - done.references.keys()
    steps = {
        COMPILE: math.ceil(len(compiles) / options.compilers),
        IR: math.ceil(len(uncounted) / options.compilers),
        VERIFY: len(checks),
        REFERENCE: len(asked),
    }
    if COMPILE in step_s:
        step_s = {**step_s, IR: step_s[COMPILE]}  # which is another compile
    planned_s = {
        stage: number * step_s[stage] if stage in step_s else None for stage, number in steps.items() if number
    }
    timed_s = _timed_s(context, {case.group for case in cases}) if options.measure else 0.0
    planned_s[MEASURE] = timed_s

    remarks = [f"for {sharing:,} cases"] if sharing != len(compiles) else []
    remarks += [f"{cached:,} more {'is' if cached == 1 else 'are'} in the cache"] if cached else []
    parts = [plural(len(compiles), "compile") + (f" ({', '.join(remarks)})" if remarks else "")]
    parts = parts if compiles or remarks else []
    parts += [plural(len(checks), "check")] if checks else []
    parts += [f"{timed_s:.0f} s of timed rounds"] if timed_s else []
    unknown = [f"the {noun}" for stage, noun in _NOUNS.items() if steps[stage] and stage not in step_s]
    why = f"no earlier run here says how long {' and '.join(unknown)} take" if unknown else ""
    left = ", and ".join(filter(None, (time_left(planned_s.values()), why)))
    todo = f"To do: {', '.join(parts) or 'nothing more'}"
    return (f"{todo}; {left}" if left else todo), planned_s


def _timed_s(context: Context, groups: Collection[str]) -> float:
    settings = context.directory.header.settings
    generations = int(settings["generations"])
    share_s = float(settings["budget_s"]) / (generations * max(1, len(groups) + context.prepared.groups_elsewhere))
    had_s = [context.done.generations.get((group, n), (0.0, 0))[0] for group in groups for n in range(generations)]
    return sum(max(share_s - seconds, 0.0) for seconds in had_s)


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
        options, directory = context.options, context.directory
        made = {name: item.sha256 for name, item in artifacts.items() if isinstance(item, ModelArtifact)}
        requests = requests_of(context, artifacts)
        earlier = earlier_steps(options.results, made.values(), directory.path)
        sentence, planned_s = foresee(context, requests, made, earlier)
        context.progress.note(sentence)
        context = replace(context, progress=WithTimeLeft(context.progress, planned_s))
        builds = compile_stage(context, artifacts, requests)
        directory.before_failure = partial(require_cache, directory.path, artifacts, builds)
        ir_stage(context, artifacts, builds)
        if options.measure:
            work_stage(context, artifacts)
        runnable = lay_out_stage(context.prepared, artifacts, builds, scratch, peers=options.measure)
        right = verify_stage(context, runnable, scratch)
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
    selection = Selection(patterns=options.patterns, tags=options.tags)
    if options.resume is not None:
        executor = executor.following([options.resume])
    prepared = prepare(options.suite, selection, toolchains, others, shard, executor)
    if shard is not None and not prepared.cases:
        progress.note(f"{options.suite}: shard {shard} has none of its cases; there is nothing to run")
    for finding in (*contradictions(prepared), *no_longer_needed(prepared)):
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
        return RunDirectory.create(options.results, header), Done()
    directory, run = RunDirectory.resume(options.resume)
    measured_by = run.header.settings.get("fleet")
    if measured_by and not executor.address:
        raise RunError(f"{options.resume}: hosts of a fleet measured it; go on with --fleet {measured_by}")
    if executor.address and not measured_by:
        raise RunError(f"{options.resume}: one machine measured it; go on there, without --fleet")
    _require_same_toolchains(run.header.toolchains, prepared, options.resume)
    planned = {(case.id, case.name, case.toolchain) for case in run.header.cases}
    if planned != {(case.id, case.name, case.toolchain) for case in prepared.cases}:
        raise RunError(
            f"{options.resume}: its cases are no longer those of {options.suite} with this toolchain; start a new run"
        )
    if run.header.suite_sha256 != prepared.loaded.text_sha256:
        raise RunError(f"{options.resume}: {options.suite} has changed since this run began; start a new run")
    done = done_in(run)
    if options.skip:
        done = give_up(directory, run, done, options.skip)
    if executor.address:
        _require_devices(run.header, prepared, done, options.resume)
    settings = run.header.settings
    directory.set(
        keep_going=options.keep_going or bool(settings.get("keep_going")),
        skip=[*settings.get("skip", ()), *options.skip],
    )
    return directory, done


def _require_devices(begun: Header, prepared: Prepared, done: Done, path: Path) -> None:
    """Refuse to end a run without cases whose hosts are away at this moment."""
    able = {case.name for case in begun.cases if case.skip is None}
    for case in prepared.cases:
        if case.skip is not None and case.name in able and not done.has_all_of(case, begun.settings):
            raise RunError(
                f"{path}: {case.name} cannot go on now ({case.skip}); start its host again, or give such cases up with"
                f" --skip '*@{case.device}*'"
            )


def _require_same_toolchains(begun_with: Sequence[ToolchainRecord], prepared: Prepared, path: Path) -> None:
    here = {toolchain.version: toolchain.compiler_sha256 for toolchain in prepared.toolchains}
    for toolchain in begun_with:
        version, sha256 = toolchain.version, toolchain.compiler_sha256
        if here.get(version, sha256) != sha256:
            raise RunError(
                f"{path}: this run began with another build of IREE {version} than the one here; start a new run"
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
        models=tuple(_model_record(name, artifact, suite.path) for name, artifact in artifacts.items()),
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


def _model_record(name: str, artifact: ModelArtifact | Failure, suite: Path) -> ModelRecord:
    if isinstance(artifact, ModelArtifact):
        return record(artifact, cache=cache_root(), suite_folder=suite.parent)
    return ModelRecord(name=name, mlir_sha256="", mlir_bytes=0, function="", inputs=(), failure=artifact)


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
        "skip": [],
        **({"shard": str(prepared.shard)} if prepared.shard is not None else {}),
    }
