"""Right outputs of a model: from the evaluator, from outside, or else from IREE's interpreter.

The evaluator is asked first. It works on the model as it is before any plugin, once for a model and its inputs; one
release of IREE, that beside the harness, turns it into linalg. Expected files and ONNX Runtime judge too where they
are, since that conversion is IREE's own. IREE's interpreter is asked where nothing else says anything.
"""

import hashlib
import json
import math
import mmap
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from harness.cache import cache_root, read_memo, trim, write_memo
from harness.compile import BuildCache, CompileRequest
from harness.errors import CaseError, ToolchainError
from harness.models.inputs import ARGUMENTS, load_argument
from harness.models.materialize import ModelArtifact, lay_out
from harness.models.model import Model, Tolerance
from harness.models.onnx_file import onnxruntime_version, run_onnx
from harness.process import Limits
from harness.records.case import Case
from harness.scratch import scratch_folder
from harness.text import one_line
from harness.toolchain import Toolchain, find_toolchain
from harness.toolchain.tools import error_lines, run_tool
from harness.verify.difference import COARSE, Right, left_open
from harness.verify.outputs import AnyRunnable, Array, Runnable, load_array
from harness.verify.sampled import PLACES as SAMPLED

_FOLDER = "references"
_CONVERSION_S = 120.0
ADVICE = '; where that is what is wrong, give expected files, or set check = "none" and say why'
_LONGEST = 200
_KILLED = "SIGKILL"
# Sums of f16 and bf16 may be rounded on the way or not.
_ROUGH, _ROUGH_TOLERANCE = b"f16", Tolerance(relative=2e-2)
_STABLE = (b"is_stable = true", b"is_stable = 1", b"onnx.TopK")
_EXPECTED = "expected files"
# What the interpreter may take for a compile, and again for a call.
_INTERPRETER_S = 10.0
_VMVX = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=vmvx")


@dataclass(frozen=True, kw_only=True)
class Judges:
    """What a case's outputs are held against."""

    rights: tuple[Right, ...] = ()  # All of it; () where there is nothing
    evaluated: bool = False  # Whether the first of them is the evaluator's
    why_none: str = ""  # Why the evaluator says nothing, as a phrase


@dataclass(frozen=True, kw_only=True)
class References:
    """Gives right outputs, each made once."""

    models: Mapping[str, Model]  # Of the suite, by name
    compile_limits: Limits
    call_limits: Limits  # Of the cases that are checked
    _found: dict[str, Right | str] = field(default_factory=dict)

    def judges(self, item: AnyRunnable, *, asked: bool = True) -> Judges:
        """What the outputs of a case are held against."""
        model, artifact, flags = self.models[item.case.model], item.artifact, _input_flags(item.case)
        outside = self._once(f"outside of {model.name}", partial(_outside, model, artifact)) if asked else ""
        if model.reference == "expected":
            return Judges(rights=(outside,) if isinstance(outside, Right) else ())
        make = partial(evaluated, artifact, flags, model.check_seconds, self.compile_limits)
        found = self._once(_key(artifact, flags), make)
        if isinstance(found, str):
            if isinstance(outside, str) and isinstance(item, Runnable):
                make = partial(_interpreted, item, found, self.compile_limits, self.call_limits)
                outside = self._once(f"interpreted {_key(artifact, ())}", make)
            why = f"{found}; {outside}" if isinstance(outside, str) and outside else found
            return Judges(rights=(outside,) if isinstance(outside, Right) else (), why_none=why)
        if not isinstance(outside, Right):
            return Judges(rights=(found,), evaluated=True)
        allowed = found.allowed or ()
        if [output.shape for output in outside.outputs] == [bounds.shape for bounds in allowed]:
            # Both sides round, each as much as the evaluator allows.
            twice = [2.0 * bounds for bounds in allowed]
            if outside.source == _EXPECTED:
                # What the converted program leaves open, the model may not.
                pairs = zip(twice, left_open(found), strict=True)
                twice = [np.where(free, 0.0, bounds) for bounds, free in pairs]
            outside = replace(outside, allowed=twice)
        return Judges(rights=(found, outside), evaluated=True)

    def tolerance(self, model: Model, artifact: ModelArtifact) -> Tolerance:
        """What is allowed where the evaluator does not say it: the suite's, or by the element types of the program."""
        if model.tolerance is not None:
            return model.tolerance
        return _ROUGH_TOLERANCE if has_text(artifact.mlir, _ROUGH) else Tolerance()

    def _once(self, key: str, make: Callable[[], Right | str]) -> Right | str:
        if key not in self._found:
            self._found[key] = make()
        return self._found[key]


def _input_flags(case: Case) -> tuple[str, ...]:
    """Those that change the types of the program itself, so that each setting of them is another program."""
    return tuple(flag for flag in case.compile_flags if flag.startswith("--iree-input-"))


def has_text(mlir: Path, *words: bytes) -> bool:
    """Whether a program's file has one of these words anywhere; of a large file that is quick."""
    if not mlir.stat().st_size:
        return False
    with mlir.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return any(text.find(word) >= 0 for word in words)


def _outside(model: Model, artifact: ModelArtifact) -> Right | str:
    """What expected files or ONNX Runtime say; "" where neither is there."""
    if model.expected:
        return Right(source=_EXPECTED, outputs=[_load_expected(path) for path in model.expected])
    if model.reference == "baseline":
        return ""
    if artifact.onnx is None:
        if model.reference == "onnxruntime":
            raise CaseError("verify", 'reference = "onnxruntime": the model has no ONNX form; leave reference out')
        return ""
    version = onnxruntime_version()
    if model.reference == "auto" and version is None:
        return ""
    inputs = [load_argument(argument) for argument in artifact.arguments]
    outputs = run_onnx(artifact.onnx, inputs)
    return Right(source=f"ONNX Runtime {version}", outputs=outputs, coarse=COARSE)


def _load_expected(path: Path) -> Array:
    try:
        return load_array(path)
    except ValueError as error:
        raise CaseError("verify", f"{path}: this expected file {error}; write it again") from None


# --- the evaluator ----------------------------------------------------------------------------------------------------


@cache
def _converter() -> Toolchain | str:
    """The release that turns programs into linalg: that beside the harness; or why there is none."""
    try:
        return find_toolchain()
    except ToolchainError as error:
        return str(error)


@cache
def _evaluator_sha256() -> str:
    here = Path(__file__).parent
    read = (here.parent / "ir" / name for name in ("operations.py", "sizes.py"))
    sources = [*sorted(here.glob("*.py")), *read]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()


def _key(artifact: ModelArtifact, flags: Sequence[str]) -> str:
    converter = _converter()
    parts = [
        _evaluator_sha256(),
        converter.compiler_sha256 if isinstance(converter, Toolchain) else "",
        artifact.sha256,
        artifact.function,
        *[f"{argument.file.parent.name}/{argument.file.name}" for argument in artifact.arguments],
        *flags,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def evaluated(artifact: ModelArtifact, flags: Sequence[str], seconds: float, limits: Limits) -> Right | str:
    """A model's right outputs as the evaluator finds them, or why it does not, as a phrase; kept in the cache."""
    converter = _converter()
    if isinstance(converter, str):
        return f"the reference evaluator needs IREE's compiler: {converter}"
    key = _key(artifact, flags)
    folder = cache_root() / _FOLDER / key
    source = f"the float64 reference (linalg by IREE {converter.version})"
    match read_memo(folder / "answer.json"):
        case {"why": str(why), "seconds": int() | float() as had} if had >= seconds:
            return why
    if (right := kept_reference(key, source)) is not None:
        return right
    (cache_root() / _FOLDER).mkdir(parents=True, exist_ok=True)
    with scratch_folder(cache_root() / _FOLDER, ".evaluating-") as scratch:
        answer = _evaluate(artifact, flags, seconds, limits, converter, scratch)
        if _KILLED in str(answer.get("why", "")):
            return str(answer["why"])
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file in [*scratch.glob("right*.npy"), *scratch.glob("allowed*.npy")]:
            file.replace(folder / file.name)
        write_memo(folder / "answer.json", answer)
    if "why" in answer:
        return str(answer["why"])
    trim((cache_root() / _FOLDER).glob("*/*.npy"))
    return kept_reference(key, source) or "the reference evaluator's answer could not be kept"


def kept_reference(key: str, source: str = "") -> Right | None:
    """What the evaluator found before; None where the cache no longer has it."""
    folder = cache_root() / _FOLDER / key
    answer = read_memo(folder / "answer.json") if key.isalnum() else None
    if not isinstance(answer, dict) or "kinds" not in answer:
        return None
    kinds = tuple(answer["kinds"])
    try:
        outputs, allowed = (
            [load_array(folder / f"{name}{position}.npy") for position in range(len(kinds))]
            for name in ("right", "allowed")
        )
    except ValueError:
        return None
    bounds = [np.asarray(array, dtype=np.float64) for array in allowed]
    axes = tuple(answer["axes"])
    part = f" at {SAMPLED} places of an axis" if any(axis >= 0 for axis in axes) else ""
    return Right(
        source=f"{source}{part}",
        outputs=outputs,
        allowed=bounds,
        kinds=kinds,
        axes=axes,
        key=key,
        advice=ADVICE,
        keeps_state=answer["state"],
    )


def _evaluate(
    artifact: ModelArtifact,
    flags: Sequence[str],
    seconds: float,
    limits: Limits,
    converter: Toolchain,
    folder: Path,
) -> dict[str, object]:
    """The evaluator's answer, its arrays in the folder; with the key `why` where it says nothing."""
    within = replace(limits, seconds=min(_CONVERSION_S, limits.seconds or _CONVERSION_S))
    program = folder / "program.mlir"
    options = ["--compile-to=input", "--iree-hal-target-device=local", *flags]
    command = [str(converter.iree_compile), str(artifact.mlir), "-o", str(program), *options]
    finished = run_tool("verify", "iree-compile", command, cwd=folder, limits=within)
    if not finished.ok:
        reason = next(iter(error_lines(finished.stderr)), finished.how_it_ended(within))
        return {"why": f"iree-compile does not turn it into linalg: {one_line(reason)[:_LONGEST]}", "seconds": seconds}
    request = {
        "program": str(program),
        "function": artifact.function,
        "arguments": ARGUMENTS.dump_python(artifact.arguments, mode="json"),
        "parameters": {scope: str(path.absolute()) for scope, path in artifact.parameters.items()},
        "seconds": seconds,
        # The conversion drops whether a sort is stable; of most it is not asked.
        "orders_ties": has_text(artifact.mlir, *_STABLE),
    }
    (folder / "request.json").write_text(json.dumps(request))
    command = [sys.executable, "-m", "harness.verify.evaluate", str(folder / "request.json")]
    # A second thread of the linear algebra would wait for compilers that run beside it.
    alone = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    within = replace(limits, seconds=3 * seconds + _CONVERSION_S)
    finished = run_tool("verify", "the reference evaluator", command, limits=within, environment=alone)
    if not finished.ok:
        last = finished.stderr.strip().splitlines()[-1:] or [""]
        how = finished.how_it_ended(within)
        return {"why": f"the reference evaluator {how}: {one_line(last[0])[:_LONGEST]}", "seconds": seconds}
    answer: dict[str, object] = json.loads(finished.stdout)
    if "unsupported" in answer:
        return {"why": f"the reference evaluator does not know {answer['unsupported']}", "seconds": math.inf}
    if "too_long" in answer:
        reason = f"the reference would take longer than {seconds:g} s ({answer['too_long']}; check_seconds gives more)"
        return {"why": reason, "seconds": seconds}
    return answer


# --- the interpreter --------------------------------------------------------------------------------------------------


def _interpreted(runnable: Runnable, why: str, compile_limits: Limits, call_limits: Limits) -> Right | str:
    """What IREE's interpreter makes of a model that the evaluator does not judge, or why it says nothing."""
    source, artifact = "IREE's interpreter VMVX", runnable.artifact
    compile_limits, call_limits = (
        replace(limits, seconds=min(limits.seconds or _INTERPRETER_S, _INTERPRETER_S))
        for limits in (compile_limits, call_limits)
    )
    case = replace(
        runnable.case,
        name=f"{runnable.case.name} (vmvx)",
        uri="local-sync",
        more_uris=(),
        environment={},
        compile_flags=(*_VMVX, *_input_flags(runnable.case)),
        run_flags=(),
    )
    request = CompileRequest(
        case=case,
        toolchain=runnable.toolchain,
        model=artifact.mlir,
        model_sha256=artifact.sha256,
        function=artifact.function,
        host_cpu="",
        limits=compile_limits,
    )
    builds = BuildCache(cache_root())
    build, _ = builds.compile(request)
    if build.failure is not None:
        return f"{source}: {one_line(build.failure.message)[:_LONGEST]}"
    if build.module_sha256 == runnable.build.module_sha256:
        return f"{source} gives the same module"
    with tempfile.TemporaryDirectory(prefix="vmvx") as scratch:
        folder = lay_out(Path(scratch) / "bench", builds.module(build), artifact)
        try:
            outputs = replace(runnable, case=case, build=build, folder=folder).outputs(call_limits)
        except CaseError as error:
            return f"{source}: {one_line(str(error))[:_LONGEST]}"
    return Right(source=f"{source}, since {why}", outputs=outputs, advice=ADVICE)
