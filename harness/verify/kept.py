"""Outputs that were right, kept in the cache: a later call and another run's case are compared with them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.cache import write_atomically
from harness.errors import RunError
from harness.models.model import Tolerance
from harness.records.run import Check, Failure, OutputRecord
from harness.verify.outputs import Array, compare_outputs, load_array

_FOLDER = "outputs"


def keep_outputs(outputs: Sequence[Array], cache: Path) -> tuple[OutputRecord, ...]:
    """Keep a case's outputs under names that their content gives, so that equal ones are kept once.

    Args:
        cache: The cache folder.

    Raises:
        RunError: The disk is full, or the folder cannot be written.
    """
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
        records.append(OutputRecord(file=file))
    return tuple(records)


def kept_outputs(records: Sequence[OutputRecord], cache: Path) -> list[Array] | None:
    """What was kept; None where nothing was, or where it is no longer in the cache."""
    try:
        return [load_array(cache / record.file) for record in records] or None
    except ValueError:
        return None


def later_problem(check: Check, files: Sequence[Path], cache: Path) -> Failure | None:
    """What is wrong with the outputs of a later call of a case, held against those that were checked.

    Args:
        check: Of the case's first call.
        files: The later call's outputs, as .npy files.

    Returns:
        None where they agree, and where one of them cannot be read.
    """
    first = kept_outputs(check.outputs, cache)
    try:
        later = [load_array(file) for file in files]
    except ValueError:
        return None
    if first is None:
        return None
    tolerance = Tolerance(relative=check.relative_tolerance, absolute=check.absolute_tolerance)
    problem = compare_outputs(later, first, tolerance, whose="the first call's", same_elements=True).problem
    if problem is None:
        return None
    message = f"a later call in one process gives other outputs than the first: {problem}"
    return Failure(stage="verify", message=message, mismatch=True)
