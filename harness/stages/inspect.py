"""`harness ir`: what one case's IR is at the phases of the compiler."""

from __future__ import annotations

from dataclasses import replace

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.errors import CaseError, UsageError
from harness.ir.dump import check_phases, print_ir
from harness.ir.op_counts import Inspected, count_files
from harness.machine.environment import capture_environment
from harness.progress import Progress
from harness.records.run import Failure
from harness.stages.build import host_cpu_of, request_for
from harness.stages.count import Compiled
from harness.stages.models import materialize_models, writing_the_cache
from harness.stages.options import IrOptions, compile_limits
from harness.stages.prepare import prepare
from harness.suite.cases import Selection
from harness.text import did_you_mean

# Where the compiler's decisions show: the program as it comes in, dispatches, the schedule, and code in dispatches.
TELLING_PHASES = ("input", "flow", "stream", "bufferized", "executable-targets")


def inspect_case(options: IrOptions, progress: Progress) -> Inspected:
    """Compile a case, or find it in the cache, and look at its IR: its ops, and as MLIR is asked for its text.

    Raises:
        UsageError: The suite is wrong, or has no such case or the compiler no such phase.
        RunError: The cache cannot be written.
        CaseError: The case does not compile, or its IR cannot be had.
    """
    suite, name, limits = options.suite, options.case, compile_limits(options.compile_timeout_s)
    check_phases(options.phases)
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
    progress.stage("Compile", 1)
    with writing_the_cache():
        request = request_for(prepared, case, artifact, host_cpu_of(capture_environment()), limits)
        build, _ = BuildCache(cache_root()).compile(request)
    progress.step(name)
    if build.failure is not None:
        raise CaseError(build.failure.stage, f"{name}: {build.failure.message}", build.failure.stderr)
    toolchain = prepared.toolchain
    compiled = Compiled(build=build, artifact=artifact, toolchain=toolchain, limits=limits)
    progress.stage("IR", 1)
    with compiled.ir(options.phases or compiled.reached(TELLING_PHASES)) as files:
        counts = count_files(files, toolchain=toolchain, limits=limits)
        printed = files if options.format == "mlir" else {}
        texts = {phase: print_ir(file, toolchain=toolchain, limits=limits) for phase, file in printed.items()}
    progress.step(name)
    return Inspected(case=case, counts=counts, texts=texts)
