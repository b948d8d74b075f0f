"""Checking the outputs of a run's cases against what is right, before any of them is timed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.errors import CaseError
from harness.measure.session import Group
from harness.models.bench_folder import MODULE_FILE, BenchFolder
from harness.models.inputs import load_argument
from harness.models.materialize import ModelArtifact
from harness.models.model import Model
from harness.models.onnx_file import onnxruntime_version, run_onnx
from harness.peers.worker import LoadablePeer
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, OutputRecord
from harness.toolchain import Toolchain
from harness.verify.kept import keep_outputs
from harness.verify.outputs import (
    Array,
    ModuleCall,
    compare_outputs,
    load_array,
    misfit,
    module_devices,
    run_command,
    run_once,
)


@dataclass(frozen=True, kw_only=True)
class Runnable:
    """A compiled case in its folder, ready to run.

    Attributes:
        toolchain: The toolchain that compiled it and runs it.
        cpus: Cores to hold its processes on; None: wherever the system puts them.
    """

    case: Case
    build: Build
    artifact: ModelArtifact
    bench: BenchFolder
    toolchain: Toolchain
    cpus: frozenset[int] | None

    @property
    def call(self) -> ModuleCall:
        """The call that IREE's runtime tools make."""
        return ModuleCall(
            toolchain=self.toolchain,
            folder=self.bench.folder,
            function=self.artifact.function,
            inputs=self.bench.inputs,
            parameters=self.bench.parameters,
            uris=self.case.uris,
            run_flags=self.case.run_flags,
            cpus=self.cpus,
            environment=self.case.environment,
        )

    @property
    def command(self) -> tuple[str, ...]:
        """The iree-run-module command line that gives its outputs."""
        return run_command(self.call, self.build.outputs or 0)

    def outputs(self, limits: Limits) -> Sequence[Array]:
        """Run it once.

        Raises:
            CaseError: Its devices are not those of the case, or it failed (stage `verify`).
        """
        if problem := misfit(module_devices(self.bench.folder / MODULE_FILE), self.case.uris):
            raise CaseError("verify", problem)
        return run_once(self.call, self.build.outputs or 0, limits)


@dataclass(frozen=True, kw_only=True)
class RunnablePeer:
    """A case of a peer, ready to run."""

    case: Case
    artifact: ModelArtifact
    loadable: LoadablePeer
    cpus: frozenset[int] | None

    @property
    def command(self) -> tuple[str, ...]:
        """Empty: its worker gives its outputs, and no command line does."""
        return ()

    def outputs(self, limits: Limits) -> Sequence[Array]:
        """Run it once, in a worker as it is timed in.

        Raises:
            CaseError: The peer refused the model, failed, died or gave no arrays (stage `verify`).
        """
        group = Group(name=self.case.group, uri=self.case.uri, cases=(), cpus=self.cpus)
        with tempfile.TemporaryDirectory(prefix="harness-peer-") as folder:
            try:
                with self.loadable.worker(group, limits) as worker:
                    worker.load(self.case.name, self.loadable.request())
                    answer = worker.ask(op="outputs", case=self.case.name, folder=folder)
                files = [Path(folder) / f"output{position}.npy" for position in range(int(answer["outputs"]))]
                return [load_array(file) for file in files]
            except CaseError as error:
                raise CaseError("verify", f"{self.loadable.peer.peer.title}: {error}", error.stderr) from None
            except ValueError as error:
                raise CaseError("verify", f"{self.loadable.peer.peer.title}: an output {error}") from None


AnyRunnable = Runnable | RunnablePeer


@dataclass(frozen=True, kw_only=True)
class Right:
    """Right outputs, and where they come from.

    Attributes:
        of_case: Whether the source is another of IREE's cases, by name.
        advice: What to do where the source is what is wrong, as the end of a sentence.
    """

    source: str
    outputs: Sequence[Array]
    of_case: bool = False
    advice: str = ""


SecondOpinion = Callable[[Runnable], Right | None]


class _References:
    """Right outputs for each case, from outside or from the baselines that have run."""

    def __init__(self) -> None:
        self._outside: dict[str, Right | None] = {}
        self._baselines: dict[str, Right] = {}

    def keep_baseline(self, case: Case, outputs: Sequence[Array]) -> None:
        """Remember a baseline's outputs, for its group and, if it is the first, for the model's other devices."""
        right = Right(source=case.name, outputs=outputs, of_case=True)
        self._baselines[case.group] = right
        self._baselines.setdefault(case.model, right)

    def find(self, case: Case, model: Model, artifact: ModelArtifact) -> Right | None:
        """What a case is compared with; None for the first baseline of a model without reference from outside.

        Raises:
            CaseError: A reference cannot be had.
        """
        if model.name not in self._outside:
            self._outside[model.name] = _outside_reference(model, artifact)
        if outside := self._outside[model.name]:
            return outside
        if case.baseline:
            return self._baselines.get(case.model)
        if case.group not in self._baselines:
            raise CaseError("verify", "nothing to compare its outputs with: the baseline on this device failed")
        return self._baselines[case.group]


def _outside_reference(model: Model, artifact: ModelArtifact) -> Right | None:
    if model.expected:
        return Right(source="expected files", outputs=[_load_expected(path) for path in model.expected])
    if model.reference == "baseline":
        return None
    if artifact.onnx is None:
        if model.reference == "onnxruntime":
            raise CaseError("verify", 'reference = "onnxruntime": the model has no ONNX form; leave reference out')
        return None
    version = onnxruntime_version()
    if model.reference == "auto" and version is None:
        return None
    inputs = [load_argument(argument) for argument in artifact.arguments]
    return Right(source=f"ONNX Runtime {version}", outputs=run_onnx(artifact.onnx, inputs))


def _load_expected(path: Path) -> Array:
    try:
        return load_array(path)
    except ValueError as error:
        raise CaseError("verify", f"{path}: this expected file {error}; write it again") from None


def check_cases(
    cases: Iterable[AnyRunnable],
    models: Mapping[str, Model],
    limits: Limits,
    on_start: Callable[[str], None],
    cache: Path,
    second_opinion: SecondOpinion = lambda _: None,
) -> Iterator[Check]:
    """Check each case once; a failure is a Check with `failure` set.

    A case is compared with expected files or ONNX Runtime where its model has them. Else a variant is compared with
    the baseline on its own device, and a baseline with the first device's, so that a device that computes something
    else is noticed; the very first one with a second opinion, and where there is none it has to give finite numbers.

    Args:
        cases: Model by model, device by device, baselines first.
        cache: The cache folder, where right outputs are kept.
        second_opinion: Gives what IREE itself makes of a baseline's program in another way, where that can be had.
    """
    references = _References()
    for runnable in cases:
        on_start(runnable.case.name)
        yield _check(runnable, models[runnable.case.model], references, limits, cache, second_opinion)


def _check(
    runnable: AnyRunnable,
    model: Model,
    references: _References,
    limits: Limits,
    cache: Path,
    second_opinion: SecondOpinion,
) -> Check:
    case = runnable.case
    against, max_absolute, max_relative, failure = "", None, None, None
    kept: tuple[OutputRecord, ...] = ()
    try:
        outputs = runnable.outputs(limits)
        right = references.find(case, model, runnable.artifact)
        if right is None and isinstance(runnable, Runnable):
            right = second_opinion(runnable)
        if right is None:
            against = "itself: its values are finite"
            _require_finite(outputs)
        else:
            against = right.source
            same = right.of_case and case.peer is None
            difference = compare_outputs(outputs, right.outputs, model.tolerance, same_elements=same)
            max_absolute, max_relative = difference.max_absolute, difference.max_relative
            if difference.problem:
                message = f"its {difference.problem}, compared with {against}{right.advice}"
                failure = Failure(stage="verify", message=message, mismatch=True)
        if failure is None:
            kept = keep_outputs(outputs, cache)
            if case.baseline:
                references.keep_baseline(case, outputs)
    except CaseError as error:
        failure = Failure.of(error)
    return Check(
        case=case.name,
        against=against,
        command=runnable.command,
        relative_tolerance=model.tolerance.relative,
        absolute_tolerance=model.tolerance.absolute,
        max_absolute=max_absolute,
        max_relative=max_relative,
        outputs=kept,
        failure=failure,
    )


def _require_finite(outputs: Sequence[Array]) -> None:
    for position, output in enumerate(outputs):
        odd = output.size - int(np.isfinite(output).sum())
        if odd:
            raise CaseError(
                "verify",
                f"its output {position} has {odd} NaN or infinite values of {output.size}, so variants cannot be "
                "compared with it; change the inputs, or give expected files",
            )
