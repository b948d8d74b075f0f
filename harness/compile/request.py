"""What one compile needs, and the key under which its result is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.plugins import Applied
from harness.plugins.chain import Arranged
from harness.process import Limits
from harness.records.case import Case
from harness.suite.flags import normalised
from harness.toolchain import Toolchain

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
        "rewrites": [[call.function, call.phase, dict(call.options)] for call in request.arranged.rewrites],
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
    values = sorted({flag.partition("=")[2] for flag in flags if "=" in flag})
    return [[value, hashlib.sha256(Path(value).read_bytes()).hexdigest()] for value in values if _is_file(value)]


def _is_file(value: str) -> bool:
    try:
        return Path(value).is_absolute() and Path(value).is_file()
    except (OSError, ValueError):  # too long for a path, or with a zero byte: then it names no file
        return False
