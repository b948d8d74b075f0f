"""Running iree-compile, and saying in one sentence why it failed, and which plugin that is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.compile.request import CompileRequest
from harness.errors import CaseError
from harness.plugins.chain import pipelines_of
from harness.plugins.plugin import CompilerPlugin, Step, TransformLibrary, TransformSpec, TuningSpec
from harness.process import Finished, Limits
from harness.toolchain.tools import COMPILE_MORE, error_lines, excerpt, run_tool


def run_compiler(request: CompileRequest, arguments: Sequence[str], folder: Path) -> Finished:
    """Run the request's iree-compile in a folder, under its limits."""
    command = [str(request.toolchain.iree_compile), *arguments]
    return run_tool("compile", "iree-compile", command, cwd=folder, limits=request.limits, pausable=True)


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
    """Why a compile failed, as a sentence; None where it succeeded. A compile that exits with 0 can fail too.

    The sentence begins with the plugin that the error is about, where the error names one.
    """
    complaint = _complaint(finished, request.limits, wrote, what)
    plugin = blamed_plugin(request, finished.stderr) if complaint is not None and finished.limit is None else None
    return f"plugin {plugin}: {complaint}" if plugin is not None else complaint


def _complaint(finished: Finished, limits: Limits, wrote: bool, what: str) -> str | None:
    errors: Sequence[str] = error_lines(finished.stderr)
    how = f"{what} {finished.how_it_ended(limits)}"
    if finished.limit is not None:
        return f"{how}; {COMPILE_MORE[finished.limit]}"
    if finished.ok and errors:
        how = f"{what} printed an error, though it exited with status 0"
    elif finished.ok and wrote:
        return None
    elif finished.ok:
        how += ", but wrote no module; run its command line by hand"
    elif not errors:
        errors = tuple(line.strip() for line in finished.stderr.splitlines() if _says_why(line))[:1]
    return f"{how}: {errors[0]}" if errors else how


def _says_why(line: str) -> bool:
    """Whether a line can be the reason of a crash, rather than what every crash prints."""
    return bool(line.strip()) and not line.startswith(("PLEASE ", "Please report", "Stack dump", " #", "0."))


_UNKNOWN_PASS = re.compile(r"'(?P<name>[^']+)' does not refer to a registered pass")
_WRONG_PIPELINE = re.compile(r"pass pipeline|PassPipeline")


def blamed_plugin(request: CompileRequest, stderr: str) -> str | None:
    """The plugin that an error is about: it brings a file, an entry or a pass that the compiler names.

    None where the error leaves it open: of two pass pipelines, say, when the error names no pass.
    """
    # A warning about a plugin's file is not what the compile failed with.
    lines = [line for line in stderr.splitlines() if " warning: " not in line]
    for applied in request.plugins:
        if any(mark in line for step in applied.steps for mark in _marks(step) for line in lines):
            return applied.name
    return _owner_of_pipeline(request, "\n".join(lines))


def _marks(step: Step) -> Iterator[str]:
    """What errors about a step have in them."""
    file = getattr(step, "file", None)
    if file is not None:
        yield file.unique_name
    match step:
        case TransformSpec():
            yield "named sequence with name: __transform_main"
        case TuningSpec():
            yield "named sequence with name: __kernel_config"
        case TransformLibrary():
            yield f"named sequence with name: {step.entry or '__kernel_config'}"
        case CompilerPlugin():
            yield from (f"IREE plugin '{name}'" for name in step.activate)


def _owner_of_pipeline(request: CompileRequest, errors: str) -> str | None:
    """The plugin whose pass pipeline is wrong; the variant's own flag may be the one, and has no owner here."""
    texts = [
        (applied.name, text) for applied in request.plugins for step in applied.steps for text in pipelines_of(step)
    ]
    texts += [("", text) for owner, text in request.arranged.pipelines if not owner]
    unknown = _UNKNOWN_PASS.search(errors)
    if unknown is not None:
        texts = [(owner, text) for owner, text in texts if unknown["name"] in text]
    elif not _WRONG_PIPELINE.search(errors):
        return None
    owners = {owner for owner, _ in texts}
    return (owners.pop() or None) if len(owners) == 1 else None
