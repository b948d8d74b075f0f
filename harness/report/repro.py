"""Command lines that repeat a row with plain tools: what an engineer pastes into a shell, or into an issue.

Files get names that can lie side by side: those of `harness export`, in a folder named after the model, and beside them
each module. A variant with plugins has a folder of its own, with the program as they made it.
"""

import re
import shlex
from collections.abc import Sequence

from harness.records.case import Case
from harness.records.run import Build, Check, Reference
from harness.text import one_line
from harness.toolchain.own import is_own

# The files of the folder that the commands ran in, as arguments name them: `model.mlir`, `--module=module.vmfb`,
# `--input=@input0.npy`, `--input=4x8xbf16=@input1.bin`, `--parameters=scope=scope.irpa`.
_MODULE = "module.vmfb"
_FILE_ARGUMENT = re.compile(
    r"(?P<before>(?:--(?:module|input)=(?:[^@=]+=)?@?)?)(?P<file>model\.mlir|module\.vmfb|input\d+\.(?:npy|bin))"
    r"|(?P<scope>--parameters=(?:[^=]+=)?)(?P<weights>[^/=]+)"
)

# What the harness asks for on its own behalf: a file of statistics, and output made for machines.
_LEFT_OUT = ("--iree-scheduling-dump-statistics", "--benchmark_format", "--benchmark_out")


def repro_lines(
    case: Case,
    suite: str,
    build: Build | None,
    reference: Reference | None,
    check: Check | None,
    *,
    several_toolchains: bool = False,
) -> tuple[str, ...]:
    """The lines for one case, as far as it went; a peer's case is run by the harness again, beside its baseline."""
    if case.peer is not None:
        return (shlex.join(["harness", "run", suite, "--filter", case.name]),)
    if build is None or not build.command:
        return ()
    parts = (case.variant, case.device, *([case.toolchain] if several_toolchains else []))
    exported = ".".join((case.model, case.variant, case.device)) if case.plugins else case.model
    folder, module = _file_name(exported), f"{_file_name('.'.join(parts))}.vmfb"

    def line(command: Sequence[str]) -> str:
        return shlex.join(translated(command, f"{folder}/", module, build.files))

    variant = ["--variant", case.variant, "--device", case.device] if case.plugins else []
    lines = [shlex.join(["harness", "export", suite, case.model, *variant, "--out", folder])]
    if case.plugins and build.failure is not None and build.compile_ns is None:
        return tuple(lines)  # a plugin failed, and fails again there
    if several_toolchains:
        release = one_line(case.toolchain)
        packages = shlex.join([f"iree-base-compiler=={release}", f"iree-base-runtime=={release}"])
        how = ", which somebody built" if is_own(release) else f": pip install {packages}"
        lines.append(f"# the tools below are those of IREE {release}{how}")
    lines.append(line(build.command))
    runs = [record.command for record in (reference, check) if record is not None and record.command]
    if build.failure is None and runs:
        variables = [f"{name}={shlex.quote(value)}" for name, value in case.environment.items()]
        lines.append(" ".join([*variables, line(runs[0])]))
    return tuple(lines)


def translated(command: Sequence[str], place: str, module: str, files: Sequence[str]) -> list[str]:
    """A recorded command with its files named as they lie in a place, which is "" or ends in a slash."""
    return [_translated(argument, place, module, files) for argument in command if not argument.startswith(_LEFT_OUT)]


def _translated(argument: str, place: str, module: str, files: Sequence[str]) -> str:
    for path in files:
        argument = argument.replace(f"=./{path}", f"={path}").replace(f"={path}", f"={place}{path}")
    match = _FILE_ARGUMENT.fullmatch(argument)
    if match is None:
        return argument
    file = match["file"] or match["weights"]
    return f"{match['before'] or match['scope'] or ''}{place}{module if file == _MODULE else file}"


def _file_name(text: str) -> str:
    """Usable unquoted in every shell, and without the @ at which IREE's tools cut the value of --module=."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", text).lstrip("-.") or "_"
