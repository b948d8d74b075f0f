"""`harness ir`: what one case's IR is at the phases of the compiler, and where that of two differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.ir.counts import Inspected, count_files
from harness.ir.differences import EXECUTABLE_PHASES, PROGRAM_PHASES, ComparedCase, IrComparison, compare_ir, read_parts
from harness.ir.dump import check_phases, print_ir
from harness.metrics import PHASES
from harness.progress import Progress
from harness.stages.compiled import at_readable_phases
from harness.stages.ir_sides import IrSide, NamedCase, compile_sides
from harness.stages.options import IrOptions, compile_limits

# Where the compiler's decisions show: the program as it comes in, dispatches, the schedule, and code in dispatches.
TELLING_PHASES = ("input", "flow", "stream", "bufferized", "executable-targets")
_COMPARED_PHASES = tuple(phase for phase in PHASES if phase in (*PROGRAM_PHASES, *EXECUTABLE_PHASES))


def inspect_case(named: NamedCase, options: IrOptions, progress: Progress) -> Inspected:
    """Compile a case, or find it in the cache, and look at its IR: its ops, and as MLIR is asked for its text."""
    check_phases(options.phases)
    limits = compile_limits(options.compile_timeout_s)
    (side,) = compile_sides((named,), limits, progress)
    compiled = side.compiled
    progress.stage("IR", 1)
    with compiled.ir(options.phases or compiled.reached(TELLING_PHASES)) as files:
        counts = count_files(files, toolchain=compiled.toolchain, limits=limits)
        texts = _texts(files, side, options)
    progress.step(side.case.name)
    return Inspected(case=side.case, counts=counts, texts=texts)


def compare_cases(named: Sequence[NamedCase], options: IrOptions, progress: Progress) -> IrComparison:
    """Compile two cases, or find them in the cache, and compare the IR of both.

    Without `--phase`, phases that one of them does not have are left out, and those that cannot be read back.
    """
    check_phases(options.phases)
    sides = compile_sides(named, compile_limits(options.compile_timeout_s), progress)
    phases = list(options.phases)
    if not phases:
        wanted = dict.fromkeys((*TELLING_PHASES, *_COMPARED_PHASES))
        common = set.intersection(*(set(side.compiled.reached(wanted)) for side in sides))
        phases = [phase for phase in PHASES if phase in common]
    progress.stage("IR", len(sides))
    (base, head), unread = at_readable_phases(
        phases, lambda left: [_look(side, left, options, progress) for side in sides], exactly=bool(options.phases)
    )
    return compare_ir(base, head, unread=unread)


def _look(side: IrSide, phases: Sequence[str], options: IrOptions, progress: Progress) -> ComparedCase:
    compiled, limits = side.compiled, side.compiled.limits
    with compiled.ir(phases) as files:
        counted = {phase: file for phase, file in files.items() if options.phases or phase in TELLING_PHASES}
        compared = ComparedCase(
            name=side.name,
            label=side.label,
            toolchain=compiled.toolchain.version,
            counts=count_files(counted, toolchain=compiled.toolchain, limits=limits),
            parts=read_parts(files, toolchain=compiled.toolchain, limits=limits),
            sizes=compiled.build.sizes,
            texts=_texts(files, side, options),
        )
    progress.step(side.case.name)
    return compared


def _texts(files: dict[str, Path], side: IrSide, options: IrOptions) -> dict[str, str]:
    toolchain, limits = side.compiled.toolchain, side.compiled.limits
    printed = files if options.format == "mlir" else {}
    return {phase: print_ir(file, toolchain=toolchain, limits=limits) for phase, file in printed.items()}
