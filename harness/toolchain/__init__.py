"""The compiler and runtime pairs that are driven."""

from harness.toolchain.find import Environment, Toolchain, find_toolchain, installed_environments
from harness.toolchain.install import (
    get_toolchains,
    install_toolchain,
    release_named,
    releases_between,
    releases_named,
    toolchain_named,
)
from harness.toolchain.tools import compiler_flags, runtime_flags

__all__ = [
    "Environment",
    "Toolchain",
    "compiler_flags",
    "find_toolchain",
    "get_toolchains",
    "install_toolchain",
    "installed_environments",
    "release_named",
    "releases_between",
    "releases_named",
    "runtime_flags",
    "toolchain_named",
]
