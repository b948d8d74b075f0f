"""Did a pass pipeline or a spec change anything? iree-compile does not say, so its output with and without is compared.

A pipeline for func.func, for instance, matches nothing, since functions are util.func by the time it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.compile.request import MODEL_FILE, CompileRequest
from harness.compile.rewrite import Program
from harness.compile.tool import compile_to
from harness.errors import CaseError
from harness.plan.chain import (
    PDL_SPEC_FLAG,
    PIPELINE_FLAG,
    TRANSFORM_LIBRARY_FLAG,
    TRANSFORM_SPEC_FLAG,
    TUNING_SPEC_FLAG,
)
from harness.plan.flags import flag_name
from harness.plugins import Step
from harness.plugins.values import PassPipeline, PdlSpec, TransformLibrary, TransformSpec, TuningSpec
from harness.results.records import PluginEffect


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """A flag of which something can be told, the phase after which it shows, and the step that gives it."""

    flag: str
    phase: str
    step: type[Step]


# In the order in which iree-compile comes to them.
_KINDS = (
    _Kind(flag=PIPELINE_FLAG, phase="preprocessing", step=PassPipeline),
    _Kind(flag=TRANSFORM_SPEC_FLAG, phase="preprocessing", step=TransformSpec),
    _Kind(flag=PDL_SPEC_FLAG, phase="preprocessing", step=PdlSpec),
    _Kind(flag=TUNING_SPEC_FLAG, phase="executable-configurations", step=TuningSpec),
    _Kind(flag=TRANSFORM_LIBRARY_FLAG, phase="executable-configurations", step=TransformLibrary),
)


@dataclass(frozen=True, kw_only=True)
class _Added:
    """One more flag than before: whose it is, and the flags of its phase up to it."""

    owner: str
    flags: tuple[str, ...]


def effects_of_flags(request: CompileRequest, program: Program, folder: Path) -> tuple[PluginEffect, ...]:
    """Whether each pass pipeline and spec among a case's flags changed the program, each beside the ones before it.

    What cannot be told is left out: where the program begins after the flag's phase, or the compiler fails without
    the flag.

    Args:
        program: What was compiled; it lies in the folder.

    Raises:
        OSError: The folder cannot be written.
    """
    effects: list[PluginEffect] = []
    for phase in dict.fromkeys(kind.phase for kind in _KINDS):
        added = _added(request, phase)
        if added and not _begins_after(program, phase):
            effects += _compared(request, program, phase, added, folder)
    return tuple(effects)


def _added(request: CompileRequest, phase: str) -> list[_Added]:
    given = {flag_name(flag): flag for flag in request.case.compile_flags}
    steps: list[_Added] = []
    flags: tuple[str, ...] = ()
    for kind in _KINDS:
        if kind.phase != phase or kind.flag not in given:
            continue
        if kind.flag == PIPELINE_FLAG and request.arranged.pipelines:
            for owner, text in request.arranged.pipelines:
                steps.append(_Added(owner=owner or f"--{kind.flag}", flags=(*flags, f"--{kind.flag}={text}")))
            flags = steps[-1].flags
        else:
            flags = (*flags, given[kind.flag])
            steps.append(_Added(owner=_owner(request, kind), flags=flags))
    return steps


def _owner(request: CompileRequest, kind: _Kind) -> str:
    """The plugin that gives a flag; the flag itself where the suite does."""
    owners = (one.name for one in request.plugins if any(isinstance(step, kind.step) for step in one.steps))
    return next(owners, f"--{kind.flag}")


def _begins_after(program: Program, phase: str) -> bool:
    """Whether a program has gone through a phase already: then it lies there as it was after it."""
    early = ("--compile-from=input", "--compile-from=abi")
    return phase == "preprocessing" and any(flag not in early for flag in program.flags)


def _compared(
    request: CompileRequest, program: Program, phase: str, added: Sequence[_Added], folder: Path
) -> list[PluginEffect]:
    ours = {kind.flag for kind in _KINDS if kind.phase == phase}
    others = [flag for flag in request.case.compile_flags if flag_name(flag) not in ours]
    outputs = []
    for number, flags in enumerate([(), *(one.flags for one in added)]):
        output = f"steps/{phase}-{number}.mlirbc"
        try:
            (folder / "steps").mkdir(exist_ok=True)
            compile_to(request, MODEL_FILE, output, phase, (*others, *flags, *program.flags), folder)
        except CaseError:
            return []
        outputs.append((folder / output).read_bytes())
    return [
        PluginEffect(name=one.owner, changed=after != before)
        for one, before, after in zip(added, outputs, outputs[1:], strict=False)
    ]
