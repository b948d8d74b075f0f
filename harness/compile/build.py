"""Case -> Build: one iree-compile in its own process, in a content-addressed cache."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from harness.compile.facts import exported_functions, module_sizes, parse_statistics
from harness.plan.flags import normalised
from harness.plan.values import Case
from harness.process import Finished, Limits, run
from harness.results.records import Build, Failure
from harness.toolchain import Toolchain
from harness.toolchain.messages import error_lines, status_text, tail, warning_lines

MODEL_FILE = "model.mlir"
MODULE_FILE = "module.vmfb"
_STATISTICS_FILE = "statistics.json"
_FACTS_FILE = "build.json"
_STDERR_FILE = "stderr.txt"

# Equal code then gives equal bytes: source positions and debug data would differ between two writings of one program.
REPRODUCIBLE_FLAGS = (
    "--iree-vm-bytecode-module-strip-source-map",
    "--iree-hal-executable-debug-level=0",
    "--iree-llvmcpu-debug-symbols=false",
    "--iree-vm-emit-polyglot-zip=true",
)
STATISTICS_FLAGS = (
    "--iree-scheduling-dump-statistics-format=json",
    f"--iree-scheduling-dump-statistics-file={_STATISTICS_FILE}",
)
_DUMP_LIMITS = Limits(seconds=120)
_STALE_AFTER_S = 24 * 3600
_BUILD = TypeAdapter(Build)
_MORE = {"time": "give it more with --compile-timeout", "memory": "give it more with --compile-memory"}


@dataclass(frozen=True, kw_only=True)
class CompileRequest:
    """Everything one compile needs.

    Attributes:
        model: The MLIR file.
        model_sha256: Hash of the model's bytes and of its external weights.
        host_cpu: Identity of this machine's CPU; enters the key where flags say `host`.
        plugins: Identities of the plugins, options included.
    """

    case: Case
    toolchain: Toolchain
    model: Path
    model_sha256: str
    function: str
    host_cpu: str
    limits: Limits
    plugins: tuple[str, ...] = ()


def compile_command(flags: Sequence[str]) -> tuple[str, ...]:
    """The command line, as it is run in a folder that holds the model as model.mlir."""
    return ("iree-compile", MODEL_FILE, "-o", MODULE_FILE, *flags, *REPRODUCIBLE_FLAGS, *STATISTICS_FLAGS)


def cache_key(request: CompileRequest) -> str:
    """Hash of all that decides the module's bytes."""
    flags = request.case.compile_flags
    parts = {
        "model": request.model_sha256,
        "function": request.function,
        "plugins": request.plugins,
        "flags": normalised((*flags, *REPRODUCIBLE_FLAGS)),
        "files": _named_files(flags),
        "compiler": [request.toolchain.version, request.toolchain.compiler_sha256],
        "host": request.host_cpu if any(flag.endswith("=host") for flag in flags) else "",
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


class BuildCache:
    """Compiled modules by cache key, in a folder that several harnesses may share."""

    def __init__(self, root: Path) -> None:
        self._builds = root / "builds"
        self._locks = root / "locks"
        self._scratch = root / "scratch"

    def module(self, build: Build) -> Path:
        """Where a build's module lies."""
        return self._folder(build.cache_key) / MODULE_FILE

    def find(self, key: str, case: str) -> Build | None:
        """The build with that key, if it is there and whole."""
        folder = self._folder(key)
        try:
            build = _BUILD.validate_json((folder / _FACTS_FILE).read_bytes())
            whole = build.sizes is not None and (folder / MODULE_FILE).stat().st_size == build.sizes.module_bytes
        except (OSError, ValidationError):
            return None
        return replace(build, case=case, cached=True) if whole else None

    def compile(self, request: CompileRequest) -> tuple[Build, str]:
        """Compile a case, or take its build from the cache.

        Returns:
            The build, and all that the compiler printed on stderr ("" from the cache, where it lies beside the
            module). A failed compile is a Build with `failure` set; it is never cached.

        Raises:
            OSError: The cache folder cannot be written.
        """
        key = cache_key(request)
        if found := self.find(key, request.case.name):
            return found, ""
        for folder in (self._builds, self._locks, self._scratch):
            folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._locks / f"{key}.lock"):
            if found := self.find(key, request.case.name):
                return found, ""
            with tempfile.TemporaryDirectory(dir=self._scratch, ignore_cleanup_errors=True) as scratch:
                build, stderr = _compile(request, key, Path(scratch))
                if build.failure is None:
                    self._keep(build, stderr, Path(scratch))
                return build, stderr

    def sweep(self) -> None:
        """Remove what killed harnesses left in the scratch folder a day ago or earlier."""
        before = time.time() - _STALE_AFTER_S
        for left in self._scratch.glob("*"):
            if left.stat().st_mtime < before:
                shutil.rmtree(left, ignore_errors=True)

    def _folder(self, key: str) -> Path:
        return self._builds / key[:2] / key

    def _keep(self, build: Build, stderr: str, scratch: Path) -> None:
        final = self._folder(build.cache_key)
        final.parent.mkdir(parents=True, exist_ok=True)
        (scratch / MODEL_FILE).unlink()
        (scratch / _STDERR_FILE).write_text(stderr)
        (scratch / _FACTS_FILE).write_bytes(_BUILD.dump_json(replace(build, case="", cached=False)))
        if final.exists():  # a build that `find` refused: its module was cut short
            shutil.rmtree(final)
        scratch.chmod(0o755)  # temporary folders are private
        scratch.replace(final)


def _compile(request: CompileRequest, key: str, folder: Path) -> tuple[Build, str]:
    command = compile_command(request.case.compile_flags)
    (folder / MODEL_FILE).symlink_to(request.model.resolve())
    started = Build(case=request.case.name, command=command, cache_key=key)
    try:
        finished = run([str(request.toolchain.iree_compile), *command[1:]], cwd=folder, limits=request.limits)
    except OSError as error:
        message = f"iree-compile cannot be started ({error.strerror}); reinstall the toolchain"
        return replace(started, failure=Failure(stage="compile", message=message)), ""
    build = replace(started, compile_ns=finished.wall_ns, peak_rss_bytes=finished.peak_rss_bytes)
    errors = error_lines(finished.stderr)
    if not finished.ok or errors or not (folder / MODULE_FILE).is_file():
        return replace(build, failure=_failure(finished, errors, request.limits)), finished.stderr
    return _with_facts(request, build, folder, finished), finished.stderr


def _failure(finished: Finished, errors: Sequence[str], limits: Limits) -> Failure:
    how = f"iree-compile {finished.how_it_ended(limits)}"
    if finished.limit is not None:
        return Failure(stage="compile", message=f"{how}; {_MORE[finished.limit]}", stderr=tail(finished.stderr))
    if finished.ok and errors:
        how = "iree-compile printed an error, though it exited with status 0"
    elif finished.ok:
        how += ", but wrote no module; run its command line by hand"
    elif not errors:
        errors = tuple(line.strip() for line in finished.stderr.splitlines() if _says_why(line))[:1]
    message = f"{how}: {errors[0]}" if errors else how
    return Failure(stage="compile", message=message, stderr=tail(finished.stderr))


def _says_why(line: str) -> bool:
    """Whether a line can be the reason of a crash, rather than what every crash prints."""
    return bool(line.strip()) and not line.startswith(("PLEASE ", "Please report", "Stack dump", " #", "0."))


def _with_facts(request: CompileRequest, build: Build, folder: Path, finished: Finished) -> Build:
    module = folder / MODULE_FILE
    try:
        tool = str(request.toolchain.runtime_tool("iree-dump-module"))
        dump = run([tool, MODULE_FILE], cwd=folder, limits=_DUMP_LIMITS)
    except OSError as error:
        message = f"iree-dump-module cannot be started ({error.strerror}); reinstall the toolchain"
        return replace(build, failure=Failure(stage="compile", message=message))
    if not dump.ok:
        message = f"iree-dump-module cannot read the compiled module: it {dump.how_it_ended(_DUMP_LIMITS)}"
        reason = status_text(dump.stderr)
        message = f"{message}: {reason}" if reason else message
        return replace(build, failure=Failure(stage="compile", message=message, stderr=tail(dump.stderr)))
    exports = exported_functions(dump.stdout)
    if request.function not in exports:
        listed = ", ".join(sorted(exports)) or "none"
        message = f"the module exports no function {request.function!r}; name one that it exports: {listed}"
        return replace(build, failure=Failure(stage="compile", message=message, stderr=tail(dump.stderr)))
    statistics = folder / _STATISTICS_FILE
    return replace(
        build,
        module_sha256=hashlib.sha256(module.read_bytes()).hexdigest(),
        sizes=module_sizes(module),
        statistics=parse_statistics(statistics.read_text()) if statistics.is_file() else None,
        outputs=exports[request.function],
        warnings=warning_lines(finished.stderr),
    )
