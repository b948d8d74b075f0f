"""Outputs that were right, kept in the cache: a later call and another run's case are compared with them.

Of all that were kept, those that were used last stay, up to a limit; what a run of today kept stays in any case.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.cache import trim, write_atomically
from harness.errors import RunError
from harness.models.model import Tolerance
from harness.records.run import Check, Failure, OutputRecord
from harness.verify.difference import Right, compare_outputs
from harness.verify.outputs import Array, load_array
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
