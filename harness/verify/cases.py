"""Checking the outputs of a run's cases against what is right, before any of them is timed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from harness.errors import CaseError
from harness.measure.session import Group
from harness.models.bench_folder import MODULE_FILE, BenchFolder, input_files
from harness.models.inputs import load_argument, write_arguments
from harness.models.materialize import ModelArtifact
from harness.models.model import Model, Tolerance
from harness.models.onnx_file import onnxruntime_version, run_onnx
from harness.peers.worker import LoadablePeer
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Check, Failure
from harness.toolchain import Toolchain
from harness.verify.kept import keep_outputs
from harness.verify.outputs import (
    Array,
    ModuleCall,
    below_tolerance,
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


# What takes no longer is run a second time, on other inputs; a peer begins each time with a process that loads it.
_QUICK_S = 0.5
_QUICK_PEER_S = 3.0
# Far from the seeds that suites number their inputs with.
_OTHER_SEED = 1_000_000
_FINITE = "itself: its values are finite"

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
    What passes quickly, on random inputs alone, is held against the same once more on other random inputs.

    Args:
        cases: Model by model, device by device, baselines first.
        cache: The cache folder, where right outputs are kept.
        second_opinion: Gives what IREE itself makes of a baseline's program in another way, where that can be had.
    """
    references, others = _References(), _References()
    for runnable in cases:
        on_start(runnable.case.name)
        check = _check(runnable, models[runnable.case.model], references, others, limits, cache, second_opinion)
        yield check


def _check(
    runnable: AnyRunnable,
    model: Model,
    references: _References,
    others: _References,
    limits: Limits,
    cache: Path,
    second_opinion: SecondOpinion,
) -> Check:
    case = runnable.case
    check = Check(
        case=case.name,
        against="",
        command=runnable.command,
        relative_tolerance=model.tolerance.relative,
        absolute_tolerance=model.tolerance.absolute,
    )
    try:
        started = time.monotonic()
        outputs = runnable.outputs(limits)
        is_quick = time.monotonic() - started < (_QUICK_S if isinstance(runnable, Runnable) else _QUICK_PEER_S)
        right = references.find(case, model, runnable.artifact)
        has_opinion = right is None
        if right is None and isinstance(runnable, Runnable):
            right = second_opinion(runnable)
        check = _held(check, runnable, outputs, right, model.tolerance)
        if check.failure is None and is_quick:
            opinion: SecondOpinion = second_opinion if has_opinion and right is not None else lambda _: None
            check = _with_other_inputs(check, runnable, model, others, limits, opinion)
        if check.failure is None:
            check = replace(check, outputs=keep_outputs(outputs, cache))
            if case.baseline:
                references.keep_baseline(case, outputs)
    except CaseError as error:
        check = replace(check, failure=Failure.of(error))
    return check


def _held(
    check: Check, runnable: AnyRunnable, outputs: Sequence[Array], right: Right | None, tolerance: Tolerance
) -> Check:
    """The check with what the outputs were held against, and how far off they are.

    Raises:
        CaseError: There is nothing to hold them against, and they are not finite.
    """
    if right is None:
        _require_finite(outputs)
        return replace(check, against=_FINITE, below_tolerance=below_tolerance(outputs, tolerance))
    same = right.of_case and runnable.case.peer is None
    difference = compare_outputs(outputs, right.outputs, tolerance, same_elements=same)
    failure = None
    if difference.problem:
        message = f"its {difference.problem}, compared with {right.source}{right.advice}"
        failure = Failure(stage="verify", message=message, mismatch=True)
    return replace(
        check,
        against=right.source,
        max_absolute=difference.max_absolute,
        max_relative=difference.max_relative,
        below_tolerance=below_tolerance(right.outputs, tolerance),
        failure=failure,
    )


def _with_other_inputs(
    check: Check,
    runnable: AnyRunnable,
    model: Model,
    others: _References,
    limits: Limits,
    second_opinion: SecondOpinion,
) -> Check:
    """The check, failed where the case is wrong for other random inputs: an answer that is folded is right for one.

    Args:
        others: What is right for those inputs.
    """
    other = _on_other_inputs(runnable)
    if other is None:
        return check
    if model.expected:  # which are for the first inputs; what else might be right was not asked there
        model = replace(model, expected=(), reference="baseline")
    try:
        right = others.find(other.case, model, other.artifact)
    except CaseError:  # the baseline took too long to run twice
        return check
    try:
        outputs = other.outputs(limits)
        if right is None and isinstance(other, Runnable):
            right = second_opinion(other)
        held = _held(check, other, outputs, right, model.tolerance)
    except CaseError as error:
        failure = Failure.of(error)
        return replace(check, failure=replace(failure, message=f"with other random inputs: {failure.message}"))
    if held.failure is not None:
        message = f"right with the suite's inputs; with other random values of them {held.failure.message}"
        return replace(check, failure=replace(held.failure, message=message))
    if other.case.baseline:
        others.keep_baseline(other.case, outputs)
    return replace(check, other_inputs=right is not None)


def _on_other_inputs(runnable: AnyRunnable) -> AnyRunnable | None:
    """The case, IREE's in another folder, called with other random values; None where an input is not random."""
    artifact = runnable.artifact
    if not artifact.inputs or any(value.fill != "random" for value in artifact.inputs):
        return None
    inputs = tuple(replace(value, seed=value.seed + _OTHER_SEED) for value in artifact.inputs)
    artifact = replace(artifact, inputs=inputs, arguments=write_arguments(inputs, artifact.mlir.parent))
    if isinstance(runnable, RunnablePeer):
        arguments = tuple(argument.for_worker() for argument in artifact.arguments)
        return replace(runnable, artifact=artifact, loadable=replace(runnable.loadable, arguments=arguments))
    files = input_files(artifact)
    folder = runnable.bench.folder.with_name(f"{runnable.bench.folder.name}-other-inputs")
    folder.mkdir()
    for link in runnable.bench.folder.iterdir():
        if link.is_symlink():  # what is none was written by a run
            (folder / link.name).symlink_to(files.get(link.name, link).resolve())
    return replace(runnable, artifact=artifact, bench=replace(runnable.bench, folder=folder))


def _require_finite(outputs: Sequence[Array]) -> None:
    for position, output in enumerate(outputs):
        odd = output.size - int(np.isfinite(output).sum())
        if odd:
            raise CaseError(
                "verify",
                f"its output {position} has {odd} NaN or infinite values of {output.size}, so variants cannot be "
                "compared with it; change the inputs, or give expected files",
            )
