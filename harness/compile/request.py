"""What one compile needs, the key under which its result is kept, and running iree-compile for it.

Where that fails, one sentence says why, and which plugin it is about.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import CaseError
from harness.plugins import Applied
from harness.plugins.chain import Arranged, pipelines_of
from harness.process import Finished, Limits
from harness.records.case import Case
from harness.suite.flags import normalised
from harness.toolchain import Toolchain
from harness.toolchain.tools import COMPILE_MORE, error_lines, excerpt, run_tool

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
        "compiler": [request.toolchain.version, request.toolchain.compiler_sha256],
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
        usual = ("PLEASE ", "Please report", "Stack dump", " #", "0.")
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
