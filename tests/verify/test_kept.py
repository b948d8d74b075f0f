"""Outputs that are kept for later comparisons: found again by their records, and bounded."""

import os
import time
from pathlib import Path

import numpy as np

from harness.records.run import OutputRecord
from harness.verify.kept import keep_outputs, kept_outputs, trim_outputs

DAY = 24 * 3600


def kept(cache: Path, *values: float, days: float = 0) -> tuple[OutputRecord, ...]:
    """One output of 128 + 400 bytes, last used so many days ago."""
    (record,) = keep_outputs([np.full(100, values[0], np.float32)], cache)
    then = time.time() - days * DAY
    os.utime(cache / record.file, (then, then))
    return (record,)


def there(cache: Path, *outputs: tuple[OutputRecord, ...]) -> list[bool]:
    return [(cache / record.file).exists() for (record,) in outputs]


def test_what_is_compared_or_kept_again_is_used(tmp_path: Path) -> None:
    read, again, old = kept(tmp_path, 1, days=9), kept(tmp_path, 2, days=9), kept(tmp_path, 3, days=8)
    assert kept_outputs(read, tmp_path) is not None
    assert keep_outputs([np.full(100, 2, np.float32)], tmp_path) == again
    trim_outputs(tmp_path, 2 * 528)
    assert there(tmp_path, read, again, old) == [True, True, False]
    assert kept_outputs(old, tmp_path) is None


def test_a_record_of_a_stranger_names_no_other_file(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", np.zeros(3))
    before = (tmp_path / "mine.npy").stat().st_mtime_ns
    for file in ("outputs/../mine.npy", "mine.npy", str(tmp_path / "mine.npy")):
        assert kept_outputs((OutputRecord(file=file),), tmp_path) is None
    assert (tmp_path / "mine.npy").stat().st_mtime_ns == before
