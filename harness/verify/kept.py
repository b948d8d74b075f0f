"""Outputs kept in the cache: right ones, which later calls and other runs are held against, and refused ones."""

import contextlib
import hashlib
import io
import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.cache import trim, write_atomically
from harness.errors import RunError
from harness.models.model import Tolerance
from harness.records.run import Check, Failure, OutputRecord
from harness.verify.difference import Right, compare_outputs
from harness.verify.outputs import AnyRunnable, Array, Runnable, load_array
from harness.verify.reference import kept_reference

_FOLDER = "outputs"
_FILE = re.compile(rf"{_FOLDER}/[0-9a-f]{{32}}\.npy")
# Outputs of the suites that come with the harness take some 100 MB together.
LIMIT_BYTES = 4 * 2**30
# A run that goes on needs what it has kept.
YOUNG_S = 24 * 3600.0


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
    """Delete the outputs unused for longest until the others fit the limit; none younger than a day."""
    trim((cache / _FOLDER).glob("*.npy"), limit_bytes, YOUNG_S)


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
            for file in item.bench.folder.iterdir():
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
