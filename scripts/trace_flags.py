#!/usr/bin/env python3
"""Which flags of a release of IREE run a program, load code, write or read where their value says; run it for each.

    python scripts/trace_flags.py [--toolchain 3.12.0] [--tool iree-compile|iree-run-module] [--flags NAME ...]

Every flag whose value is no plain number is given, one at a time, a path outside the working folder, and such a path in
the forms that some flags want, while strace watches what the tool does there. What was found is printed as lines of
`tool, flag, what it did, whether a suite may give it`, and a last line says how many were tried. The exit status is 1
where a suite may give a flag that runs, loads or writes at a path outside (harness/suite/flags.py decides that).
scripts/traced-flags/ keeps what it printed. It takes strace, a C compiler, and about 20 minutes on two idle cores.

It sees what happens while a small program is compiled for this CPU, or run: a flag that acts only beside another, on
another target or on other code shows nothing (--x86-lvi-load-opt-plugin). COMPANIONS has what some need; of a new
release, also read the help text of the flags whose names it did not have before.
"""

import argparse
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.cache import environments_root
from harness.suite.flags import refusal
from harness.toolchain import Toolchain, find_toolchain, get_toolchains

# In every path that a flag gets, and in nothing else that a tool opens.
TOKEN = "hprobe"  # noqa: S105
MODEL = """\
module @net {
  util.global private @weight = #flow.parameter.named<"model"::"weight"> : tensor<16x16xf32>
  func.func @main(%a: tensor<16x16xf32>) -> tensor<16x16xf32> {
    %w = util.global.load @weight : tensor<16x16xf32>
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<16x16xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x16xf32>) -> tensor<16x16xf32>
    %c = linalg.matmul ins(%a, %w : tensor<16x16xf32>, tensor<16x16xf32>)
      outs(%init : tensor<16x16xf32>) -> tensor<16x16xf32>
    return %c : tensor<16x16xf32>
  }
}
"""
SIMPLE = """\
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
LIBRARY = (
    '#include <sys/stat.h>\n__attribute__((constructor)) static void f(void) { mkdir("hprobe-was-loaded", 0700); }\n'
)
TARGET = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
# Flags that do nothing without another; and flags whose switch is another one.
COMPANIONS = {
    "print-changed-dot-path": ("--print-changed=dot-cfg",),
    "print-changed-diff-path": ("--print-changed=diff",),
    "dot-cfg-dir": ("--print-changed=dot-cfg",),
    "x86-lvi-load-opt-plugin": ("--iree-llvmcpu-target-cpu-features=+lvi-load-hardening",),
    "iree-llvmcpu-system-linker-path": ("--iree-llvmcpu-link-embedded=false",),
    "iree-flow-dump-dispatch-graph-output-file": ("--iree-flow-dump-dispatch-graph",),
    "iree-cuda-use-ptxas-from": ("--iree-cuda-use-ptxas",),
    "mlir-print-ir-tree-dir": ("--mlir-print-ir-after-all",),
    "iree-scheduling-dump-statistics-file": ("--iree-scheduling-dump-statistics-format=json",),
    "info-output-file": ("--stats",),
    "pass-remarks-output": (),
    "print-on-crash-path": ("--print-on-crash",),
    "opt-bisect-print-ir-path": ("--opt-bisect-limit=5",),
    "device_profiling_output": ("--device_profiling_mode=dispatch-events",),
    "device_capture_file": ("--device_capture_tool=renderdoc",),
    "vulkan_libvulkan_search_path": ("--device=vulkan",),
    "hip_dylib_path": ("--device=hip",),
    "executable_plugin": ("--device=local-sync",),
}
_COMPILER_OPTION = re.compile(r"^  --?(?P<name>[A-Za-z][\w.-]*)(?P<kind>\[?=\S*)?")
_RUNTIME_OPTION = re.compile(r"^(?:# ?)?--(?P<name>[a-z]\w*)(?:=(?P<kind>.*))?$")
_NUMBER = re.compile(r"\[?=<(?:uint|int|number|ulong|long|N|x|power|ElementCount|seed)\b")
_CALL = re.compile(r"(?:^\d+ +)?(?P<call>execve|openat|open|creat|mkdir|mkdirat|renameat2?|rename|unlink|symlink)\(")


def flags_of(tool: str, text: str) -> Iterator[str]:
    """The flags of a help text whose value may be more than a number or one of a few words."""
    lines = text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        match = (_COMPILER_OPTION if tool == "iree-compile" else _RUNTIME_OPTION).match(line)
        if match is None or not match["kind"]:
            continue
        if tool == "iree-compile":
            if not _NUMBER.match(match["kind"]) and not following.startswith("    ="):
                yield match["name"]
        elif match["kind"] not in ("true", "false") and not re.fullmatch(r"-?[0-9][0-9.e-]*", match["kind"]):
            yield match["name"]


def done_by(log: str, tool: str) -> set[str]:
    """What a log of strace shows at paths with the token in them."""
    found = set()
    for line in log.splitlines():
        match = _CALL.search(line)
        if match is None or TOKEN not in line:
            continue
        if match["call"] == "execve":
            if f'/{tool}"' not in line.split(",", 1)[0]:
                found.add("runs")
        elif f"{TOKEN}-was-loaded" in line:
            found.add("loads")
        elif match["call"].startswith("open") and "O_WRONLY" not in line and "O_RDWR" not in line:
            found.add("reads")
        else:
            found.add("writes")
    return found


class Tracer:
    """One tool of a toolchain, and a folder with what its flags may find."""

    def __init__(self, toolchain: Toolchain, tool: str, folder: Path) -> None:
        """Prepare the folder: a library, a program, and for the runtime's tool a module."""
        self.tool = tool
        self.program = toolchain.iree_compile if tool == "iree-compile" else toolchain.runtime_tool(tool)
        self.outside = folder / TOKEN
        self.outside.mkdir()
        self.library = self.outside / "library.so"
        (folder / "library.c").write_text(LIBRARY)
        subprocess.run(["/usr/bin/cc", "-shared", "-fPIC", "-o", self.library, folder / "library.c"], check=True)
        self.start = folder / "start"
        self.start.mkdir()
        self.command: list[str] = ["model.mlir", "-o", "model.vmfb", *TARGET]
        (self.start / "model.mlir").write_text(MODEL if tool == "iree-compile" else SIMPLE)
        if tool != "iree-compile":
            compiler = [toolchain.iree_compile, "model.mlir", "-o", "model.vmfb", *TARGET]
            subprocess.run([str(word) for word in compiler], cwd=self.start, check=True)
            self.command = ["--module=model.vmfb", "--function=main", "--input=4xf32=1", "--device=local-sync"]

    def flags(self) -> list[str]:
        """All flags of the tool that are worth trying."""
        option = "--help-list-hidden" if self.tool == "iree-compile" else "--help"
        printed = subprocess.run([self.program, option], capture_output=True, text=True)
        return sorted(set(flags_of(self.tool, printed.stdout)))

    def takes_text(self, name: str) -> bool:
        """Whether the flag's parser takes a path, and not only numbers, or one of a few words."""
        if self.tool != "iree-compile":
            return True
        command = [self.program, f"--{name}={self.outside}/nothing", "nothing.mlir"]
        tried = subprocess.run(command, cwd=self.start, capture_output=True, text=True)
        return re.search(r"for the --?[\w.-]+ option: ", tried.stderr) is None

    def trace(self, name: str) -> tuple[str, set[str], bool]:
        """What a flag does with its value, and whether a suite may give it one of the values that do this."""
        found: set[str] = set()
        if not self.takes_text(name):
            return name, found, False
        passes = False
        for value, needs in self._values(name):
            if needs and not needs & found:
                continue
            did = self._did([f"--{name}={value}", *COMPANIONS.get(name, ())])
            may_be_given = refusal(f"--{name}={value}", at_run=self.tool != "iree-compile") is None
            passes = passes or (may_be_given and bool(did - {"reads"}))
            found |= did
        return name, found, passes

    def _values(self, name: str) -> Iterator[tuple[str, set[str]]]:
        """Values, each with what has to have been found before for it to be worth a try."""
        program = self.outside / f"{name}.sh"
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o755)
        yield str(program), set()
        yield f"net={self.outside}/new-{name}.irpa", set()
        yield str(self.library), {"reads"}
        if self.tool != "iree-compile":
            yield f"@{self.outside}/new-{name}.npy", set()
        # A word, as of a program that is on the path, or a file in the working folder.
        yield f"{TOKEN}word", {"runs", "loads"}

    def _did(self, flags: Sequence[str]) -> set[str]:
        with tempfile.TemporaryDirectory(prefix="flags-") as name:
            folder, log = Path(name, "work"), Path(name, "log")
            shutil.copytree(self.start, folder)
            calls = "trace=execve,openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,symlink"
            watch = ["strace", "-f", "--seccomp-bpf", "-qq", "-s", "400", "-o", str(log), "-e", calls]
            quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            ours = [
                word for word in self.command if not (word.startswith("--device=") and "--device=" in " ".join(flags))
            ]
            command = [*watch, str(self.program), *ours, *flags]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(command, cwd=folder, timeout=60, **quiet)  # type: ignore[call-overload]
            return done_by(log.read_text(errors="replace"), self.program.name)


def main() -> int:
    """Trace, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--toolchain", help="a release (default: the installed one)")
    parser.add_argument("--tool", default="iree-compile", choices=("iree-compile", "iree-run-module"))
    parser.add_argument("--flags", nargs="*", help="only these, without dashes (default: all that take a value)")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    toolchain = (
        get_toolchains((arguments.toolchain,), root=environments_root())[0] if arguments.toolchain else find_toolchain()
    )
    holes = 0
    with tempfile.TemporaryDirectory(prefix="flags-") as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        tracer = Tracer(toolchain, arguments.tool, Path(folder))
        flags = arguments.flags or tracer.flags()
        for name, found, passes in pool.map(tracer.trace, flags):
            holes += passes
            if found:
                verdict = "A SUITE MAY GIVE IT" if passes else "refused there"
                print(arguments.tool, f"--{name}", "+".join(sorted(found)), verdict, sep="\t", flush=True)
    print(f"# {arguments.tool} {toolchain.version}: {len(flags)} flags tried, {holes} a hole")
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main())
