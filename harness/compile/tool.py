"""Running iree-compile, whole or up to a phase, and saying in one sentence why it failed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.compile.blame import blamed_plugin
from harness.compile.request import CompileRequest
from harness.errors import CaseError
from harness.process import Finished, Limits, run
from harness.toolchain.messages import error_lines, tail

MORE = {"time": "give it more with --compile-timeout", "memory": "give it more with --compile-memory"}


def run_compiler(request: CompileRequest, arguments: Sequence[str], folder: Path) -> Finished:
    """Run the request's iree-compile in a folder, under its limits.

    Raises:
        CaseError: It cannot be started (stage `compile`).
    """
    try:
        return run([str(request.toolchain.iree_compile), *arguments], cwd=folder, limits=request.limits, pausable=True)
    except OSError as error:
        raise CaseError(
            "compile", f"iree-compile cannot be started ({error.strerror}); reinstall the toolchain"
        ) from None


def compile_to(
    request: CompileRequest, source: str, output: str, phase: str, flags: Sequence[str], folder: Path
) -> None:
    """Compile a program up to a phase, as bytecode.

    Args:
        source: The program's file, in the folder.
        output: Where the module goes, in the folder.
        flags: All of iree-compile's, where the program begins included.

    Raises:
        CaseError: iree-compile failed (stage `compile`).
    """
    arguments = [source, f"--compile-to={phase}", "--emit-mlir-bytecode", "-o", output, *flags]
    finished = run_compiler(request, arguments, folder)
    complaint = what_went_wrong(
        request, finished, wrote=(folder / output).is_file(), what=f"iree-compile --compile-to={phase}"
    )
    if complaint is not None:
        raise CaseError("compile", complaint, tail(finished.stderr))


def what_went_wrong(
    request: CompileRequest, finished: Finished, *, wrote: bool, what: str = "iree-compile"
) -> str | None:
    """A sentence about a compile that failed, which one that exits with 0 can have done too; None: it did not.

    It begins with the plugin that the error is about, where that can be told.

    Args:
        wrote: Whether its output is there.
        what: Which command it was.
    """
    complaint = _complaint(finished, request.limits, wrote, what)
    blamed = blamed_plugin(request, finished.stderr) if complaint is not None and finished.limit is None else None
    return f"plugin {blamed}: {complaint}" if blamed is not None else complaint


def _complaint(finished: Finished, limits: Limits, wrote: bool, what: str) -> str | None:
    errors: Sequence[str] = error_lines(finished.stderr)
    how = f"{what} {finished.how_it_ended(limits)}"
    if finished.limit is not None:
        return f"{how}; {MORE[finished.limit]}"
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
