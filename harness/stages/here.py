"""Where a run's devices are and its work is done: the Protocol that `run_suite` takes, and this machine as one.

A fleet is another such place, see harness.fleet.bench. Both do the same work with the same functions of the stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from harness.compare.comparison import Plan
from harness.compare.places import RowPlace, ThisMachine
from harness.measure.alone import only_one_measures
from harness.models.materialize import ModelArtifact
from harness.process import hold_still
from harness.progress import Progress, WithTimeLeft
from harness.records.run import Failure
from harness.stages.build import Batch, compile_stage, require_cache
from harness.stages.check import distinct, lay_out_stage, reference_stage, verify_stage
from harness.stages.context import Context
from harness.stages.count import ir_stage, peak_stage, work_stage
from harness.stages.expect import earlier_runs, expect
from harness.stages.measure import call_again_stage, measure_stage
from harness.stages.prepare import OwnDevices, Place
from harness.store.sides_directory import ComparisonDirectory
from harness.verify import AnyRunnable


class Bench(Place, Protocol):
    """Where a run's devices are found, and where its cases are compiled, checked and measured."""

    @property
    def address(self) -> str:
        """What `--fleet` says of it; "": this machine."""
        ...

    @property
    def hosts(self) -> Mapping[str, str]:
        """The hosts that a suite is planned for, with the class of each; {}: this machine."""
        ...

    def following(self, runs: Sequence[Path]) -> Bench:
        """The same place, for a run that goes on or is compared with these runs, which may be begun only."""
        ...

    def rows(self, plan: Plan, directory: ComparisonDirectory, progress: Progress, noise: float) -> RowPlace:
        """Where the rows of a comparison are measured."""
        ...

    def run(self, context: Context, artifacts: Mapping[str, ModelArtifact | Failure], scratch: Path) -> None:
        """Do all of a run that is not done yet; each result is in the run's directory before the next one begins."""
        ...


class Here(OwnDevices):
    """This machine."""

    address = ""
    hosts: Mapping[str, str] = MappingProxyType({})

    def following(self, runs: Sequence[Path]) -> Here:  # noqa: ARG002 (Bench's signature)
        """Here too."""
        return self

    def rows(self, plan: Plan, directory: ComparisonDirectory, progress: Progress, noise: float) -> ThisMachine:  # noqa: ARG002
        """Here too."""
        return ThisMachine(progress=progress, noise=noise)

    def run(self, context: Context, artifacts: Mapping[str, ModelArtifact | Failure], scratch: Path) -> None:
        """Compile, and check and measure what is compiled."""
        context = _foreseen(context, artifacts)
        directory = context.directory
        for batch in compile_stage(context, artifacts):
            directory.before_failure = partial(require_cache, directory.path, artifacts, batch.builds)
            _check_and_measure(context, artifacts, batch, scratch)


HERE = Here()


def _foreseen(context: Context, artifacts: Mapping[str, ModelArtifact | Failure]) -> Context:
    """The run, once it has said what it has to do; from now on its progress says how long the rest takes."""
    programs = [artifact.sha256 for artifact in artifacts.values() if isinstance(artifact, ModelArtifact)]
    expected = expect(context, artifacts, earlier_runs(context.options.results, programs, context.directory.path))
    context.progress.note(expected.sentence)
    remaining = expected.remaining
    return replace(context, remaining=remaining, progress=WithTimeLeft(context.progress, remaining))


def _check_and_measure(
    context: Context, artifacts: Mapping[str, ModelArtifact | Failure], batch: Batch, scratch: Path
) -> None:
    """Check and measure a batch's models; the compilers of other models are held still while anything is timed."""
    progress, options = context.progress, context.options
    ir_stage(context, artifacts, batch.builds)
    if options.measure:
        work_stage(context, artifacts, batch.models)
    runnable = lay_out_stage(context.prepared, artifacts, batch, scratch, peers=options.measure)
    _forget_all_but(runnable, context, batch)
    right = verify_stage(context, runnable, scratch)
    _forget_all_but(distinct(right), context, batch)
    if not options.measure:
        right = call_again_stage(context, right)
        if not context.with_reference:
            return
    with (
        only_one_measures(progress.note, wait=options.wait),
        hold_still(),
    ):
        if context.with_reference:
            reference_stage(context, right)
        if options.measure:
            peak_stage(context, right)
            measure_stage(context, right, groups_elsewhere=batch.groups_elsewhere)


def _forget_all_but(runnable: Sequence[AnyRunnable], context: Context, batch: Batch) -> None:
    """Foresee nothing more of a batch's cases but these, and of groups that have none of them."""
    alive = {name for item in runnable for name in (item.case.name, item.case.group)}
    cases = [case for case in context.prepared.cases if case.model in batch.models]
    planned = {name for case in cases for name in (case.name, case.group)}
    context.remaining.forget(planned - alive)
