"""A scripted toolchain: small programs under the names of IREE's tools, for tests of order and of failures.

A test says what a tool does in the flags that the case gives to it, or for every call in `always`:

    --fake-exit=3           end with that status
    --fake-signal=ABRT      end by that signal
    --fake-stderr=TEXT      print that line; may be repeated
    --fake-sleep=60         go on for so many seconds
    --fake-allocate=500     use so many MiB of memory
    --fake-no-output        write no module, no outputs, no JSON
    --fake-code=x           iree-compile: other code, so another module
    --fake-exports=f:1,g:3  iree-compile: functions of the module, and how many results each has
    --fake-values=1,2,nan   iree-compile, iree-run-module: the outputs' values; repeated: one an output
    --fake-times-ns=5,6,7   iree-benchmark-module: time of each repetition

In a suite, flags of the runtime are written --fake_exit=3, since that is how IREE's runtime spells its own.
Equal models and equal --fake-code give modules with equal bytes.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.toolchain import Toolchain

TOOLS = ("iree-compile", "iree-dump-module", "iree-run-module", "iree-benchmark-module")
_STUB = """#!{python} -IS
import sys
sys.path.insert(0, {folder!r})
from fake_tools import main
main()
"""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One start of a fake tool."""

    tool: str
    arguments: tuple[str, ...]
    pid: int


def make_fake_toolchain(
    folder: Path, *, always: Mapping[str, Sequence[str]] | None = None, missing: Sequence[str] = ()
) -> Toolchain:
    """Write the fake tools into a folder.

    Args:
        always: Flags that a tool acts on in every call, by the tool's name.
        missing: Tools to leave out, as a broken installation does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    script = {"always": {tool: list(flags) for tool, flags in (always or {}).items()}, "calls": str(folder / "calls")}
    (folder / "script.json").write_text(json.dumps(script))
    for tool in TOOLS:
        if tool not in missing:
            program = folder / tool
            program.write_text(_STUB.format(python=sys.executable, folder=str(Path(__file__).parent)))
            program.chmod(0o755)
    return Toolchain(
        version="0.0.0",
        revision="",
        compiler_sha256="fa" * 32,
        python=Path(sys.executable),
        compiler_tools=folder,
        runtime_tools=folder,
    )


def calls(toolchain: Toolchain, tool: str | None = None) -> list[Call]:
    """What was started so far, in order: all tools, or one of them."""
    log = toolchain.compiler_tools / "calls"
    lines = log.read_text().splitlines() if log.exists() else []
    found = [Call(**{**json.loads(line), "arguments": tuple(json.loads(line)["arguments"])}) for line in lines]
    return [call for call in found if tool in {None, call.tool}]
