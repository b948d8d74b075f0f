"""[Case] -> models' MLIR and inputs, and what is wrong with them, before anything is compiled."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import harness
from harness.cache import cache_root, read_memo, write_memo
from harness.errors import CaseError, RunError, SuiteError
from harness.ir.dump import ask
from harness.models.builder import check_params, find_builder
from harness.models.inputs import Argument
from harness.models.materialize import ModelArtifact, materialize
from harness.models.model import Model
from harness.peers.peer import PeerModel
from harness.plugins.options import as_json
from harness.process import Limits
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Failure
from harness.stages.prepare import FailureNotes, Prepared
from harness.text import did_you_mean, plural
from harness.toolchain import Toolchain
from harness.verify.outputs import load_array

_LONGEST_REASON = 300


@contextmanager
def writing_the_cache(remedy: str = "make room or set HARNESS_CACHE") -> Iterator[None]:
    """Turn what the system says of a cache that cannot be written into a sentence for the user."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{cache_root()}: the cache cannot be written ({error.strerror}); {remedy}") from None


def materialize_models(
    prepared: Prepared, limits: Limits, progress: Progress, *, notes: bool = True
) -> dict[str, ModelArtifact | Failure]:
    """Build or import the models of all cases that will run; by name, a failure where one could not be made.

    Entry functions are held against what the suite says of them, and each failure is a note at once.
    """
    wanted: dict[str, list[Case]] = {}
    for case in prepared.cases:
        if case.skip is None:
            wanted.setdefault(case.model, []).append(case)
    models = [model for model in prepared.suite.models if model.name in wanted]
    progress.stage("Models", len(models))
    failures = FailureNotes(progress)
    artifacts: dict[str, ModelArtifact | Failure] = {}
    for model in models:
        progress.step(model.name, advance=0)
        artifact = _materialized(model, prepared, wanted[model.name], limits)
        if isinstance(artifact, Failure) and notes:
            failures.model(model.name, artifact, wanted[model.name])
        artifacts[model.name] = artifact
        progress.step(model.name)
    return artifacts


def _materialized(model: Model, prepared: Prepared, cases: Sequence[Case], limits: Limits) -> ModelArtifact | Failure:
    try:
        with writing_the_cache():
            artifact = materialize(
                model,
                store=cache_root() / "models",
                toolchain=prepared.toolchain,
                limits=limits,
                with_onnx=bool(prepared.peers) or model.reference == "onnxruntime",
            )
        flags = [flag for case in cases for flag in case.compile_flags]
        check_entry(model, artifact, flags, toolchain=prepared.toolchain, limits=limits)
    except SuiteError as error:  # such as an ONNX file whose inputs the suite has to give: the others go on
        return Failure(stage="model", message=f"{prepared.suite.path}: {error}")
    except CaseError as error:
        return Failure.of(error)
    except (MemoryError, OverflowError, ValueError) as error:  # of sizes that nothing can hold, and the others go on
        reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
        return Failure(stage="model", message=f"[models.{model.name}] cannot be made ({reason}); give smaller sizes")
    return artifact


def skip_unfit_peers(prepared: Prepared, artifacts: Mapping[str, ModelArtifact | Failure]) -> Prepared:
    """The same plan, the cases of peers that have no program for their model being skipped, with the reason."""
    models = {model.name: model for model in prepared.suite.models}

    def checked(case: Case) -> Case:
        artifact = artifacts.get(case.model)
        if case.peer is None or case.skip is not None or not isinstance(artifact, ModelArtifact):
            return case
        applied = prepared.peers[case.variant]
        reason = applied.refuses(peer_model(models[case.model], artifact))
        return case if reason is None else replace(case, skip=reason)

    return replace(prepared, cases=tuple(checked(case) for case in prepared.cases))


def peer_model(model: Model, artifact: ModelArtifact) -> PeerModel:
    """A model in the forms that peers read."""
    params = {}
    if model.builder is not None:
        params = as_json(check_params(find_builder(model.builder), model.params))
    onnx = artifact.onnx.absolute() if artifact.onnx is not None else None  # a peer's process has a folder of its own
    return PeerModel(name=model.name, builder=model.builder, params=params, onnx=onnx, inputs=artifact.inputs)


# --- entry ---


# `tensor<4x?xf32>`, with or without an encoding, and `!torch.vtensor<[4,?],f32>`.
_TENSOR = re.compile(r"tensor<(?P<shape>(?:(?:\d+|\?)x)*)(?P<dtype>[a-z]+\d+)(?:,.*)?>")
_TORCH = re.compile(r"!torch\.vtensor<\[(?P<shape>[\d?,]*)\],(?P<dtype>[a-z]+\d+)>")
_NUMBER = re.compile(r"[if]\d+|index")
# Flags that make a function take another element type than it declares. IREE demotes f64 unless it is told otherwise.
_CONVERSION = re.compile(r"^--?iree-input-(?:demote|promote)-(\w+)-to-(\w+)")
_ALWAYS = frozenset({("f64", "f32"), ("i1", "i8")})


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A declared argument or result; None in `shape` is a dynamic size."""

    shape: tuple[int | None, ...]
    dtype: str

    def __str__(self) -> str:
        return "x".join([*("?" if size is None else str(size) for size in self.shape), self.dtype])


def tensor_of(text: str) -> Tensor | None:
    """The tensor that a type of MLIR is; None for anything else."""
    found = _TENSOR.fullmatch(text) or _TORCH.fullmatch(text)
    if found is None:
        return None
    sizes = [size for size in re.split("[x,]", found["shape"]) if size]
    dtype = re.sub(r"^[su]i", "i", found["dtype"])
    return Tensor(shape=tuple(None if size == "?" else int(size) for size in sizes), dtype=dtype)


def check_entry(
    model: Model, artifact: ModelArtifact, flags: Iterable[str], *, toolchain: Toolchain, limits: Limits
) -> None:
    """Hold what a suite says of a model's entry function against the program.

    A program that cannot be read here, and an argument that is no tensor, is left to the compiler to judge.
    """
    where = f"[models.{model.name}]"
    for file in model.expected:
        try:
            load_array(file)
        except ValueError as error:
            raise SuiteError(f"{where} expected: {file} {error}; write it again") from None
    functions = _functions(artifact.mlir, toolchain, limits) if model.builder is None else {}
    if not functions:
        return
    name = artifact.function.removesuffix("$async")  # IREE gives each function such a twin
    public = [other for other, function in functions.items() if function["public"]]
    if name not in public:
        hint = did_you_mean(name, public) if public else "; it has none"
        raise SuiteError(f"{where} function: {model.mlir or model.onnx} has no public function {name!r}{hint}")
    arguments, results = functions[name]["arguments"], functions[name]["results"]
    given = artifact.arguments
    if any(text.startswith("!hal.fence") for text in arguments):
        return
    if len(given) != len(arguments):
        listed = f" ({', '.join(map(_in_words, arguments))})" if arguments else ""
        takes = f"{plural(len(arguments), 'argument')}{listed}"
        raise SuiteError(f"{where} inputs: {name} takes {takes}, not {len(given)}; correct inputs")
    conversions = _ALWAYS | {match.groups() for flag in flags if (match := _CONVERSION.match(flag))}
    for position, (text, argument) in enumerate(zip(arguments, given, strict=True)):
        if not _takes(text, argument, conversions):
            tensor = Tensor(shape=argument.shape, dtype=argument.dtype)
            ours = f"a number of {argument.dtype}" if argument.scalar else tensor
            sentence = f"{name} takes {_in_words(text)}, and {ours} is given; correct it"
            raise SuiteError(f"{where} inputs[{position}]: {sentence}")
    if model.expected and len(model.expected) != len(results):
        gives = f"{name} gives {plural(len(results), 'result')}, not {len(model.expected)}"
        raise SuiteError(f"{where} expected: {gives}; name a file for each")


def _in_words(text: str) -> str:
    return f"a number of {text}" if _NUMBER.fullmatch(text) else str(tensor_of(text) or text)


def _takes(text: str, given: Argument, conversions: frozenset[tuple[Any, ...]]) -> bool:
    """Whether an argument may be given where one is declared by its text of MLIR."""
    tensor = tensor_of(text)
    if tensor is None and not _NUMBER.fullmatch(text):
        return True
    shape, dtype = ((), text) if tensor is None else (tensor.shape, tensor.dtype)
    fits = len(shape) == len(given.shape) and all(
        size in (None, our) for size, our in zip(shape, given.shape, strict=True)
    )
    # The tools would hand the bits of another type on as if they were the declared type's.
    is_of_type = given.dtype == dtype or (dtype, given.dtype) in conversions
    return fits and is_of_type and given.scalar == (tensor is None)


def _functions(mlir: Path, toolchain: Toolchain, limits: Limits) -> dict[str, Any]:
    sha256 = mlir.parent.name  # the store names folders by their program's hash
    key = hashlib.sha256(f"{harness.__version__} {sha256} {toolchain.compiler_sha256}".encode()).hexdigest()[:32]
    memo = cache_root() / "models" / "memos" / f"entries-{key}.json"
    kept = read_memo(memo)
    if isinstance(kept, dict):
        return kept
    try:
        answer = ask("entries", {"input": mlir}, f" on {mlir.name}", toolchain=toolchain, limits=limits)
    except CaseError:
        return {}
    functions: dict[str, Any] = answer["input"]
    write_memo(memo, functions)
    return functions
