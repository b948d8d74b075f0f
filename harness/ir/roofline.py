"""The roof above a case: its model's work, this machine's peaks with a number of threads, and how much a case reaches.

Work is the arithmetic operations and bytes of one call, counted in the IR at phase `input`. There the program is linalg
on tensors, and no variant has touched it yet: what padding, packing or im2col add to it is no useful work.

Peaks are of arithmetic in f32 and of memory bandwidth. A fresh process measures them, of numpy's matrix product and
streams, and of a program of nothing but fused multiply-adds, for the peak of what IREE's own code can compute.
"""

import hashlib
import json
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.cache import read_memo, write_atomically, write_memo
from harness.errors import CaseError
from harness.ir.dump import ask, dump_phases
from harness.machine.processor import last_core, thread_variables, usable_cores
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Failure, Peak, Work
from harness.toolchain import Toolchain
from harness.toolchain.tools import excerpt, run_tool

_COUNTING = ("child", "program", "operations", "sizes")
_COUNTED_AT = "input"
_WORK = TypeAdapter(Work)

_WORKER = Path(__file__).with_name("peak_worker.py")
_LOOP = Path(__file__).with_name("multiply_adds.mlir")
_LIMITS = Limits(seconds=120)
_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
_RATES = ("operations_per_s", "bytes_per_s")
_FRESH_S = 3600.0
_KEPT_S = 24 * _FRESH_S
_DRIVERS = ("local-sync", "local-task")

# So many independent sums hide the latency of a multiply-add, and still fit sixteen registers beside two factors.
_SUMS = 12
_STEPS = 64
_OPERATIONS_PER_ELEMENT = _SUMS * (2 * _STEPS + 1) + _SUMS - 1
# Of each thread: some 200 us of work, so that starting a call weighs little.
_ELEMENTS_PER_THREAD = 1 << 14


def count_work(
    model: str,
    program: Path,
    function: str,
    shapes: Sequence[Sequence[int]],
    *,
    sha256: str,
    flags: Sequence[str],
    toolchain: Toolchain,
    limits: Limits,
    memos: Path,
) -> Work:
    """Count what one call of a model's entry function has to do."""
    flags = [flag for flag in flags if flag.startswith("--iree-input-")]
    shapes = [list(shape) for shape in shapes]
    key = json.dumps([sha256, function, shapes, flags, toolchain.compiler_sha256, _sources_sha256()])
    memo = memos / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    try:
        return replace(_WORK.validate_python(read_memo(memo)), model=model)
    except ValidationError:  # there is none, or it is damaged
        pass
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        files = dump_phases(flags, program, [_COUNTED_AT], toolchain=toolchain, folder=Path(folder), limits=limits)
        call = {"function": function, "shapes": shapes}
        answers = ask("work", files, f" on {model}", toolchain=toolchain, limits=limits, **call)
    if "unknown" in answers:
        raise CaseError("ir", str(answers["unknown"]))
    work = Work(model=model, **answers[_COUNTED_AT])
    write_memo(memo, _WORK.dump_python(work))
    return work


@cache
def _sources_sha256() -> str:
    sources = (Path(__file__).with_name(f"{name}.py").read_bytes() for name in _COUNTING)
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Attained:
    """What one case reaches; shares are None where the machine's peak was not measured."""

    operations_per_s: float  # Arithmetic operations of its model by its latency
    bytes_per_s: float  # The same of its model's compulsory traffic; what really goes to memory is no less
    intensity: float  # Operations for each byte of compulsory traffic
    # Of the peak of arithmetic, which is that of f32; None too for a model of a narrower type
    peak_share: float | None = None
    # Of the roof above its intensity: the peak of arithmetic, or what memory can feed if that is lower
    roof_share: float | None = None


# Of these a processor may do more at once than of f32, whose peak is the only one that is measured.
NARROW_TYPES = frozenset({"f16", "bf16", "i8", "i16"})


def attained(work: Work, latency_ns: float, peak: Peak | None, *, narrow: bool = False) -> Attained | None:
    """What a case of that latency reaches; None for a model without arithmetic or of unknown work."""
    if work.failure is not None or not work.operations or not work.compulsory_bytes or not latency_ns > 0:
        return None
    operations_per_s = work.operations / latency_ns * 1e9
    intensity = work.operations / work.compulsory_bytes
    top = peak.operations_per_s if peak is not None and not narrow else None
    roof = min(top, intensity * peak.bytes_per_s) if peak is not None and top and peak.bytes_per_s else None
    return Attained(
        operations_per_s=operations_per_s,
        bytes_per_s=work.compulsory_bytes / latency_ns * 1e9,
        intensity=intensity,
        peak_share=operations_per_s / top if top else None,
        roof_share=operations_per_s / roof if roof else None,
    )


def peak_threads(case: Case) -> int | None:
    """How many threads the peak is for that bounds a case; None where it does not run on processor cores alone."""
    drivers = {uri.partition("://")[0] for uri in case.uris}
    if not drivers <= set(_DRIVERS):
        return None
    if case.pin or drivers == {"local-sync"}:  # which calls its devices one after the other
        return 1
    cores = usable_cores()
    return min(case.threads, cores) if case.threads is not None and len(case.uris) == 1 else cores


def measure_peak(device: str, threads: int, toolchain: Toolchain, *, host_cpu: str, cache: Path) -> Peak:
    """Measure what so many threads reach; one thread is held on the core that measuring workers are pinned to."""
    try:
        module = _loop(threads, toolchain, host_cpu, cache)
        cpus = last_core() if threads == 1 else None
        elements = threads * _ELEMENTS_PER_THREAD
        request = {
            "threads": threads,
            "cpus": sorted(cpus or ()),
            "module": str(module),
            "elements": elements,
            "operations": elements * _OPERATIONS_PER_ELEMENT,
        }
        command = [*toolchain.python_command, str(_WORKER), json.dumps(request)]
        answer = _measured(command, threads, module.with_suffix(".json"))
    except CaseError as error:
        return Peak(device=device, threads=threads, failure=Failure.of(error))
    operations, moved = answer["operations_per_s"], answer["bytes_per_s"]
    fastest, widest = max(operations, key=operations.__getitem__), max(moved, key=moved.__getitem__)
    return Peak(
        device=device,
        threads=threads,
        operations_per_s=operations[fastest],
        operations_by=fastest,
        bytes_per_s=moved[widest],
        bytes_by=widest,
        measured={**operations, **moved},
    )


def _measured(command: list[str], threads: int, memo: Path) -> dict[str, dict[str, float]]:
    """What the worker reached, or what one on this machine did within the hour."""
    known = read_memo(memo)
    age_s = time.time() - known["unix_s"] if isinstance(known, dict) and "unix_s" in known else math.inf
    if known and 0 <= age_s < _FRESH_S:
        return {key: dict(known[key]) for key in _RATES}
    answer = json.loads(_output(command, env=thread_variables(threads)))
    rates: dict[str, dict[str, float]] = {key: dict(answer[key]) for key in _RATES}
    if known and 0 <= age_s < _KEPT_S:
        for key, before in ((key, known[key]) for key in _RATES):
            rates[key] = {by: max(rate, before.get(by, 0.0)) for by, rate in rates[key].items()}
    write_memo(memo, {"unix_s": time.time(), **rates})
    return rates


def _loop(threads: int, toolchain: Toolchain, host_cpu: str, cache: Path) -> Path:
    text = _multiply_add_loop(threads * _ELEMENTS_PER_THREAD)
    key = json.dumps([text, _FLAGS, toolchain.compiler_sha256, host_cpu])
    kept = cache / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.vmfb"
    if not kept.is_file():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            source, module = Path(folder) / "model.mlir", Path(folder) / "model.vmfb"
            source.write_text(text)
            _output([str(toolchain.iree_compile), str(source), "-o", str(module), *_FLAGS])
            try:
                write_atomically(kept, module.read_bytes())
            except OSError as error:
                message = f"the peaks' program cannot be kept in {cache} ({error.strerror}); make room"
                raise CaseError("measure", message) from None
    return kept


def _output(command: list[str], env: dict[str, str] | None = None) -> str:
    name = Path(command[1] if command[1].endswith(".py") else command[0]).name
    finished = run_tool("measure", name, command, limits=_LIMITS, environment=env)
    if not finished.ok:
        raise CaseError("measure", f"{name} {finished.how_it_ended(_LIMITS)}", stderr=excerpt(finished.stderr))
    return finished.stdout


def _multiply_add_loop(elements: int) -> str:
    """MLIR of a function on a vector, whose every element goes through `_OPERATIONS_PER_ELEMENT` operations."""
    from jinja2 import Environment

    template = Environment().from_string(_LOOP.read_text())  # noqa: S701 (MLIR, not a page)
    return template.render(elements=elements, sums=_SUMS, steps=_STEPS)
