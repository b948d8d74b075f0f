"""One compile in a folder: plugins rewrite the model, iree-compile makes a module of it, and its facts are read."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

from harness.compile.effects import effects_of_flags
from harness.compile.facts import exported_functions, module_sizes, parse_statistics
from harness.compile.request import MODEL_FILE, MODULE_FILE, STATISTICS_FILE, CompileRequest, compile_command
from harness.compile.rewrite import rewrite_model
from harness.compile.tool import run_compiler, what_went_wrong
from harness.errors import CaseError
from harness.process import Finished, Limits, run
from harness.records.run import Build, Failure
from harness.toolchain.messages import status_text, tail, warning_lines

_DUMP_LIMITS = Limits(seconds=120)


def compile_request(request: CompileRequest, key: str, folder: Path) -> tuple[Build, str]:
    """Compile a case in an empty folder.

    Returns:
        The build, `failure` set where it failed, and what the compiler printed on stderr.

    Raises:
        OSError: The folder cannot be written.
    """
    try:
        return _compile(request, key, folder)
    finally:
        shutil.rmtree(folder / "steps", ignore_errors=True)


def _compile(request: CompileRequest, key: str, folder: Path) -> tuple[Build, str]:
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
        program = rewrite_model(request, folder)
    except CaseError as error:
        return replace(started, failure=Failure(stage="compile", message=str(error), stderr=error.stderr)), error.stderr
    command = compile_command((*request.case.compile_flags, *program.flags))
    started = replace(started, command=command, rewritten=program.rewritten, effects=program.effects)
    try:
        finished = run_compiler(request, command[1:], folder)
    except CaseError as error:
        return replace(started, failure=Failure(stage="compile", message=str(error))), ""
    build = replace(started, compile_ns=finished.wall_ns, peak_rss_bytes=finished.peak_rss_bytes)
    complaint = what_went_wrong(request, finished, wrote=(folder / MODULE_FILE).is_file())
    if complaint is not None:
        failure = Failure(stage="compile", message=complaint, stderr=tail(finished.stderr))
        return replace(build, failure=failure), finished.stderr
    build = _with_facts(request, build, folder, finished)
    if build.failure is None:
        build = replace(build, effects=(*build.effects, *effects_of_flags(request, program, folder)))
    return build, finished.stderr


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
    statistics = folder / STATISTICS_FILE
    return replace(
        build,
        module_sha256=hashlib.sha256(module.read_bytes()).hexdigest(),
        sizes=module_sizes(module),
        statistics=parse_statistics(statistics.read_text()) if statistics.is_file() else None,
        outputs=exports[request.function],
        warnings=warning_lines(finished.stderr),
    )
