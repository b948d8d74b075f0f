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
from harness.plugins import Step
from harness.plugins.chain import (
    PDL_SPEC_FLAG,
    PIPELINE_FLAG,
    TRANSFORM_LIBRARY_FLAG,
    TRANSFORM_SPEC_FLAG,
    TUNING_SPEC_FLAG,
)
from harness.plugins.plugin import PassPipeline, PdlSpec, TransformLibrary, TransformSpec, TuningSpec
from harness.records.run import PluginEffect
from harness.toolchain.flags import flag_name


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """A flag of which something can be told.

    Attributes:
        phase: After which it shows.
        step: That gives the flag.
        folds: Whether the pass behind it tidies up whatever its file says, so that it is compared with an empty one.
    """

    flag: str
    phase: str
    step: type[Step]
    folds: bool = False


_EMPTY_FILE = "steps/empty.mlir"
# In the order in which iree-compile comes to them.
_KINDS = (
    _Kind(flag=PIPELINE_FLAG, phase="preprocessing", step=PassPipeline),
    _Kind(flag=TRANSFORM_SPEC_FLAG, phase="preprocessing", step=TransformSpec),
    _Kind(flag=PDL_SPEC_FLAG, phase="preprocessing", step=PdlSpec, folds=True),
    _Kind(flag=TUNING_SPEC_FLAG, phase="executable-configurations", step=TuningSpec),
    _Kind(flag=TRANSFORM_LIBRARY_FLAG, phase="executable-configurations", step=TransformLibrary),
)


@dataclass(frozen=True, kw_only=True)
class _Added:
    """One more flag than before: whose it is, and the flags of its phase without and with it."""

    owner: str
    without: tuple[str, ...]
    flags: tuple[str, ...]


def effects_of_flags(request: CompileRequest, program: Program, folder: Path) -> tuple[PluginEffect, ...]:
    """Whether each pass pipeline and spec among a case's flags changed the program, each beside the ones before it.

    What cannot be told is left out: where the compiler fails without the flag.

    Args:
        program: What was compiled; it lies in the folder, as do its steps.

    Raises:
        OSError: The folder cannot be written.
    """
    effects: list[PluginEffect] = []
    for phase in dict.fromkeys(kind.phase for kind in _KINDS):
        added = _added(request, phase)
        source, flags = program.early if phase == "preprocessing" else (MODEL_FILE, program.flags)
        effects += _compared(request, source, flags, phase, added, folder) if added else []
    return tuple(effects)


def _added(request: CompileRequest, phase: str) -> list[_Added]:
    given = {flag_name(flag): flag for flag in request.case.compile_flags}
    steps: list[_Added] = []
    flags: tuple[str, ...] = ()
    for kind in _KINDS:
        if kind.phase != phase or kind.flag not in given:
            continue
        pipelines = request.arranged.pipelines if kind.flag == PIPELINE_FLAG else ()
        owned = [(owner or f"--{kind.flag}", f"--{kind.flag}={text}") for owner, text in pipelines]
        without = (*flags, f"--{kind.flag}={_EMPTY_FILE}") if kind.folds else flags
        for owner, flag in owned or [(_owner(request, kind), given[kind.flag])]:
            steps.append(_Added(owner=owner, without=without, flags=(*flags, flag)))
            without = steps[-1].flags
        flags = without
    return steps


def _owner(request: CompileRequest, kind: _Kind) -> str:
    """The plugin that gives a flag; the flag itself where the suite does."""
    owners = (one.name for one in request.plugins if any(isinstance(step, kind.step) for step in one.steps))
    return next(owners, f"--{kind.flag}")


def _compared(
    request: CompileRequest, source: str, begin: Sequence[str], phase: str, added: Sequence[_Added], folder: Path
) -> list[PluginEffect]:
    ours = {kind.flag for kind in _KINDS if kind.phase == phase}
    others = [flag for flag in request.case.compile_flags if flag_name(flag) not in ours]
    outputs: dict[tuple[str, ...], bytes] = {}
    (folder / _EMPTY_FILE).parent.mkdir(exist_ok=True)
    (folder / _EMPTY_FILE).write_text("module {}")
    for flags in dict.fromkeys(flags for one in added for flags in (one.without, one.flags)):
        output = f"steps/{phase}-{len(outputs)}.mlirbc"
        try:
            compile_to(request, source, output, phase, (*others, *flags, *begin), folder)
        except CaseError:
            return []
        outputs[flags] = (folder / output).read_bytes()
    return [PluginEffect(name=one.owner, changed=outputs[one.flags] != outputs[one.without]) for one in added]
