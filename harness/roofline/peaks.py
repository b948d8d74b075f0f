"""This machine's peaks with a number of threads: arithmetic in f32, and memory bandwidth, by a fresh process."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
import time
from pathlib import Path

from harness.cache import read_memo, write_atomically, write_memo
from harness.errors import CaseError
from harness.machine.pinning import last_core, thread_variables
from harness.process import Limits, run
from harness.records.run import Failure, Peak
from harness.roofline.peak_programs import ELEMENTS_PER_THREAD, OPERATIONS_PER_ELEMENT, multiply_add_loop
from harness.toolchain import Toolchain
from harness.toolchain.messages import tail

_WORKER = Path(__file__).with_name("peak_worker.py")
_LIMITS = Limits(seconds=120)
_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
_RATES = ("operations_per_s", "bytes_per_s")
_FRESH_S = 3600.0
_KEPT_S = 24 * _FRESH_S


def measure_peak(device: str, threads: int, toolchain: Toolchain, *, host_cpu: str, cache: Path) -> Peak:
    """Measure what so many threads reach; one thread is held on the core that measuring workers are pinned to.

    Args:
        device: Whose peak it is, by the suite's name for it.
        host_cpu: Identity of this machine's CPU, for which the loop of multiply-adds is compiled.
        cache: A folder, made if need be, that keeps its module.

    Returns:
        The peak; its `failure` is set where nothing could be measured.
    """
    try:
        module = _loop(threads, toolchain, host_cpu, cache)
        cpus = last_core() if threads == 1 else None
        elements = threads * ELEMENTS_PER_THREAD
        request = {
            "threads": threads,
            "cpus": sorted(cpus or ()),
            "module": str(module),
            "elements": elements,
            "operations": elements * OPERATIONS_PER_ELEMENT,
        }
        command = [*toolchain.python_command, str(_WORKER), json.dumps(request)]
        answer = _measured(command, threads, module.with_suffix(".json"))
    except CaseError as error:
        return Peak(
            device=device, threads=threads, failure=Failure(stage="measure", message=str(error), stderr=error.stderr)
        )
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
    """What the worker reached, or what one on this machine did within the hour.

    Whatever else a machine does can only lower a peak, so the best of a day's measurements is nearest to it.
    """
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
    """The module of multiply-adds, compiled for this machine."""
    text = multiply_add_loop(threads * ELEMENTS_PER_THREAD)
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
    """What a tool prints on its way to the peaks.

    Raises:
        CaseError: It failed, or cannot be started (stage `measure`).
    """
    try:
        finished = run(command, limits=_LIMITS, env=env)
    except OSError as error:
        raise CaseError("measure", f"{command[0]} cannot be started ({error.strerror})") from None
    if not finished.ok:
        name = Path(command[1] if command[1].endswith(".py") else command[0]).name
        raise CaseError("measure", f"{name} {finished.how_it_ended(_LIMITS)}", stderr=tail(finished.stderr))
    return finished.stdout
