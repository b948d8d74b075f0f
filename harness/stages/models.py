"""[Case] -> models' MLIR and inputs, and what is wrong with them, before anything is compiled."""

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import harness
from harness.cache import cache_root, read_memo, write_memo
from harness.errors import CaseError, RunError, SuiteError
from harness.ir.dump import ask
from harness.machine.processor import usable_cores
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
# Programs whose functions one process reads; their paths are its command line.
_AT_ONCE = 200
_T = TypeVar("_T")


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
    """Build or import the models of all cases that will run; by name, a failure where one could not be made."""
    wanted: dict[str, list[Case]] = {}
    for case in prepared.cases:
        if case.skip is None:
            wanted.setdefault(case.model, []).append(case)
    models = [model for model in prepared.suite.models if model.name in wanted]
    progress.stage("Models", len(models))
    failures = FailureNotes(progress)
    artifacts = dict(_made(models, prepared, limits, progress))
    made = [artifact for artifact in artifacts.values() if isinstance(artifact, ModelArtifact)]
    _read_functions([artifact.mlir for artifact in made], prepared.toolchain, limits)
    for model in models:
        artifact, cases = artifacts[model.name], wanted[model.name]
        if isinstance(artifact, ModelArtifact):
            flags = [flag for case in cases for flag in case.compile_flags]
            check = partial(check_entry, model, artifact, flags, toolchain=prepared.toolchain, limits=limits)
            wrong = _or_failure(model, prepared, check)
            artifact = artifacts[model.name] = artifact if wrong is None else wrong
        if isinstance(artifact, Failure) and notes:
            failures.model(model.name, artifact, cases)
    return artifacts


def _made(
    models: Sequence[Model], prepared: Prepared, limits: Limits, progress: Progress
) -> Iterator[tuple[str, ModelArtifact | Failure]]:
    """All models, each with its name; of files of MLIR, which a tool reads, several at once."""

    def make(model: Model) -> ModelArtifact:
        with writing_the_cache():
            return materialize(
                model,
                store=cache_root() / "models",
                toolchain=prepared.toolchain,
                limits=limits,
                with_onnx=bool(prepared.peers) or model.reference == "onnxruntime",
            )

    pool = ThreadPoolExecutor(usable_cores())
    try:
        files = {model.name: pool.submit(make, model) for model in models if model.mlir is not None}
        for model in models:
            progress.step(model.name, advance=0)
            result = files[model.name].result if model.name in files else partial(make, model)
            yield model.name, _or_failure(model, prepared, result)
            progress.step(model.name)
    finally:
        pool.shutdown(cancel_futures=True)


def _or_failure(model: Model, prepared: Prepared, make: Callable[[], _T]) -> _T | Failure:
    """What is made of a model, or why it cannot be made."""
    try:
        return make()
    except SuiteError as error:  # such as an ONNX file whose inputs the suite has to give: the others go on
        return Failure(stage="model", message=f"{prepared.suite.path}: {error}")
    except CaseError as error:
        return Failure.of(error)
    except (MemoryError, OverflowError, ValueError) as error:  # of sizes that nothing can hold, and the others go on
        reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
        return Failure(stage="model", message=f"[models.{model.name}] cannot be made ({reason}); give smaller sizes")


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
    """Hold what a suite says of a model's entry function against the program."""
    where = f"[models.{model.name}]"
    for file in model.expected:
        try:
            load_array(file)
        except ValueError as error:
            raise SuiteError(f"{where} expected: {file} {error}; write it again") from None
    functions = _functions(artifact.mlir, toolchain, limits) if model.builder is None else {}
    if not functions:  # what cannot be read here is left to the compiler to judge
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


def _functions_memo(mlir: Path, toolchain: Toolchain) -> Path:
    sha256 = mlir.parent.name  # the store names folders by their program's hash
    key = hashlib.sha256(f"{harness.__version__} {sha256} {toolchain.compiler_sha256}".encode()).hexdigest()[:32]
    return cache_root() / "models" / "memos" / f"entries-{key}.json"


def _read_functions(programs: Iterable[Path], toolchain: Toolchain, limits: Limits) -> None:
    """Read the functions of many programs in one process; what it cannot read is read again, by itself."""
    memos = {str(mlir): _functions_memo(mlir, toolchain) for mlir in programs}
    unread = [mlir for mlir, memo in memos.items() if not memo.is_file()]
    for first in range(0, len(unread), _AT_ONCE):
        files = {mlir: Path(mlir) for mlir in unread[first : first + _AT_ONCE]}
        with contextlib.suppress(CaseError):
            for mlir, functions in ask("entries", files, "", toolchain=toolchain, limits=limits).items():
                write_memo(memos[mlir], functions)


def _functions(mlir: Path, toolchain: Toolchain, limits: Limits) -> dict[str, Any]:
    memo = _functions_memo(mlir, toolchain)
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
