"""The compiler and runtime pairs that are driven."""

from harness.toolchain.environments import Environment, installed_environments
from harness.toolchain.find import find_toolchain
from harness.toolchain.flags import compiler_flags, runtime_flags
from harness.toolchain.install import get_toolchains, install_toolchain, release_named
from harness.toolchain.values import Toolchain

__all__ = [
    "Environment",
    "Toolchain",
    "compiler_flags",
    "find_toolchain",
    "get_toolchains",
    "install_toolchain",
    "installed_environments",
    "release_named",
    "runtime_flags",
]
