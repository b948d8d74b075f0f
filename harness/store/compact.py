"""`harness results compact`: finished runs and comparisons that are in no Parquet file yet are put into one.

Runs go in batches, each of which is one part that is there whole or not at all; killed at any moment, it leaves parts
that are complete, and the next time goes on behind them. Folders are only read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import RunError
from harness.progress import Progress
from harness.records.comparison import Comparison
from harness.store.check import examine
from harness.store.folders import HISTORY_FOLDER, look_into
from harness.store.place import Place
from harness.store.transfer import archive_lock
from harness.store.values import Compacted
from harness.text import one_line, shown

if TYPE_CHECKING:
    from harness.history.tables import Tables
    from harness.history.values import ComparisonRow

# A batch is held in memory: about 200,000 turns, whose lines take 150 bytes each.
_BATCH_RUNS = 100
_BATCH_BYTES = 32 * 2**20
# A query opens every part, so that many small ones cost more than their rows.
PARTS_LIMIT = 8


@dataclass
class _Batch:
    """What goes into one part."""

    tables: list[Tables] = field(default_factory=list)
    compared: list[Comparison] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    bytes: int = 0

    @property
    def full(self) -> bool:
        """Whether it is to be written before more is read."""
        return len(self.names) >= _BATCH_RUNS or self.bytes >= _BATCH_BYTES


def compact(place: Place, progress: Progress) -> Compacted:
    """Put what is finished and whole into Parquet.

    Args:
        place: Of which `local` is changed.

    Raises:
        RunError: The folder cannot be written, its history is elsewhere, or its index cannot be read.
    """
    from harness.history.index import read_index, require_own
    from harness.history.parquet import merge_parts

    results = place.local
    require_own(results)
    with archive_lock(results):
        index = read_index(results)
        _remove_strays(results)
        before_bytes = sum(size for _, size in _parts(results))
        known = index.runs | index.comparisons
        names = [name for name in place.names() if name not in known]
        left_out = dict(place.refused)
        added, folder_bytes = _add(results, names, left_out, progress)
        parts = len(read_index(results).parts)
        merged = parts if parts > PARTS_LIMIT and merge_parts(results) is not None else 0
        after = read_index(results)
        return Compacted(
            runs=tuple(name for name in added if name in after.runs),
            comparisons=tuple(name for name in added if name in after.comparisons),
            left_out={shown(name): why for name, why in left_out.items()},
            merged_parts=merged,
            folder_bytes=folder_bytes,
            before_bytes=before_bytes,
            after_bytes=sum(size for _, size in _parts(results)),
            parts=len(after.parts),
        )


def _add(results: Path, names: Sequence[str], left_out: dict[str, str], progress: Progress) -> tuple[list[str], int]:
    """Write the batches; the folders that are in Parquet now, and their bytes."""
    progress.stage("Compacting", len(names))
    added: list[str] = []
    total, batch = 0, _Batch()
    for name in names:
        why = _read_into(batch, results / name, name)
        if why is not None:
            left_out[name] = why
        progress.step(name)
        if batch.full:
            added += _write(results, batch, left_out)
            total, batch = total + batch.bytes, _Batch()
    if batch.names:
        added += _write(results, batch, left_out)
        total += batch.bytes
    return added, total


def _read_into(batch: _Batch, folder: Path, name: str) -> str | None:
    """Add one folder to a batch; why it was not."""
    from harness.history.tables import tables_of

    finding, read = examine(folder, name=name)
    if finding.state != "ok" or read is None:
        return f"{finding.state}: {finding.why}" if finding.why else finding.state
    try:
        if isinstance(read, Comparison):
            batch.compared.append(read)
        elif read.turns_dropped:
            return "its raw turns were dropped, and its figures are not in this history; merge the one that has them"
        else:
            batch.tables.append(tables_of(read))
    except Exception as error:  # a folder may hold anything, and must not cost the others
        return f"cannot be put into tables ({one_line(f'{type(error).__name__}: {error}')[:200]})"
    batch.names.append(name)
    batch.bytes += look_into(folder).bytes
    return None


def _write(results: Path, batch: _Batch, left_out: dict[str, str]) -> list[str]:
    """Write one part; where one run's figures cannot be written, the others go without it."""
    from harness.history.parquet import RowsError, write_parts

    try:
        write_parts(results, batch.tables, _rows(batch.compared))
    except (OverflowError, RowsError):
        return list(_write_singly(results, batch, left_out))
    return batch.names


def _write_singly(results: Path, batch: _Batch, left_out: dict[str, str]) -> Iterator[str]:
    from harness.history.parquet import RowsError, write_parts

    singles: list[tuple[str, list[Tables], list[Comparison]]] = [
        *((one.run.header.id, [one], []) for one in batch.tables),
        *((one.id, [], [one]) for one in batch.compared),
    ]
    for name, tables, compared in singles:
        try:
            write_parts(results, tables, _rows(compared))
        except OverflowError:
            left_out[name] = "has a number that is too large for a table"
        except RowsError as error:
            left_out[name] = f"cannot be put into tables: {error}"
        else:
            yield name


def _rows(compared: Sequence[Comparison]) -> list[ComparisonRow]:
    from harness.history.tables import comparison_rows

    return [row for one in compared for row in comparison_rows(one)]


def _parts(results: Path) -> Iterator[tuple[Path, int]]:
    for file in (results / HISTORY_FOLDER).glob("*/*.parquet"):
        yield file, file.stat().st_size


def _remove_strays(results: Path) -> None:
    """Delete Parquet files that no index has, which a compaction that was killed left behind."""
    from harness.store.check_history import stray_files

    for file in stray_files(results):
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"{file}: cannot be removed ({error.strerror}); mend its permissions") from None
