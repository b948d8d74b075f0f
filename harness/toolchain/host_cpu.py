"""What `host` means in a compiler flag: the processor and its features, as iree-compile resolves them on a machine.

Where one machine compiles for another, `host` would mean the wrong one. So a machine says what its own compiler makes
of the word, and the flags say that instead: equal flags then mean equal code, wherever they are compiled.
"""

import hashlib
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import process
from harness.cache import cache_root, read_memo, write_memo
from harness.errors import ToolchainError
from harness.machine.environment import capture_environment
from harness.text import one_line
from harness.toolchain.find import Toolchain, find_toolchain

CPU_FLAG, FEATURES_FLAG = "--iree-llvmcpu-target-cpu", "--iree-llvmcpu-target-cpu-features"
_HOST_FLAGS = (f"{CPU_FLAG}=host", f"{FEATURES_FLAG}=host")
# The target's description in the IR of any program. A string there holds no quotation mark.
_CPU = re.compile(r'\bcpu = "([^"]*)"')
_FEATURES = re.compile(r'\bcpu_features = "([^"]*)"')
_TRIPLE = re.compile(r'\btarget_triple = "([^"]*)"')
_PROGRAM = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }\n"
_COMMAND = ("program.mlir", "--compile-to=flow", "-o", "-")
HOST_TARGET = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu", _HOST_FLAGS[0])
# What decides for which processor a program is compiled.
_OF_TARGET = ("--iree-hal-target-", "--iree-hal-local-target-", "--iree-llvmcpu-target-")


@dataclass(frozen=True, kw_only=True)
class TargetCpu:
    """A processor in the compiler's words."""

    name: str  # `znver3`, `sapphirerapids`, `neoverse-n1`
    features: str  # Each with + or -, joined by commas, as its flag takes them
    triple: str = ""  # Of the target: `x86_64-unknown-unknown-eabi-elf`

    @property
    def flags(self) -> tuple[str, str]:
        """The compiler's flags for it."""
        return f"{CPU_FLAG}={self.name}", f"{FEATURES_FLAG}={self.features}"


def is_of_host(flag: str) -> bool:
    """Whether a compiler flag says `host`, so that what is compiled depends on the machine that it is for."""
    return flag in _HOST_FLAGS


def without_host(flags: Sequence[str], cpu: TargetCpu) -> tuple[str, ...]:
    """Flags in which `host` is written out as a processor; other flags stay as they are, in their order.

    The compiler reads `host` in either flag as processor and features both, and refuses another value beside it.
    """
    if not any(map(is_of_host, flags)):
        return tuple(flags)
    place = next(place for place, flag in enumerate(flags) if flag in _HOST_FLAGS)
    before, after = flags[:place], [flag for flag in flags[place:] if flag not in _HOST_FLAGS]
    return (*before, *cpu.flags, *after)


def environment_here() -> dict[str, dict[str, Any]]:
    """What this machine is, with the name that the compiler beside the harness has for its processor."""
    return capture_environment(llvm_name=_name_here)


def _name_here(host_cpu: str) -> str:
    try:
        return host_target_cpu(find_toolchain(), host_cpu).name
    except ToolchainError:  # there is none, or it does not tell; vendor, family, model and features are known anyway
        return ""


def host_target_cpu(toolchain: Toolchain, host_cpu: str) -> TargetCpu:
    """What a toolchain's compiler takes `host` for on this machine."""
    return target_cpu(toolchain, HOST_TARGET, host_cpu)


def target_cpu(toolchain: Toolchain, flags: Sequence[str], host_cpu: str) -> TargetCpu:
    """The processor that a toolchain compiles for with these flags, features included; a memo keeps it."""
    own = [flag for flag in flags if flag.startswith(_OF_TARGET)]
    memo = memo_of(toolchain, own, host_cpu)
    kept = read_memo(memo)
    if isinstance(kept, list) and len(kept) == 3:
        return TargetCpu(name=str(kept[0]), features=str(kept[1]), triple=str(kept[2]))
    cpu = _asked(toolchain, own)
    write_memo(memo, [cpu.name, cpu.features, cpu.triple])
    return cpu


def memo_of(toolchain: Toolchain, flags: Sequence[str], host_cpu: str) -> Path:
    """Where the answer for these flags of a target is kept."""
    key = hashlib.sha256("\n".join((toolchain.compiler_sha256, host_cpu, *flags)).encode()).hexdigest()[:32]
    return cache_root() / "toolchains" / f"target-cpu-{key}.json"


def _asked(toolchain: Toolchain, flags: Sequence[str]) -> TargetCpu:
    with tempfile.TemporaryDirectory(prefix="target-cpu-") as folder:
        (Path(folder) / "program.mlir").write_text(_PROGRAM)
        command = [str(toolchain.iree_compile), *_COMMAND, *flags]
        try:
            finished = process.run(command, cwd=Path(folder), limits=process.Limits(seconds=120))
        except OSError as error:
            raise ToolchainError(f"{toolchain.iree_compile} cannot be started: {error.strerror or error}") from error
    cpu = target_cpu_in(finished.stdout)
    if cpu is None:
        said = one_line(finished.stderr)[:200] or finished.how_it_ended()
        raise ToolchainError(
            f"iree-compile {toolchain.version} does not say which CPU it compiles for ({said}); run"
            f" `iree-compile {' '.join((*_COMMAND[1:], *flags))}` on a small program and see what it prints"
        )
    return cpu


def target_cpu_in(ir: str) -> TargetCpu | None:
    """The processor that a program's IR is for; None where it names none."""
    name, features, triple = _CPU.search(ir), _FEATURES.search(ir), _TRIPLE.search(ir)
    if name is None or features is None:
        return None
    return TargetCpu(name=name[1], features=features[1], triple=triple[1] if triple else "")
