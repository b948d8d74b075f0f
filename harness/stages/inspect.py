"""`harness ir`: what one case's IR is at the phases of the compiler."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.errors import CaseError, UsageError
from harness.ir.dump import check_phases, dump_phases, print_ir
from harness.ir.op_counts import Inspected, count_files
from harness.machine.environment import capture_environment
from harness.metrics import PHASES
from harness.process import Limits
from harness.progress import Progress
from harness.records.run import Failure
from harness.stages.build import host_cpu_of, materialize_models, request_for, writing_the_cache
from harness.stages.count import ir_flags, reached_phases
from harness.stages.prepare import prepare
from harness.suite.cases import Selection
from harness.text import did_you_mean

# Where the compiler's decisions show: the program as it comes in, dispatches, the schedule, and code in dispatches.
TELLING_PHASES = ("input", "flow", "stream", "bufferized", "executable-targets")


def inspect_case(
    suite: Path, name: str, phases: Sequence[str], *, texts: bool, limits: Limits, progress: Progress
) -> Inspected:
    """Compile a case, or find it in the cache, and look at its IR.

    Args:
        name: The case's, as `harness list` shows it.
        phases: Which of harness.metrics.PHASES; (): those that tell most.
        texts: Whether to print the IR as well as to count its ops.

    Raises:
        UsageError: The suite is wrong, or has no such case or the compiler no such phase.
        RunError: The cache cannot be written.
        CaseError: The case does not compile, or its IR cannot be had.
    """
    check_phases(phases)
    prepared = prepare(suite, Selection())
    case = next((case for case in prepared.cases if case.name == name), None)
    if case is None:
        names = [case.name for case in prepared.cases]
        hint = did_you_mean(name, names, f"; `harness list {suite}` shows them all")
        raise UsageError(f"{suite}: there is no case {name!r}{hint}")
    if case.peer is not None:
        raise UsageError(f"{suite}: {name} is run by the peer {case.peer!r}, which has no IR; name a case of a variant")
    if case.skip is not None:
        raise CaseError("compile", f"{name} is skipped here: {case.skip}")
    prepared = replace(prepared, cases=(case,))
    artifact = materialize_models(prepared, limits, progress)[case.model]
    if isinstance(artifact, Failure):
        raise CaseError(artifact.stage, f"{name}: {artifact.message}", artifact.stderr)
    cache = BuildCache(cache_root())
    progress.stage("Compile", 1)
    with writing_the_cache():
        build, _ = cache.compile(request_for(prepared, case, artifact, host_cpu_of(capture_environment()), limits))
    progress.step(name)
    if build.failure is not None:
        raise CaseError(build.failure.stage, f"{name}: {build.failure.message}", build.failure.stderr)
    wanted = sorted(phases or reached_phases(build, TELLING_PHASES), key=PHASES.index)
    progress.stage("IR", 1)
    with tempfile.TemporaryDirectory(prefix="harness-ir-") as folder:
        files = dump_phases(
            ir_flags(build),
            cache.program(build) or artifact.mlir,
            wanted,
            toolchain=prepared.toolchain,
            folder=Path(folder),
            limits=limits,
            files=cache.files(build),
        )
        counts = count_files(files, toolchain=prepared.toolchain, limits=limits)
        printed = (
            {phase: print_ir(file, toolchain=prepared.toolchain, limits=limits) for phase, file in files.items()}
            if texts
            else {}
        )
    progress.step(name)
    return Inspected(case=case, counts=counts, texts=printed)
