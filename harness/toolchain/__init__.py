"""The compiler and runtime pair that is driven."""

from harness.toolchain.find import find_toolchain
from harness.toolchain.flags import compiler_flags, runtime_flags
from harness.toolchain.values import Toolchain

__all__ = ["Toolchain", "compiler_flags", "find_toolchain", "runtime_flags"]
