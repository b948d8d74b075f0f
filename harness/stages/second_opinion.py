"""What a baseline without any reference is held against: its program, compiled by IREE in another, plainer way.

Without optimisation and for any processor, or for the interpreter, the program goes through other code of the compiler
and the runtime. What both ways do alike is not found: a wrong reading of ONNX or PyTorch, or a wrong schedule.
"""

from __future__ import annotations

import math
import mmap
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.cache import cache_root, read_memo, write_memo
from harness.compile import BuildCache, CompileRequest
from harness.compile.request import cache_key
from harness.errors import CaseError
from harness.models.bench_folder import lay_out
from harness.models.model import Model
from harness.process import Limits
from harness.records.run import Build
from harness.text import one_line
from harness.toolchain import compiler_flags
from harness.verify import Right, Runnable

_LOCAL = "--iree-hal-target-device=local"
_BACKEND = "--iree-hal-local-target-device-backends="
_LEVEL = "iree-opt-level"
# What `auto` spends on a compile, and again on a call.
_AUTO_LIMIT_S = 10.0
# Sums may be rounded to these types on the way or not, so two right programs differ by more than any useful tolerance.
_ROUGH = b"f16"
_ADVICE = '; where that is what is wrong, give expected files, or set check = "none"'
_LONGEST = 200
_KILLED = "SIGKILL"
_SOURCES = {"vmvx": "IREE's interpreter VMVX", "plain": "IREE without optimisation, for any processor"}


@dataclass(frozen=True, kw_only=True)
class SecondPath:
    """Runs a baseline's program as IREE compiles it in another way.

    Attributes:
        models: Of the suite, by name.
        scratch: A folder for what is run.
        why_none: Why a case had none, by its name.
    """

    models: Mapping[str, Model]
    scratch: Path
    compile_limits: Limits
    call_limits: Limits
    why_none: dict[str, str] = field(default_factory=dict)

    def __call__(self, runnable: Runnable) -> Right | None:
        """The outputs of that program; None where none is asked for, or none can be had.

        Raises:
            OSError: The cache cannot be written.
        """
        found = self._asked(runnable)
        if isinstance(found, Right):
            return found
        self.why_none[runnable.case.name] = found
        return None

    def _asked(self, runnable: Runnable) -> Right | str:
        check = self.models[runnable.case.model].check
        if check == "none":
            return 'the suite says check = "none"'
        if check != "auto":
            return self._run(runnable, check, self.compile_limits, self.call_limits)
        if _is_rough(runnable.artifact.mlir):
            return "its program has values of f16 or bf16, whose sums are rounded in many ways"
        reasons = []
        for way in ("vmvx", "plain"):
            found = self._run(runnable, way, _at_most(self.compile_limits), _at_most(self.call_limits))
            if isinstance(found, Right):
                return found
            reasons.append(found)
        return "; ".join(reasons)

    def _run(self, runnable: Runnable, way: str, compile_limits: Limits, call_limits: Limits) -> Right | str:
        """What is right by this way, or why it says nothing."""
        case = replace(
            runnable.case,
            name=f"{runnable.case.name} ({way})",
            uri="local-sync",
            more_uris=(),
            environment={},
            compile_flags=_flags(runnable, way),
            run_flags=(),
        )
        request = CompileRequest(
            case=case,
            toolchain=runnable.toolchain,
            model=runnable.artifact.mlir,
            model_sha256=runnable.artifact.sha256,
            function=runnable.artifact.function,
            host_cpu="",
            limits=compile_limits,
        )
        source = _SOURCES[way]
        build = _compiled(request)
        if isinstance(build, str):
            return f"{source}: {build}"
        if build.module_sha256 == runnable.build.module_sha256:
            return f"{source} gives the same module"
        bench = lay_out(
            Path(tempfile.mkdtemp(prefix=way, dir=self.scratch)) / "bench",
            BuildCache(cache_root()).module(build),
            runnable.artifact,
        )
        try:
            outputs = replace(runnable, case=case, build=build, bench=bench).outputs(call_limits)
        except CaseError as error:
            return f"{source}: {one_line(str(error))[:_LONGEST]}"
        return Right(source=source, outputs=outputs, advice=_ADVICE)


def _compiled(request: CompileRequest) -> Build | str:
    """The program's build, or why there is none.

    Why is kept in the cache, since the same compile fails again: the next run asks it only with more time than it had.
    What was killed from outside, as where memory is short, is tried again.
    """
    cache, key = BuildCache(cache_root()), cache_key(request)
    memo = cache_root() / "opinions" / f"{key}.json"
    limit_s = request.limits.seconds or math.inf
    match read_memo(memo):
        case {"failed": str(reason), "limit_s": int() | float() as had_s} if had_s >= limit_s:
            found = cache.find(key, request.case.name)
            return reason if found is None else found
    build, _ = cache.compile(request)
    if build.failure is None:
        return build
    reason = one_line(build.failure.message)[:_LONGEST]
    if _KILLED not in reason:
        write_memo(memo, {"failed": reason, "limit_s": limit_s})
    return reason


def _is_rough(mlir: Path) -> bool:
    """Whether a program has values of f16 or bf16 anywhere."""
    with mlir.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(_ROUGH) >= 0


def _flags(runnable: Runnable, way: str) -> tuple[str, ...]:
    if way == "vmvx":
        return (_LOCAL, f"{_BACKEND}vmvx")
    level = (f"--{_LEVEL}=O0",) if _LEVEL in compiler_flags(runnable.toolchain) else ()
    return (_LOCAL, f"{_BACKEND}llvm-cpu", "--iree-llvmcpu-target-cpu=generic", *level)


def _at_most(limits: Limits) -> Limits:
    seconds = _AUTO_LIMIT_S if limits.seconds is None else min(limits.seconds, _AUTO_LIMIT_S)
    return replace(limits, seconds=seconds)
