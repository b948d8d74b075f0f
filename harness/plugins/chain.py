"""Plugins in the order that a variant names them -> what is rewritten, and which flags and files the tools get."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.errors import SuiteError
from harness.plugins.plugin import (
    REWRITE_PHASES,
    Applied,
    CompilerPlugin,
    ExecutablePlugin,
    Flags,
    PassPipeline,
    PdlSpec,
    PluginFile,
    Rewrite,
    Step,
    TransformLibrary,
    TransformSpec,
    TuningSpec,
)
from harness.toolchain.tools import flag_name, merge_flags

PIPELINE_FLAG = "iree-preprocessing-pass-pipeline"
TRANSFORM_SPEC_FLAG = "iree-preprocessing-transform-spec-filename"
PDL_SPEC_FLAG = "iree-preprocessing-pdl-spec-filename"
TUNING_SPEC_FLAG = "iree-codegen-tuning-spec-path"
TRANSFORM_LIBRARY_FLAG = "iree-codegen-transform-dialect-library"

_ANCHOR = "builtin.module("
_LISTS = ("iree-load-plugin", "iree-plugin")
_PASSES, _IN = REWRITE_PHASES.index("preprocessing") - 0.5, " in phase preprocessing"
_LAST = (len(REWRITE_PHASES), "works in code generation")


class _Spec(NamedTuple):
    """What iree-compile takes one of, in a file."""

    noun: str
    flag: str
    place: float  # Among the phases; passes, transform spec and PDL spec run in this order, which is iree-compile's own
    does: str


_SPECS: Mapping[type[Step], _Spec] = {
    TransformSpec: _Spec("transform spec", TRANSFORM_SPEC_FLAG, _PASSES + 0.1, f"applies a transform spec{_IN}"),
    PdlSpec: _Spec("PDL spec", PDL_SPEC_FLAG, _PASSES + 0.2, f"applies a PDL spec{_IN}"),
    TuningSpec: _Spec("tuning spec", TUNING_SPEC_FLAG, *_LAST),
    TransformLibrary: _Spec("transform library", TRANSFORM_LIBRARY_FLAG, *_LAST),
}


@dataclass(frozen=True, kw_only=True)
class RewriteCall:
    """One rewrite of a chain, and the plugin that it belongs to."""

    plugin: str
    function: str
    phase: str
    options: Mapping[str, Any]  # The keyword arguments of the function
    for_target: bool = False  # Whether it gets the target's processor too


@dataclass(frozen=True, kw_only=True)
class Arranged:
    """What a chain of plugins comes to."""

    # Flags that it adds to iree-compile's; files are named as they lie in the working folder
    compile_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()  # Flags that it adds to the runtime's
    rewrites: tuple[RewriteCall, ...] = ()  # In the order in which they run, phases never going back
    files: tuple[PluginFile, ...] = ()  # What has to lie in the working folders, under its unique name
    # Where plugins run passes: each plugin and the pass pipeline up to its end, in order; "" stands for the variant's
    # own flag, which comes first
    pipelines: tuple[tuple[str, str], ...] = ()


def arrange(chain: Sequence[Applied], compile_flags: Sequence[str], where: str) -> Arranged:
    """Put a chain of plugins together."""
    steps = [(applied, step) for applied in chain for step in applied.steps]
    _check(steps, where)
    flags: tuple[str, ...] = ()
    for _, step in steps:
        added = [flag for flag in _compile_flags(step) if flag_name(flag) != PIPELINE_FLAG]
        lists = [flag for flag in added if flag_name(flag) in _LISTS]
        flags = (*merge_flags(flags, [flag for flag in added if flag not in lists]), *lists)
    pipelines = _pipelines(steps, compile_flags, where)
    if pipelines:
        flags = (*flags, f"--{PIPELINE_FLAG}={pipelines[-1][1]}")
    return Arranged(
        compile_flags=flags,
        run_flags=tuple(flag for _, step in steps for flag in _run_flags(step)),
        rewrites=tuple(
            RewriteCall(
                plugin=applied.name,
                function=step.function,
                phase=step.phase,
                options=applied.options if step.arguments is None else step.arguments,
                for_target=step.for_target,
            )
            for applied, step in steps
            if isinstance(step, Rewrite)
        ),
        files=tuple({file.unique_name: file for applied in chain for file in applied.files}.values()),
        pipelines=pipelines,
    )


def gives(applied: Applied, flag: str) -> bool:
    """Whether a plugin gives this flag by itself, be it iree-compile's or the runtime's."""
    return any(flag in (*_compile_flags(step), *_run_flags(step)) for step in applied.steps)


def pipelines_of(step: Step) -> Sequence[str]:
    """The pass pipelines that a step runs."""
    match step:
        case PassPipeline():
            return [step.text]
        case Flags():
            return _given(step.compile)
    return []


def _given(flags: Sequence[str]) -> list[str]:
    return [flag.partition("=")[2] for flag in flags if flag_name(flag) == PIPELINE_FLAG]


def _compile_flags(step: Step) -> Iterator[str]:
    match step:
        case Flags():
            yield from step.compile
        case TransformSpec() | PdlSpec() | TuningSpec() | TransformLibrary():
            entry = f"@{step.entry}" if isinstance(step, TransformLibrary) and step.entry else ""
            yield f"--{_SPECS[type(step)].flag}={step.file.unique_name}{entry}"
        case CompilerPlugin():
            yield f"--iree-load-plugin=./{step.file.unique_name}"
            yield from (f"--iree-plugin={name}" for name in step.activate)
            yield from step.flags


def _run_flags(step: Step) -> Iterator[str]:
    if isinstance(step, ExecutablePlugin):
        yield f"--executable_plugin=./{step.file.unique_name}"  # without a folder, the system's search path is meant


def _pipelines(
    steps: Sequence[tuple[Applied, Step]], compile_flags: Sequence[str], where: str
) -> tuple[tuple[str, str], ...]:
    """See Arranged.pipelines."""
    parts = [(applied.name, text) for applied, step in steps for text in pipelines_of(step)]
    if not parts:
        return ()
    parts = [*(("", text) for text in _given(compile_flags)[-1:]), *parts]
    return tuple((owner, _joined([text for _, text in parts[:end]], where)) for end, (owner, _) in enumerate(parts, 1))


def _joined(pipelines: Sequence[str], where: str) -> str:
    """Pass pipelines as one, in order."""
    if len(pipelines) == 1:
        return pipelines[0]
    for text in pipelines:
        if not (text.startswith(_ANCHOR) and text.endswith(")")):
            raise SuiteError(
                f"{where}: {text!r} cannot be joined with another pass pipeline; write it as builtin.module(...)"
            )
    inner = (text[len(_ANCHOR) : -1] for text in pipelines)
    return f"{_ANCHOR}{','.join(text for text in inner if text)})"


def place_of(step: Step) -> tuple[float, str] | None:
    """Where a step stands on the compiler's way, and how to say that; None: it stands nowhere in particular."""
    if pipelines_of(step):
        return _PASSES, f"runs passes{_IN}"
    if isinstance(step, Rewrite):
        return REWRITE_PHASES.index(step.phase), f"rewrites the module after phase {step.phase}"
    spec = _SPECS.get(type(step))
    return (spec.place, spec.does) if spec is not None else None


def _check(steps: Sequence[tuple[Applied, Step]], where: str) -> None:
    """Refuse steps that go back on the compiler's way, and two of what iree-compile takes one of."""
    before: tuple[float, str, str] | None = None
    owners: dict[str, str] = {}
    for applied, step in steps:
        name = applied.name
        if place := place_of(step):
            if before is not None and place[0] < before[0]:
                _, did, owner = before
                raise SuiteError(
                    f"{where}: {name} {did}, and after that {place[1]}, where the compiler has been already; ask its "
                    "author to order its steps"
                    if owner == name
                    else f"{where}: {name} {place[1]}, and {owner}, named before it, {did}; name {name} first"
                )
            before = (*place, name)
        if spec := _SPECS.get(type(step)):
            if first := owners.get(spec.noun):
                both = f"{first} and {name} both bring a" if first != name else f"{name} brings a second"
                raise SuiteError(f"{where}: {both} {spec.noun}, and iree-compile takes one; keep one of them")
            owners[spec.noun] = name
