"""Model -> its IR at the named phases, as files and as text: one run of iree-compile that stops at the last of them.

Printing the IR changes nothing of the module that is compiled. Weights are left out of what is printed: those of a
network of 67 MB would be 1.6 GB of text in all phases, and the IR parses as well without them.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import CaseError, UsageError
from harness.ir.child import SEPARATOR
from harness.metrics import BUFFERIZED, ENCODINGS, PHASES, START
from harness.process import Finished, Limits
from harness.toolchain import Toolchain
from harness.toolchain.tools import COMPILE_MORE, error_lines, excerpt, run_tool

_CHILD = Path(__file__).with_name("child.py")
_LONGEST_REASON = 300
# By question: who answers it, what that is called, and what to do where it cannot be answered.
_READERS = {
    "entries": ("readers:entries", "the reader of functions", "mend the file where iree-compile refuses it too"),
    "layouts": ("layouts:encoded_tensors", "the reader of layouts", "leave storage out"),
    "ops": ("readers:ops", "the counter of ops", "leave phases out"),
    "parts": ("readers:parts", "the reader of executables", "leave phases out"),
    "reduced": ("readers:reduced", "the reader of functions", "keep the entry function as the only public one"),
    "structured": ("operations:functions", "the reader of dispatches", "tune it without its dispatches"),
    "work": ("program:work", "the counter of arithmetic", "report it as a defect of the harness"),
}


class UnreadPhase(CaseError):
    """The toolchain cannot read back the IR that it wrote at a phase (stage `ir`)."""

    def __init__(self, phase: str, why: str, remedy: str) -> None:
        super().__init__("ir", f"the IR at phase {phase!r} cannot be read back ({why}); {remedy}")
        self.phase = phase
        self.why = why


def ask(
    question: str, files: Mapping[str, Path], where: str, *, toolchain: Toolchain, limits: Limits, **arguments: object
) -> dict[str, Any]:
    """Have a question about files of IR answered under the toolchain's own Python; see harness.ir.child."""
    answers_it, name, remedy = _READERS[question]
    paths = {phase: str(file.resolve()) for phase, file in files.items()}
    request = json.dumps({"answers": answers_it, "files": paths, "arguments": arguments})
    finished = run_tool("ir", name, [*toolchain.python_command, str(_CHILD), request], limits=limits)
    if not finished.ok:
        raise failure(name, finished, limits, where=where, remedy=remedy)
    answer: dict[str, Any] = json.loads(finished.stdout)
    if "unread" in answer:
        raise UnreadPhase(answer["unread"], _shortened(answer["why"]), remedy)
    answers: dict[str, Any] = answer.get("answers", answer)
    return answers


def failure(tool: str, finished: Finished, limits: Limits, *, where: str, remedy: str) -> CaseError:
    """The error of a tool that failed: `iree-opt exited with status 1 on x.mlir: expected ')'; take another phase`."""
    ended = "printed an error" if finished.ok else finished.how_it_ended(limits)
    if finished.limit is not None:
        message = f"{tool} {ended}{where}; {COMPILE_MORE[finished.limit]}"
    else:
        reason = _shortened(_reason(finished))
        message = f"{tool} {ended}{where}{f': {reason}' if reason else ''}; {remedy}"
    return CaseError("ir", message, stderr=excerpt(finished.stderr))


def _shortened(reason: str) -> str:
    """A diagnostic without what is too long of it: it may repeat an op with all its attributes."""
    return reason[:_LONGEST_REASON].rstrip(".;")


def _reason(finished: Finished) -> str:
    """The first error; where none is marked as one, what a tool says first, and Python last."""
    if errors := error_lines(finished.stderr):
        return errors[0]
    lines = [line.strip() for line in finished.stderr.splitlines() if line.strip()]
    if not lines or finished.returncode < 0:  # a crash begins with how to report it
        return ""
    return lines[-1 if lines[0].startswith("Traceback") else 0]


MODEL_FILE = "model.mlir"
_PHASES_FOLDER = "phases"
_PASSES_FOLDER = "passes"

# Lists of numbers that ops have as attributes are shorter; weights are longer.
ELIDE_FLAGS = ("--mlir-elide-elementsattrs-if-larger=64", "--mlir-elide-resource-strings-if-larger=64")

# With every backend it is this pass that makes buffers of a dispatch's tensors.
_BUFFERIZATION = "iree-codegen-iree-comprehensive-bufferize"
# A dispatch with a transform script of its own does it there, and this is the pass that runs next.
_AFTER_SCRIPT = "iree-transform-dialect-drop-schedule"
_LAYOUTS_CHOSEN = "iree-stream-specialize-encodings"
# What of iree-compile's phases comes next after one of ours, and the passes after which that is printed.
_OURS = {
    ENCODINGS: ("stream", (_LAYOUTS_CHOSEN,)),
    BUFFERIZED: ("executable-targets", (_BUFFERIZATION, _AFTER_SCRIPT)),
}

_NO_RESOURCES = re.compile(r"\n\{-#\s*#-\}\n")  # what is left of the weights
_UNWRITTEN = re.compile(r"^Error while (?:creating|opening).+: (?P<why>.+)$", re.MULTILINE)
# How LLVM's command line refuses the name of a pass, or of a phase, that this release does not have.
_NO_SUCH = re.compile(
    r"for the --?(?:mlir-print-ir-after|compile-to) option: Cannot find option named '(?P<name>[^']+)'"
)


class LacksPhase(CaseError):
    """The compiler's release has no such phase (stage `ir`)."""

    def __init__(self, phase: str, toolchain: Toolchain) -> None:
        super().__init__("ir", f"IREE {toolchain.version} has no phase {phase!r}; take another")
        self.phase = phase


def check_phases(phases: Iterable[str]) -> None:
    """Refuse a phase that there is not."""
    for phase in phases:
        if phase not in PHASES:
            raise UsageError(f"there is no phase {phase!r}; name one of {', '.join(PHASES)}")


def dump_phases(
    flags: Sequence[str],
    model: Path,
    phases: Collection[str],
    *,
    toolchain: Toolchain,
    folder: Path,
    limits: Limits,
    files: Sequence[Path] = (),
) -> dict[str, Path]:
    """Write a model's IR at the named phases into files."""
    first = entry_phase(flags)
    if earlier := [phase for phase in PHASES[: PHASES.index(first)] if phase in phases]:
        message = f"the model enters the compiler at phase {first!r}, so it has no IR at {earlier[0]!r}"
        raise CaseError("ir", f"{message}; take a later phase")
    dumps = {first: model} if first in phases else {}
    if later := [phase for phase in PHASES if phase in phases and phase != first]:
        (folder / MODEL_FILE).symlink_to(model.resolve())
        for file in files:
            (folder / file.name).symlink_to(file.resolve())
        _compile(flags, later, toolchain, folder, limits)
        finders = {BUFFERIZED: _join_dispatches, ENCODINGS: _chosen_layouts}
        for phase in later:
            found = finders[phase](folder) if phase in finders else _dumped(phase, folder)
            if found is None:
                raise LacksPhase(phase, toolchain)
            dumps[phase] = found
    return dumps


def entry_phase(flags: Sequence[str]) -> str:
    """The phase whose IR the model is; iree-compile takes the last of flags that are given twice."""
    entries = [flag.partition("=")[2] for flag in flags if flag.startswith("--compile-from=")]
    return entries[-1] if entries and entries[-1] in PHASES else START


def print_ir(file: Path, *, toolchain: Toolchain, limits: Limits) -> str:
    """A file of IR, text or bytecode, as text without the values of its weights."""
    split = f"--split-input-file={SEPARATOR.decode().strip()}"
    tool = str(toolchain.compiler_tools / "iree-opt")
    command = [tool, str(file), "--allow-unregistered-dialect", split, *ELIDE_FLAGS]
    finished = run_tool("ir", "iree-opt", command, limits=limits)
    if not finished.ok:
        raise failure("iree-opt", finished, limits, where=f" on {file.name}", remedy="take another phase")
    return _NO_RESOURCES.sub("\n", finished.stdout).strip() + "\n"


def _compile(flags: Sequence[str], phases: Sequence[str], toolchain: Toolchain, folder: Path, limits: Limits) -> None:
    last = _OURS[phases[-1]][0] if phases[-1] in _OURS else phases[-1]
    command = [str(toolchain.iree_compile), MODEL_FILE, "-o", "output.mlir", *flags, *ELIDE_FLAGS]
    command += [f"--compile-to={last}", f"--dump-compilation-phases-to={_PHASES_FOLDER}"]
    passes = [name for phase, (_, names) in _OURS.items() if phase in phases for name in names]
    if passes:
        command += [f"--mlir-print-ir-after={','.join(passes)}", f"--mlir-print-ir-tree-dir={_PASSES_FOLDER}"]
    finished = run_tool("ir", "iree-compile", command, cwd=folder, limits=limits)
    if not finished.ok or error_lines(finished.stderr):
        if lacking := _NO_SUCH.search(finished.stderr):
            named = lacking["name"]
            raise LacksPhase(next((phase for phase, (_, names) in _OURS.items() if named in names), named), toolchain)
        where = f", on its way to phase {last!r}"
        reached = [phase for phase in PHASES[: PHASES.index(last)] if _dumped(phase, folder)]
        if reached and not finished.ok:  # with status 0 it went on after the error
            where = f" after phase {reached[-1]!r}{where}"
        remedy = "take an earlier phase, or make the case compile"
        raise failure("iree-compile", finished, limits, where=where, remedy=remedy)
    if unwritten := _UNWRITTEN.search(finished.stderr):
        why = unwritten["why"]
        raise CaseError("ir", f"the IR of a dispatch cannot be written ({why}); give the model's function a short name")


def _dumped(phase: str, folder: Path) -> Path | None:
    """A phase's dump, named after the module, whose name may have slashes in it, and the phase's number."""
    name = re.compile(rf".*\.\d+\.{phase}\.mlir")
    return next((file for file in (folder / _PHASES_FOLDER).rglob("*.mlir") if name.fullmatch(file.name)), None)


def _chosen_layouts(folder: Path) -> Path | None:
    """The last of them; programs that the compiler ran by itself, to fold constants, come before."""
    files = (folder / _PASSES_FOLDER).rglob(f"*_{_LAYOUTS_CHOSEN}.mlir")
    return max(files, key=lambda file: int(file.name.partition("_")[0]), default=None)


def _join_dispatches(folder: Path) -> Path:
    """One file of all dispatches, each as it was when its tensors had become buffers."""
    functions = _last_dumps(_BUFFERIZATION, folder)
    with_functions = {above for function in functions for above in function.parents}
    scripted = _last_dumps(_AFTER_SCRIPT, folder)
    files = [*functions.values(), *(file for module, file in scripted.items() if module not in with_functions)]
    joined = folder / "bufferized.mlir"
    # Each without its first line, which names the pass.
    texts = (file.read_bytes().partition(b"\n")[2] for file in sorted(files, key=_order))
    joined.write_bytes(SEPARATOR.join(texts))
    return joined


def _last_dumps(name: str, folder: Path) -> dict[Path, Path]:
    """What a pass left behind last, by the folder of the op that it ran on."""
    files = (folder / _PASSES_FOLDER).glob(f"builtin_module_*/hal_executable_*/**/*_{name}.mlir")
    return {file.parent: file for file in sorted(files, key=_order)}


def _order(file: Path) -> list[str | int]:
    """The compiler's order, where dispatch 10 comes after dispatch 9."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(file))]
