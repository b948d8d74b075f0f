"""Checking the outputs of a run's cases against what is right, before any of them is timed."""

import contextlib
import hashlib
import io
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.cache import LIMIT_BYTES, trim, write_atomically
from harness.errors import CaseError, RunError
from harness.models.inputs import write_arguments
from harness.models.materialize import input_files
from harness.models.model import Tolerance
from harness.process import Limits
from harness.records.run import Check, Failure, OutputRecord
from harness.verify.difference import COARSE, Right, below_tolerance, compare_outputs, unjudged
from harness.verify.outputs import AnyRunnable, Array, Runnable, RunnablePeer, load_array
from harness.verify.reference import References, has_text, kept_reference

_FOLDER = "outputs"
_FILE = re.compile(rf"{_FOLDER}/[0-9a-f]{{32}}\.npy")


def keep_outputs(outputs: Sequence[Array], cache: Path) -> tuple[OutputRecord, ...]:
    """Keep a case's outputs under names that their content gives, so that equal ones are kept once."""
    records = []
    for output in outputs:
        buffer = io.BytesIO()
        np.save(buffer, output, allow_pickle=False)
        data = buffer.getvalue()
        file = f"{_FOLDER}/{hashlib.sha256(data).hexdigest()[:32]}.npy"
        if not (cache / file).exists():
            try:
                write_atomically(cache / file, data)
            except OSError as error:
                raise RunError(f"{cache / file}: cannot be written ({error.strerror}); make room, and resume") from None
        _use(cache / file)
        records.append(OutputRecord(file=file))
    return tuple(records)


def _use(file: Path) -> None:
    with contextlib.suppress(OSError):  # of somebody else's file
        os.utime(file)


def trim_outputs(cache: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Delete outputs that were not used for longest, as `trim` does."""
    trim((cache / _FOLDER).glob("*.npy"), limit_bytes)


def kept_outputs(records: Sequence[OutputRecord], cache: Path) -> list[Array] | None:
    """What was kept; None where nothing was, or where it is no longer in the cache."""
    if not all(_FILE.fullmatch(record.file) for record in records):
        return None
    for record in records:
        _use(cache / record.file)
    try:
        return [load_array(cache / record.file) for record in records] or None
    except ValueError:
        return None


def tolerance_of(check: Check, factor: float = 1.0) -> Tolerance:
    """What a check allowed where the evaluator did not say it."""
    absolute = factor * check.absolute_tolerance if check.absolute_tolerance else None
    return Tolerance(relative=factor * check.relative_tolerance, absolute=absolute)


def later_problem(check: Check, files: Sequence[Path], cache: Path) -> Failure | None:
    """What is wrong with the outputs of a later call of a case, held against those that were checked."""
    if check.keeps_state:
        return None
    first = kept_outputs(check.outputs, cache)
    try:
        later = [load_array(file) for file in files]
    except ValueError:
        return None
    if first is None:
        return None
    right = kept_reference(check.reference) if check.reference else None
    right = right or Right(source="the first call", outputs=first)
    whose = "right" if right.key else "the first call's"
    problem = compare_outputs(later, right, tolerance_of(check), whose=whose, same_elements=True).problem
    if problem is None:
        return None
    message = f"a later call in one process gives other outputs than the first: {problem}"
    return Failure(stage="verify", message=message, mismatch=True)


_REFUSED_FOLDER = "refused"
# Programs with larger weights are named by their place in the cache.
_LARGEST_BYTES = 64 * 2**20


def keep_refused(item: AnyRunnable, outputs: Sequence[Array], right: Right, problem: str, cache: Path) -> str:
    """Keep program, inputs, module, outputs and right outputs with the commands that show the difference."""
    name = hashlib.sha256(f"{item.case.id} {item.case.toolchain} {item.case.device}".encode()).hexdigest()[:16]
    folder = cache / _REFUSED_FOLDER / name
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        program = item.artifact.mlir
        if program.stat().st_size <= _LARGEST_BYTES:
            program = Path(shutil.copy(program, folder / "model.mlir"))
        if isinstance(item, Runnable):
            for file in item.folder.iterdir():
                if file.is_symlink() and file.exists() and file.stat().st_size <= _LARGEST_BYTES:
                    shutil.copy(file, folder / file.name)
        for position, (ours, true) in enumerate(zip(outputs, right.outputs, strict=False)):
            np.save(folder / f"refused{position}.npy", ours)
            np.save(folder / f"right{position}.npy", true)
            if right.allowed is not None:
                np.save(folder / f"allowed{position}.npy", right.allowed[position])
        lines = [f"# {item.case.name}: refused*.npy is not right*.npy, which is from {right.source}", f"# {problem}"]
        if isinstance(item, Runnable):
            plugins = " # after the plugins of the variant" if item.case.plugins else ""
            compiled = ["iree-compile", program.name, "-o", "module.vmfb", *item.case.compile_flags]
            lines += [shlex.join(compiled) + plugins, shlex.join(item.command)]
        (folder / "reproduce.sh").write_text("\n".join(lines) + "\n")
    except OSError:
        return ""
    return f"{_REFUSED_FOLDER}/{name}"


# What takes no longer is run a second time, on other inputs; a peer begins each time with a process that loads it.
_QUICK_S = 0.5
_QUICK_PEER_S = 3.0
# Far from the seeds that suites number their inputs with.
_OTHER_SEED = 1_000_000
_FINITE = "itself: its values are finite"
UNCHECKED = "nothing"
_STATE = "a call changes what later calls meet: the outputs of the first were checked, and not what it wrote elsewhere"
# Dialects that IREE itself turns into linalg, as a program of theirs names them.
_CONVERTED = (b"torch.", b"onnx.", b"tosa.", b"stablehlo.")


def check_cases(
    cases: Iterable[AnyRunnable], references: References, limits: Limits, on_start: Callable[[str], None], cache: Path
) -> Iterator[Check]:
    """Check each case once, baselines first; a failure is a Check with `failure` set.

    A case is held against its references by itself; where there are none, against the baseline, which has to be finite.
    What passes quickly, on random inputs alone, is held against the same once more on other random inputs.
    """
    checker = _Checker(references, limits, cache)
    for runnable in cases:
        on_start(runnable.case.name)
        yield checker.check(runnable)


class _Checker:
    """Checks cases, and remembers the outputs of baselines that no reference judged."""

    def __init__(self, references: References, limits: Limits, cache: Path) -> None:
        self._references = references
        self._limits = limits
        self._cache = cache
        self._baselines: dict[tuple[str, bool], Right] = {}

    def check(self, item: AnyRunnable) -> Check:
        """How a case's outputs compare with what is right."""
        check = Check(
            case=item.case.name,
            against="",
            command=item.command,
            relative_tolerance=0.0,
            absolute_tolerance=0.0,
            note=item.note if isinstance(item, Runnable) else "",
        )
        try:
            started = time.monotonic()
            outputs = item.outputs(self._limits)
            is_quick = time.monotonic() - started < (_QUICK_S if isinstance(item, Runnable) else _QUICK_PEER_S)
            check = self._held(check, item, outputs, asked=True)
            again = is_quick and check.against != UNCHECKED
            if check.failure is None and again and (other := _on_other_inputs(item)) is not None:
                check = self._with_other_inputs(check, other)
            if check.failure is None:
                check = replace(check, outputs=keep_outputs(outputs, self._cache))
        except CaseError as error:
            check = replace(check, failure=Failure.of(error))
        return check

    def _held(self, check: Check, item: AnyRunnable, outputs: Sequence[Array], *, asked: bool) -> Check:
        """The check with what the outputs were held against, and how far off they are."""
        case, model = item.case, self._references.models[item.case.model]
        if model.check == "none":
            why = f'the suite says check = "none"{f": {model.why}" if model.why else ""}'
            return replace(check, against=UNCHECKED, no_second_opinion=why)
        is_module = isinstance(item, Runnable)
        judges = self._references.judges(item, asked=asked)
        rights = judges.rights or self._baseline(item, asked=asked)
        tolerance = self._references.tolerance(model, item.artifact)
        check = replace(
            check,
            relative_tolerance=tolerance.relative,
            absolute_tolerance=tolerance.absolute or 0.0,
            no_second_opinion="" if judges.rights else judges.why_none,
        )
        if not is_module:
            rights = tuple(replace(right, coarse=COARSE) for right in rights)
        for position, right in enumerate(rights):
            strict = judges.evaluated and position == 0 and is_module
            within = model.tolerance if strict else tolerance
            check = _compared(check, item, outputs, right, within, first=position == 0)
            if check.failure is not None:
                if judges.evaluated and position > 0:
                    doubted = f"either {right.source} or IREE's conversion of the model is"
                    if not has_text(item.artifact.mlir, *_CONVERTED):
                        doubted = f"{right.source} are" if right.source.endswith("s") else f"{right.source} is"
                    doubt = f"{rights[0].source} agrees with it, so {doubted} to be doubted"
                    check = replace(check, failure=replace(check.failure, message=f"{check.failure.message}; {doubt}"))
                problem = check.failure.message if check.failure else ""
                return replace(check, reproducer=keep_refused(item, outputs, right, problem, self._cache))
        if not rights:
            _require_finite(outputs)
            check = replace(check, against=_FINITE)
        if case.baseline and not judges.rights:
            right = Right(source=case.name, outputs=outputs, of_case=True)
            self._baselines[case.group, asked] = right
            self._baselines.setdefault((case.model, asked), right)
        return check

    def _baseline(self, item: AnyRunnable, *, asked: bool) -> tuple[Right, ...]:
        right = self._baselines.get((item.case.group, asked)) or self._baselines.get((item.case.model, asked))
        return (right,) if right is not None else ()

    def _with_other_inputs(self, check: Check, other: AnyRunnable) -> Check:
        """The check, failed where the case is wrong for other inputs: an answer that is folded is right for one."""
        try:
            held = self._held(replace(check, failure=None), other, other.outputs(self._limits), asked=False)
        except CaseError as error:
            failure = Failure.of(error)
            return replace(check, failure=replace(failure, message=f"with other random inputs: {failure.message}"))
        if held.failure is not None:
            message = f"right with the suite's inputs; with other random values of them {held.failure.message}"
            return replace(check, failure=replace(held.failure, message=message), reproducer=held.reproducer)
        return replace(check, other_inputs=held.against != _FINITE)


def _compared(
    check: Check, item: AnyRunnable, outputs: Sequence[Array], right: Right, tolerance: Tolerance | None, *, first: bool
) -> Check:
    """The check with one more comparison; the first that is made says what the outputs were held against."""
    same = (right.of_case or bool(right.kinds)) and item.case.peer is None
    difference = compare_outputs(outputs, right, tolerance, same_elements=same)
    failure = check.failure
    if difference.problem:
        message = f"its {difference.problem}, compared with {right.source}{right.advice}"
        failure = Failure(stage="verify", message=message, mismatch=True)
    if not first and failure is None:
        return replace(check, also_against=right.source)
    return replace(
        check,
        against=right.source,
        reference=right.key,
        max_absolute=difference.max_absolute,
        max_relative=difference.max_relative,
        spreads=difference.spreads,
        keeps_state=right.keeps_state,
        note="; ".join(filter(None, (check.note, _STATE if right.keeps_state else "", unjudged(right)))),
        below_tolerance=below_tolerance(right, tolerance),
        failure=failure,
    )


def _on_other_inputs(item: AnyRunnable) -> AnyRunnable | None:
    """The case, IREE's in another folder, called with other random values; None where an input is not random."""
    artifact = item.artifact
    if not artifact.inputs or any(value.fill != "random" for value in artifact.inputs):
        return None
    inputs = tuple(replace(value, seed=value.seed + _OTHER_SEED) for value in artifact.inputs)
    artifact = replace(artifact, inputs=inputs, arguments=write_arguments(inputs, artifact.mlir.parent))
    if isinstance(item, RunnablePeer):
        return replace(item, artifact=artifact, loadable=replace(item.loadable, arguments=artifact.arguments))
    files = input_files(artifact)
    folder = item.folder.with_name(f"{item.folder.name}-other-inputs")
    folder.mkdir()
    for link in item.folder.iterdir():
        if link.is_symlink():  # what is none was written by a run
            (folder / link.name).symlink_to(files.get(link.name, link).resolve())
    return replace(item, artifact=artifact, folder=folder)


def _require_finite(outputs: Sequence[Array]) -> None:
    for position, output in enumerate(outputs):
        odd = output.size - int(np.isfinite(output).sum())
        if odd:
            raise CaseError(
                "verify",
                f"its output {position} has {odd} NaN or infinite values of {output.size}, and no reference says that "
                "they are right; give expected files",
            )
