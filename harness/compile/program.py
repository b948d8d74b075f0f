"""Model -> program: what plugins make of a model before iree-compile, and whether passes and specs changed anything.

Each Python rewrite runs in a process of its own. The module goes through iree-compile up to the phase at which a
rewrite stands, through the rewrite, and so on; the compile that follows goes on from the last phase. In between it is
MLIR bytecode, in which weights keep their bytes.

iree-compile does not say whether a pass pipeline or a spec did anything, so its output with and without is compared. A
pipeline for func.func, for instance, matches nothing, since functions are util.func by the time it runs.
"""

import json
import site
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import harness
from harness.compile.request import MODEL_FILE, CompileRequest, compile_to
from harness.errors import CaseError, ToolchainError
from harness.plugins import Step
from harness.plugins.chain import (
    PDL_SPEC_FLAG,
    PIPELINE_FLAG,
    TRANSFORM_LIBRARY_FLAG,
    TRANSFORM_SPEC_FLAG,
    TUNING_SPEC_FLAG,
    RewriteCall,
)
from harness.plugins.plugin import PassPipeline, PdlSpec, TransformLibrary, TransformSpec, TuningSpec
from harness.records.run import PluginEffect
from harness.toolchain.host_cpu import target_cpu
from harness.toolchain.tools import COMPILE_MORE, flag_name, run_tool, tail

# In a build's folder: what its rewrites printed.
PRINTED_FILE = "printed.txt"
_MOST_PRINTED = 1_000_000  # characters of one rewrite, the last ones
_EARLY = ("input", "abi")
CHILD = Path(harness.__file__).parent / "plugins" / "child.py"


@dataclass(frozen=True, kw_only=True)
class Program:
    """What iree-compile reads."""

    flags: tuple[str, ...]  # Flags that say at which phase it begins
    rewritten: bool  # Whether it is another program than the model's
    effects: tuple[PluginEffect, ...]  # What each rewrite did
    # File and flags of the program as it was when it came to iree-compile's preprocessing
    early: tuple[str, tuple[str, ...]]


def rewrite_model(request: CompileRequest, folder: Path) -> Program:
    """Rewrite the program that lies in a folder as model.mlir; where nothing changed, it stays the model's."""
    source, reached, changed = MODEL_FILE, "", False
    effects: list[PluginEffect] = []
    early = None
    for number, call in enumerate(request.arranged.rewrites):
        if early is None and call.phase not in _EARLY:
            early = (source if source != MODEL_FILE else str(request.model.resolve()), _begin(reached))
        if call.phase != reached:
            lowered = _step(folder, f"{number}-{call.phase}")
            flags = (*request.case.compile_flags, *_begin(reached))
            try:
                compile_to(request, source, lowered, call.phase, flags, folder)
            except CaseError as error:
                _keep(folder, f"iree-compile to {call.phase}", error.stderr)
                raise
            source, reached = lowered, call.phase
        rewritten = _step(folder, f"{number}-{call.plugin}")
        effect = _rewrite(request, call, source, rewritten, folder)
        effects.append(effect)
        changed = changed or bool(effect.changed)
        source = rewritten
    if changed:
        (folder / MODEL_FILE).unlink()
        (folder / source).replace(folder / MODEL_FILE)
    flags = _begin(reached) if changed else ()
    return Program(flags=flags, rewritten=changed, effects=tuple(effects), early=early or (MODEL_FILE, flags))


def printed_in(folder: Path) -> str:
    """What the rewrites printed that ran in a folder or for the build that lies there, each below its plugin's name."""
    try:
        return (folder / PRINTED_FILE).read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _keep(folder: Path, owner: str, printed: str) -> None:
    if printed.strip():
        with (folder / PRINTED_FILE).open("a", errors="replace") as file:
            file.write(f"# {owner}\n{printed.rstrip()[-_MOST_PRINTED:]}\n")


def _begin(phase: str) -> tuple[str, ...]:
    return (f"--compile-from={phase}",) if phase else ()


def _step(folder: Path, name: str) -> str:
    """A new file for the module: always model.mlir, since the file's name becomes the module's."""
    (folder / "steps" / name).mkdir(parents=True)
    return f"steps/{name}/{MODEL_FILE}"


def _rewrite(request: CompileRequest, call: RewriteCall, source: str, output: str, folder: Path) -> PluginEffect:
    where = f"plugin {call.plugin}"
    question, answer_file = folder / f"{output}.request.json", folder / f"{output}.answer.json"
    options = dict(call.options)
    if call.for_target:
        try:
            cpu = target_cpu(request.toolchain, request.case.compile_flags, request.host_cpu)
        except ToolchainError as error:
            raise CaseError("compile", f"{where} has to know the target, and {error}") from None
        options["target"] = asdict(cpu)
    asked = {
        "input": source,
        "output": output,
        "answer": str(answer_file),
        "function": call.function,
        "options": options,
        "entry": request.function,
        "sites": sites(),
    }
    question.write_text(json.dumps(asked))
    command = [*request.toolchain.python_command, str(CHILD), str(question)]
    finished = run_tool("compile", where, command, cwd=folder, limits=request.limits)
    printed = tail(finished.stderr)
    _keep(folder, where, finished.stderr)
    if not finished.ok or not answer_file.is_file():
        how = finished.how_it_ended(request.limits)
        if finished.limit is not None:
            raise CaseError("compile", f"{where} {how}; {COMPILE_MORE[finished.limit]}", printed)
        if finished.ok:
            how = f"{how}, but gave no module back"
        lines = [line.strip() for line in printed.splitlines() if line.strip()]
        raise CaseError("compile", f"{where} {how}{f': {lines[-1][:300]}' if lines else ''}", printed)
    answer = json.loads(answer_file.read_text())
    if "error" in answer:
        raise CaseError("compile", f"{where} {answer['error']}", printed)
    return PluginEffect(
        name=call.plugin,
        matched=answer["matched"],
        changed=answer["changed"],
        wall_ns=finished.wall_ns,
        left_alone=answer.get("left_alone", {}),
    )


def sites() -> Sequence[str]:
    """Where packages of this interpreter may lie, of which one brings the rewrite."""
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    folders += [entry for entry in sys.path if Path(entry).is_dir()]
    library = Path(sysconfig.get_path("stdlib"))  # of which the other interpreter has its own
    places = dict.fromkeys(Path(folder).absolute() for folder in folders)
    return [str(place) for place in places if place not in (library, library / "lib-dynload")]


class _Kind(NamedTuple):
    """A kind of flag whose effect on a program can be seen."""

    flag: str  # Its name
    phase: str  # The phase whose output shows the effect
    step: type[Step]  # The plugin's step that gives the flag
    # Whether the pass behind it tidies up whatever its file says, so that it is compared with an empty file
    folds: bool = False


_EMPTY_FILE = "steps/empty.mlir"
# In the order in which iree-compile comes to them.
_KINDS = (
    _Kind(PIPELINE_FLAG, "preprocessing", PassPipeline),
    _Kind(TRANSFORM_SPEC_FLAG, "preprocessing", TransformSpec),
    _Kind(PDL_SPEC_FLAG, "preprocessing", PdlSpec, folds=True),
    _Kind(TUNING_SPEC_FLAG, "executable-configurations", TuningSpec),
    _Kind(TRANSFORM_LIBRARY_FLAG, "executable-configurations", TransformLibrary),
)


class _Added(NamedTuple):
    """A flag whose effect is looked for."""

    owner: str  # The plugin, or the flag itself where the suite gives it
    without: tuple[str, ...]  # The flags of its phase before it
    flags: tuple[str, ...]  # Those and the flag


def effects_of_flags(request: CompileRequest, program: Program, folder: Path) -> tuple[PluginEffect, ...]:
    """Whether each pass pipeline and spec among a case's flags changed the program that the ones before it left."""
    effects: list[PluginEffect] = []
    for phase in dict.fromkeys(kind.phase for kind in _KINDS):
        added = _added(request, phase)
        source, flags = program.early if phase == "preprocessing" else (MODEL_FILE, program.flags)
        effects += _compared(request, source, flags, phase, added, folder) if added else []
    return tuple(effects)


def _added(request: CompileRequest, phase: str) -> list[_Added]:
    by_name = {flag_name(flag): flag for flag in request.case.compile_flags}
    steps: list[_Added] = []
    flags: tuple[str, ...] = ()
    for kind in _KINDS:
        if kind.phase != phase or kind.flag not in by_name:
            continue
        pipelines = request.arranged.pipelines if kind.flag == PIPELINE_FLAG else ()
        owned = [(owner or f"--{kind.flag}", f"--{kind.flag}={text}") for owner, text in pipelines]
        without = (*flags, f"--{kind.flag}={_EMPTY_FILE}") if kind.folds else flags
        # The plugin that gives it; the flag itself where the suite does.
        owners = (use.name for use in request.plugins if any(isinstance(step, kind.step) for step in use.steps))
        for owner, flag in owned or [(next(owners, f"--{kind.flag}"), by_name[kind.flag])]:
            steps.append(_Added(owner, without, (*flags, flag)))
            without = steps[-1].flags
        flags = without
    return steps


def _compared(
    request: CompileRequest, source: str, begin: Sequence[str], phase: str, added: Sequence[_Added], folder: Path
) -> list[PluginEffect]:
    ours = {kind.flag for kind in _KINDS if kind.phase == phase}
    others = [flag for flag in request.case.compile_flags if flag_name(flag) not in ours]
    outputs: dict[tuple[str, ...], bytes] = {}
    (folder / _EMPTY_FILE).parent.mkdir(exist_ok=True)
    (folder / _EMPTY_FILE).write_text("module {}")
    for flags in dict.fromkeys(flags for step in added for flags in (step.without, step.flags)):
        output = f"steps/{phase}-{len(outputs)}.mlirbc"
        try:
            compile_to(request, source, output, phase, (*others, *flags, *begin), folder)
        except CaseError:
            return []
        outputs[flags] = (folder / output).read_bytes()
    return [PluginEffect(name=step.owner, changed=outputs[step.flags] != outputs[step.without]) for step in added]
