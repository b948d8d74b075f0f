"""Model -> program: what the rewrites of plugins make of a model before iree-compile.

Each Python rewrite runs in a process of its own. The module goes through iree-compile up to the phase at which a
rewrite stands, through the rewrite, and so on; the compile that follows goes on from the last phase. In between it is
MLIR bytecode, in which weights keep their bytes.
"""

import json
import site
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import harness
from harness.compile.request import MODEL_FILE, CompileRequest, compile_to
from harness.errors import CaseError, ToolchainError
from harness.plugins.chain import RewriteCall
from harness.records.run import PluginEffect
from harness.toolchain.host_cpu import target_cpu
from harness.toolchain.tools import COMPILE_MORE, run_tool, tail

# In a build's folder: what its rewrites printed.
PRINTED_FILE = "printed.txt"
_MOST_PRINTED = 1_000_000  # characters of one rewrite, the last ones
CHILD = Path(harness.__file__).parent / "plugins" / "child.py"


@dataclass(frozen=True, kw_only=True)
class Program:
    """What iree-compile reads."""

    flags: tuple[str, ...]  # Flags that say at which phase it begins
    rewritten: bool  # Whether it is another program than the model's
    effects: tuple[PluginEffect, ...]  # What each rewrite did


def rewrite_model(request: CompileRequest, folder: Path) -> Program:
    """Rewrite the program that lies in a folder as model.mlir; where nothing changed, it stays the model's."""
    source, reached, changed = MODEL_FILE, "", False
    effects: list[PluginEffect] = []
    for number, call in enumerate(request.arranged.rewrites):
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
    return Program(flags=_begin(reached) if changed else (), rewritten=changed, effects=tuple(effects))


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
    return PluginEffect(name=call.plugin, wall_ns=finished.wall_ns, **answer)


def sites() -> Sequence[str]:
    """Where packages of this interpreter may lie, of which one brings the rewrite."""
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    folders += [entry for entry in sys.path if Path(entry).is_dir()]
    library = Path(sysconfig.get_path("stdlib"))  # of which the other interpreter has its own
    places = dict.fromkeys(Path(folder).absolute() for folder in folders)
    return [str(place) for place in places if place not in (library, library / "lib-dynload")]
