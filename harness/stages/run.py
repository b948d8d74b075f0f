"""The line itself: suite.toml -> Suite -> [Case] -> [Build] -> [Check] -> [Round] -> a run directory.

Read `run_suite` from top to bottom. Each stage takes what the stages before it gave and what an interrupted run has
already done, and every result is on disk before the next one begins.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from harness import __version__
from harness.cache import cache_root
from harness.errors import Interrupted, RunError
from harness.machine.environment import harness_commit
from harness.models.materialize import ModelArtifact, record
from harness.progress import Progress
from harness.records.run import SCHEMA_VERSION, Failure, Header, ModelRecord, ToolchainRecord
from harness.report import render
from harness.report.rows import rows_of
from harness.stages.build import require_cache
from harness.stages.checking import contradictions, no_longer_needed
from harness.stages.context import Context, Done, FailureNotes, GivenUp, done_in, give_up
from harness.stages.executor import LOCAL, Executor
from harness.stages.models import materialize_models, skip_unfit_peers
from harness.stages.options import RunOptions
from harness.stages.prepare import Prepared, prepare
from harness.store.journal import new_run_id, require_writable
from harness.store.run_directory import RunDirectory
from harness.suite.cases import Selection
from harness.suite.shards import parse_shard
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import environment_here


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
    with (
        directory,
        tempfile.TemporaryDirectory(prefix="harness-run-") as scratch,
        _interruptible(directory, options, executor.address),
    ):
        on_begin(directory)
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
        directory.before_failure = partial(require_cache, directory.path, artifacts, {})
        for case in prepared.cases:
            for record in (done.builds.get(case.name), done.checks.get(case.name)):
                context.given_up.note(case, record.failure if record is not None else None)
        if prepared.cases:
            executor.run(context, artifacts, Path(scratch))
        directory.finish(lambda run: render(run, "markdown", full=True), rows_of)
    return directory.path


@contextmanager
def _interruptible(directory: RunDirectory, options: RunOptions, fleet: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        sentence = f"interrupted; go on with `{options.command_to_go_on(directory.path, fleet)}`"
        raise Interrupted(sentence, run=directory.path) from None


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
