"""Model -> how many of which ops its IR has at the named phases."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from harness.errors import CaseError
from harness.ir.dump import dump_phases
from harness.ir.tools import ask_child, shortened
from harness.ir.values import OpCounts
from harness.process import Limits
from harness.toolchain import Toolchain

_COUNTER = Path(__file__).with_name("counter.py")


def count_ops(
    flags: Sequence[str],
    model: Path,
    phases: Collection[str],
    *,
    toolchain: Toolchain,
    limits: Limits,
    files: Sequence[Path] = (),
    scratch: Path | None = None,
) -> dict[str, OpCounts]:
    """Compile a model as far as the last of the named phases, and count its ops at each.

    Args:
        flags: The case's compiler flags.
        model: The MLIR file, as the compiler gets it.
        phases: Which of `PHASES`.
        limits: What the compiler, and then the counter, may use.
        files: What flags name without a folder, such as a plugin's spec.
        scratch: The folder for temporary files; by default the system's.

    Returns:
        Counts by phase, in the compiler's order.

    Raises:
        UsageError: There is no such phase.
        CaseError: There is no IR of a phase, or it cannot be read back (stage `ir`).
    """
    with tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
        dumps = dump_phases(flags, model, phases, toolchain=toolchain, folder=Path(folder), limits=limits, files=files)
        return count_files(dumps, toolchain=toolchain, limits=limits)


def count_files(files: Mapping[str, Path], *, toolchain: Toolchain, limits: Limits) -> dict[str, OpCounts]:
    """Count the ops in files of IR, as `dump_phases` gives them.

    Raises:
        CaseError: A file cannot be read back by the toolchain that wrote it (stage `ir`).
    """
    answer = ask_child(
        "the counter of ops",
        _COUNTER,
        {phase: str(file.resolve()) for phase, file in files.items()},
        toolchain=toolchain,
        limits=limits,
        where=f" at {', '.join(files)}",
        remedy="leave phases out",
    )
    if "unread" in answer:
        message = f"the IR at phase {answer['unread']!r} cannot be read back ({shortened(answer['why'])})"
        raise CaseError("ir", f"{message}; leave this phase out")
    return {phase: OpCounts(**counts) for phase, counts in answer["counts"].items()}
