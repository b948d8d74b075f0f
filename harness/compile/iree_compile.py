"""One compile: what it needs, its key, the program that plugins make of the model, and the facts of its module.

Where it fails, one sentence says why, and which plugin it is about.
"""

import contextlib
import hashlib
import json
import re
import site
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import harness
from harness.errors import CaseError, ToolchainError
from harness.plugins import Applied, Rewrite
from harness.plugins.chain import Arranged, pipelines_of
from harness.process import Finished, Limits
from harness.records.case import Case
from harness.records.run import Build, Failure, PluginEffect, Sizes, Statistics
from harness.suite.flags import normalised
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import target_cpu
from harness.toolchain.tools import COMPILE_MORE, error_lines, excerpt, run_tool, status_text, tail, warning_lines

MODEL_FILE = "model.mlir"
MODULE_FILE = "module.vmfb"
STATISTICS_FILE = "statistics.txt"

# Equal code then gives equal bytes: source positions and debug data would differ between two writings of one program.
REPRODUCIBLE_FLAGS = (
    "--iree-vm-bytecode-module-strip-source-map",
    "--iree-hal-executable-debug-level=0",
    "--iree-llvmcpu-debug-symbols=false",
    "--iree-vm-emit-polyglot-zip=true",
)
# Not as JSON, which does not say of which sizes it has but the part that is known when compiling.
STATISTICS_FLAGS = (
    "--iree-scheduling-dump-statistics-format=pretty",
    f"--iree-scheduling-dump-statistics-file={STATISTICS_FILE}",
)


@dataclass(frozen=True, kw_only=True)
class CompileRequest:
    """Everything one compile needs."""

    case: Case
    toolchain: Toolchain
    model: Path  # The MLIR file
    model_sha256: str  # Hash of the model's bytes and of its external weights
    function: str
    host_cpu: str  # Identity of this machine's CPU; enters the key where flags say `host`
    limits: Limits
    plugins: tuple[Applied, ...] = ()  # In order, with their options
    arranged: Arranged = field(default_factory=Arranged)  # What they come to; their flags are among the case's


def compile_command(flags: Sequence[str]) -> tuple[str, ...]:
    """The command line, as it is run in a folder that holds the model as model.mlir."""
    return ("iree-compile", MODEL_FILE, "-o", MODULE_FILE, *flags, *REPRODUCIBLE_FLAGS, *STATISTICS_FLAGS)


def cache_key(request: CompileRequest) -> str:
    """Hash of all that decides the module's bytes.

    A plugin's files enter by their names, which hold a hash of their bytes. Files for the runtime alone enter too,
    since a build keeps them beside its module.
    """
    flags = request.case.compile_flags
    parts = {
        "model": request.model_sha256,
        "function": request.function,
        "plugins": [
            [use.name, use.plugin.version, use.options, use.sources_sha256, [file.unique_name for file in use.files]]
            for use in request.plugins
        ],
        "rewrites": [[one.function, one.phase, dict(one.arguments or {})] for _, one in request.arranged.rewrites],
        "flags": normalised((*flags, *REPRODUCIBLE_FLAGS)),
        "statistics": STATISTICS_FLAGS,  # which a build keeps with its module
        "files": _named_files(flags),
        # What nobody released has its folder's name in its version.
        "compiler": [request.toolchain.version.partition("+")[0], request.toolchain.compiler_sha256],
        # A rewrite runs on this machine, and may ask what it is.
        "host": request.host_cpu if request.arranged.rewrites or any(flag.endswith("=host") for flag in flags) else "",
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _named_files(flags: Sequence[str]) -> list[list[str]]:
    """Hashes of the files that flags name (specs, libraries): their content decides the module's bytes too."""
    found = []
    for value in sorted({flag.partition("=")[2] for flag in flags if "=" in flag}):
        with contextlib.suppress(OSError, ValueError):  # too long for a path, or with a zero byte: it names no file
            if Path(value).is_absolute() and Path(value).is_file():
                found.append([value, hashlib.sha256(Path(value).read_bytes()).hexdigest()])
    return found


def run_compiler(request: CompileRequest, arguments: Sequence[str], folder: Path) -> Finished:
    """Run the request's iree-compile in a folder, under its limits."""
    command = [str(request.toolchain.iree_compile), *arguments]
    return run_tool("compile", "iree-compile", command, cwd=folder, limits=request.limits)


def compile_to(
    request: CompileRequest, source: str, output: str, phase: str, flags: Sequence[str], folder: Path
) -> None:
    """Compile a program up to a phase, as bytecode."""
    arguments = [source, f"--compile-to={phase}", "--emit-mlir-bytecode", "-o", output, *flags]
    finished = run_compiler(request, arguments, folder)
    complaint = what_went_wrong(
        request, finished, wrote=(folder / output).is_file(), what=f"iree-compile --compile-to={phase}"
    )
    if complaint is not None:
        raise CaseError("compile", complaint, excerpt(finished.stderr))


def what_went_wrong(
    request: CompileRequest, finished: Finished, *, wrote: bool, what: str = "iree-compile"
) -> str | None:
    """Why a compile failed, as a sentence; None where it succeeded. A compile that exits with 0 can fail too."""
    errors: Sequence[str] = error_lines(finished.stderr)
    how = f"{what} {finished.how_it_ended(request.limits)}"
    if finished.limit is not None:
        return f"{how}; {COMPILE_MORE[finished.limit]}"
    if finished.ok and errors:
        how = f"{what} printed an error, though it exited with status 0"
    elif finished.ok and wrote:
        return None
    elif finished.ok:
        how += ", but wrote no module; run its command line by hand"
    elif not errors:
        # What can be the reason of a crash, rather than what every crash prints.
        usual = ("PLEASE ", "Please report", "Stack dump", " #", "#", "0.")
        lines = [line for line in finished.stderr.splitlines() if line.strip() and not line.startswith(usual)]
        errors = tuple(line.strip() for line in lines[:1])
    complaint = f"{how}: {errors[0]}" if errors else how
    plugin = blamed_plugin(request, finished.stderr)
    return f"plugin {plugin}: {complaint}" if plugin is not None else complaint


_UNKNOWN_PASS = re.compile(r"'(?P<name>[^']+)' does not refer to a registered pass")


def blamed_plugin(request: CompileRequest, stderr: str) -> str | None:
    """The plugin that an error is about: it brings a file or a pass that the compiler names."""
    # A warning about a plugin's file is not what the compile failed with.
    errors = "\n".join(line for line in stderr.splitlines() if " warning: " not in line)
    unknown = _UNKNOWN_PASS.search(errors)
    for applied in request.plugins:
        pipelines = " ".join(text for step in applied.steps for text in pipelines_of(step))
        runs_it = unknown is not None and unknown["name"] in pipelines
        if runs_it or any(file.unique_name in errors for file in applied.files):
            return applied.name
    return None


# --- The model -> the program that is compiled ---

# In a build's folder: what its rewrites printed.
PRINTED_FILE = "printed.txt"
_MOST_PRINTED = 1_000_000  # characters of one rewrite, the last ones
CHILD = Path(harness.__file__).parent / "plugins" / "child.py"


def rewrite_model(request: CompileRequest, folder: Path) -> tuple[tuple[str, ...], tuple[PluginEffect, ...]]:
    """Rewrite the program that lies in a folder as model.mlir; where nothing changed, it stays the model's.

    Gives the flags that say at which phase iree-compile begins, () for the model's, and what each rewrite did.
    """
    source, reached = MODEL_FILE, ""
    effects: list[PluginEffect] = []
    for number, (plugin, rewrite) in enumerate(request.arranged.rewrites):
        if rewrite.phase != reached:
            lowered = _step(folder, f"{number}-{rewrite.phase}")
            flags = (*request.case.compile_flags, *_begin(reached))
            try:
                compile_to(request, source, lowered, rewrite.phase, flags, folder)
            except CaseError as error:
                _keep(folder, f"iree-compile to {rewrite.phase}", error.stderr)
                raise
            source, reached = lowered, rewrite.phase
        rewritten = _step(folder, f"{number}-{plugin}")
        effects.append(_rewrite(request, plugin, rewrite, source, rewritten, folder))
        source = rewritten
    if not any(effect.changed for effect in effects):
        return (), tuple(effects)
    (folder / MODEL_FILE).unlink()
    (folder / source).replace(folder / MODEL_FILE)
    return _begin(reached), tuple(effects)


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


def _rewrite(
    request: CompileRequest, plugin: str, rewrite: Rewrite, source: str, output: str, folder: Path
) -> PluginEffect:
    where = f"plugin {plugin}"
    question, answer_file = folder / f"{output}.request.json", folder / f"{output}.answer.json"
    options = dict(rewrite.arguments or {})
    if rewrite.for_target:
        try:
            cpu = target_cpu(request.toolchain, request.case.compile_flags, request.host_cpu)
        except ToolchainError as error:
            raise CaseError("compile", f"{where} has to know the target, and {error}") from None
        options["target"] = asdict(cpu)
    asked = {
        "input": source,
        "output": output,
        "answer": str(answer_file),
        "function": rewrite.function,
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
    return PluginEffect(name=plugin, wall_ns=finished.wall_ns, **answer)


def sites() -> Sequence[str]:
    """Where packages of this interpreter may lie, of which one brings the rewrite."""
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    folders += [entry for entry in sys.path if Path(entry).is_dir()]
    library = Path(sysconfig.get_path("stdlib"))  # of which the other interpreter has its own
    places = dict.fromkeys(Path(folder).absolute() for folder in folders)
    return [str(place) for place in places if place not in (library, library / "lib-dynload")]


# --- A module and what tools say of it -> its facts ---

# Members of the zip that a module is (IREE's polyglot form); every other member is an executable.
_VM_MEMBER = "module.fb"
_CONSTANT_MEMBER = "_const.bin"

# `  [  0] main(!vm.ref<?>, i32) -> (!vm.ref<?>, f32)`; the name may be any text, blanks and parentheses included.
_EXPORT = re.compile(r"\s*\[\s*\d+\] (?P<name>.+)\([^()]*\) -> \((?P<results>[^()]*)\)")
# `// Submissions: 1, using cumulative minimum 0 B (0.00 MiB)`
_COUNT, _BYTES = r" (?P<value>\d+)", r" \d+, .*?(?P<least>minimum )?(?P<value>\d+) B "
_LINES = {
    "dispatches": f"Dispatches:{_COUNT}",
    "copies": f"DMA Copies:{_COUNT}",
    "fills": f"DMA Fills:{_COUNT}",
    "awaits": f"D->H Syncs:{_COUNT}",
    "submissions": f"Submissions:{_COUNT}",
    "executables": f"Executables:{_COUNT}",
    "transient_bytes": f"Submissions:{_BYTES}",
    "constant_bytes": f"Constants:{_BYTES}",
    "variable_bytes": f"Variables:{_BYTES}",
}


def module_sizes(module: Path) -> Sizes:
    """Bytes of a module by component; a module that is no zip counts as VM bytecode as a whole."""
    total = module.stat().st_size
    if not zipfile.is_zipfile(module):
        return Sizes(module_bytes=total, vm_bytes=total, constant_bytes=0, dispatch_bytes={})
    with zipfile.ZipFile(module) as archive:
        members = {member.filename: member.file_size for member in archive.infolist()}
    vm = members.pop(_VM_MEMBER, 0)
    constants = members.pop(_CONSTANT_MEMBER, 0)
    return Sizes(
        module_bytes=total, vm_bytes=vm, constant_bytes=constants, dispatch_bytes=dict(sorted(members.items()))
    )


def parse_statistics(text: str) -> Statistics | None:
    """What --iree-scheduling-dump-statistics-format=pretty writes; None when it is not of that form."""
    found = {key: match for key, line in _LINES.items() if (match := re.search(rf"^// +{line}", text, re.MULTILINE))}
    if len(found) < len(_LINES):
        return None
    transient = found.pop("transient_bytes")  # of sizes that only a call has, the compiler knows a minimum
    return Statistics(
        transient_bytes=None if transient["least"] else int(transient["value"]),
        **{key: int(match["value"]) for key, match in found.items()},
    )


def exported_functions(dump: str) -> dict[str, int]:
    """Functions that `iree-dump-module` lists as exported, with the number of their results."""
    exports: dict[str, int] = {}
    inside = False
    for line in dump.splitlines():
        if line.startswith("Exported Functions:"):
            inside = True
        elif inside and not line.strip():
            break
        elif inside and (match := _EXPORT.fullmatch(line.rstrip())):
            results = match["results"]
            exports[match["name"]] = len(results.split(",")) if results else 0
    exports.pop("__init", None)
    return exports


# --- A request -> a build ---

_DUMP_LIMITS = Limits(seconds=120)


def compile_request(request: CompileRequest, key: str, folder: Path) -> tuple[Build, str]:
    """Compile a case in an empty folder."""
    (folder / MODEL_FILE).symlink_to(request.model.resolve())
    for file in request.arranged.files:
        file.put_into(folder)
    started = Build(
        case=request.case.name,
        command=compile_command(request.case.compile_flags),
        cache_key=key,
        files=tuple(file.unique_name for file in request.arranged.files),
    )
    try:
        flags, effects = rewrite_model(request, folder)
    except CaseError as error:
        return replace(started, failure=Failure.of(error)), printed_in(folder)
    command = compile_command((*request.case.compile_flags, *flags))
    started = replace(started, command=command, rewritten=bool(flags), effects=effects)
    try:
        finished = run_compiler(request, command[1:], folder)
    except CaseError as error:
        return replace(started, failure=Failure.of(error)), ""
    build = replace(started, compile_ns=finished.wall_ns, peak_rss_bytes=finished.peak_rss_bytes)
    complaint = what_went_wrong(request, finished, wrote=(folder / MODULE_FILE).is_file())
    if complaint is not None:
        failure = Failure(stage="compile", message=complaint, stderr=excerpt(finished.stderr))
        return replace(build, failure=failure), f"{printed_in(folder)}{finished.stderr}"
    try:
        outputs = _count_outputs(request, folder)
    except CaseError as error:
        return replace(build, failure=Failure.of(error)), finished.stderr
    module, statistics = folder / MODULE_FILE, folder / STATISTICS_FILE
    build = replace(
        build,
        module_sha256=hashlib.sha256(module.read_bytes()).hexdigest(),
        sizes=module_sizes(module),
        statistics=parse_statistics(statistics.read_text()) if statistics.is_file() else None,
        outputs=outputs,
        warnings=warning_lines(finished.stderr),
    )
    return build, finished.stderr


def _count_outputs(request: CompileRequest, folder: Path) -> int:
    command = [str(request.toolchain.runtime_tool("iree-dump-module")), MODULE_FILE]
    dump = run_tool("compile", "iree-dump-module", command, cwd=folder, limits=_DUMP_LIMITS)
    if not dump.ok:
        reason = status_text(dump.stderr)
        how = f"it {dump.how_it_ended(_DUMP_LIMITS)}{f': {reason}' if reason else ''}"
        raise CaseError("compile", f"iree-dump-module cannot read the compiled module: {how}", excerpt(dump.stderr))
    exports = exported_functions(dump.stdout)
    if request.function not in exports:
        names = ", ".join(sorted(exports)) or "none"
        message = f"the module exports no function {request.function!r}; name one that it exports: {names}"
        raise CaseError("compile", message, excerpt(dump.stderr))
    return exports[request.function]
