"""Plugins in the order that a variant names them -> what is rewritten, and which flags and files the tools get."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

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
    TransformSpec: _Spec(
        *("transform spec", "iree-preprocessing-transform-spec-filename", _PASSES + 0.1),
        f"applies a transform spec{_IN}",
    ),
    PdlSpec: _Spec("PDL spec", "iree-preprocessing-pdl-spec-filename", _PASSES + 0.2, f"applies a PDL spec{_IN}"),
    TuningSpec: _Spec("tuning spec", "iree-codegen-tuning-spec-path", *_LAST),
    TransformLibrary: _Spec("transform library", "iree-codegen-transform-dialect-library", *_LAST),
}


@dataclass(frozen=True, kw_only=True)
class Arranged:
    """What a chain of plugins comes to."""

    # Flags that it adds to iree-compile's; files are named as they lie in the working folder
    compile_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()  # Flags that it adds to the runtime's
    # Each with its plugin's name and its arguments, in the order in which they run, phases never going back
    rewrites: tuple[tuple[str, Rewrite], ...] = ()
    files: tuple[PluginFile, ...] = ()  # What has to lie in the working folders, under its unique name


def arrange(chain: Sequence[Applied], compile_flags: Sequence[str], where: str) -> Arranged:
    """Put a chain of plugins together."""
    steps = [(applied, step) for applied in chain for step in applied.steps]
    _check(steps, where)
    flags: tuple[str, ...] = ()
    for _, step in steps:
        added = [flag for flag in _compile_flags(step) if flag_name(flag) != PIPELINE_FLAG]
        lists = [flag for flag in added if flag_name(flag) in _LISTS]
        flags = (*merge_flags(flags, [flag for flag in added if flag not in lists]), *lists)
    pipelines = [text for _, step in steps for text in pipelines_of(step)]
    if pipelines:
        # The variant's own comes first; of several, iree-compile takes the last.
        joined = _joined([*_given(compile_flags)[-1:], *pipelines], where)
        flags = (*flags, f"--{PIPELINE_FLAG}={joined}")
    return Arranged(
        compile_flags=flags,
        run_flags=tuple(flag for _, step in steps for flag in _run_flags(step)),
        rewrites=tuple(
            (applied.name, step if step.arguments is not None else replace(step, arguments=applied.options))
            for applied, step in steps
            if isinstance(step, Rewrite)
        ),
        files=tuple({file.unique_name: file for applied in chain for file in applied.files}.values()),
    )


def gives(applied: Applied, flag: str) -> bool:
    """Whether a plugin gives this flag by itself, be it iree-compile's or the runtime's."""
    return any(flag in (*_compile_flags(step), *_run_flags(step)) for step in applied.steps)


def pipelines_of(step: Step) -> Sequence[str]:
    """The pass pipelines that a step runs."""
    if isinstance(step, PassPipeline):
        return [step.text]
    return _given(step.compile) if isinstance(step, Flags) else []


def _given(flags: Sequence[str]) -> list[str]:
    return [flag.partition("=")[2] for flag in flags if flag_name(flag) == PIPELINE_FLAG]


def _compile_flags(step: Step) -> Sequence[str]:
    match step:
        case Flags():
            return step.compile
        case TransformSpec() | PdlSpec() | TuningSpec() | TransformLibrary():
            entry = f"@{step.entry}" if isinstance(step, TransformLibrary) and step.entry else ""
            return [f"--{_SPECS[type(step)].flag}={step.file.unique_name}{entry}"]
        case CompilerPlugin():
            activated = (f"--iree-plugin={name}" for name in step.activate)
            return [f"--iree-load-plugin=./{step.file.unique_name}", *activated, *step.flags]
    return []


def _run_flags(step: Step) -> Sequence[str]:
    # Without a folder, the system's search path is meant.
    return [f"--executable_plugin=./{step.file.unique_name}"] if isinstance(step, ExecutablePlugin) else []


def _joined(pipelines: Sequence[str], where: str) -> str:
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
                advice = f"name {name} first" if owner != name else "ask its author to order its steps"
                raise SuiteError(f"{where}: {name} {place[1]}, and {owner}, named before it, {did}; {advice}")
            before = (*place, name)
        if spec := _SPECS.get(type(step)):
            if spec.noun in owners:
                both = f"{owners[spec.noun]} and {name} both bring a {spec.noun}"
                raise SuiteError(f"{where}: {both}, and iree-compile takes one; keep one of them")
            owners[spec.noun] = name
