"""Flags of a toolchain's tools: which they know, from their own help, and flags joined by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness.cache import cache_root, read_memo, write_memo
from harness.errors import ToolchainError
from harness.process import Limits, run
from harness.toolchain.values import Toolchain

_LIMITS = Limits(seconds=60)
# LLVM's command line indents options by two blanks; IREE's runtime prints each flag at the line's start, with
# those that are lists or unset behind a hash.
_COMPILER_OPTION = re.compile(r"^  --?([A-Za-z][\w.-]*)", re.MULTILINE)
_RUNTIME_OPTION = re.compile(r"^(?:# ?)?--([a-z]\w*)(?==|$)", re.MULTILINE)


def flag_name(flag: str) -> str:
    """`--iree-opt-level=O3` -> `iree-opt-level`; LLVM's command-line library takes one dash or two."""
    return flag.lstrip("-").split("=", 1)[0]


def merge_flags(*groups: Sequence[str]) -> tuple[str, ...]:
    """Join groups of flags; a later group's flag replaces an earlier group's of the same name.

    Within one group a name may repeat (some flags are lists), so a variant can override its device's flags and a
    device can still give a list.
    """
    merged: list[str] = []
    for group in groups:
        names = {flag_name(flag) for flag in group}
        merged = [flag for flag in merged if flag_name(flag) not in names]
        merged.extend(group)
    return tuple(merged)


def compiler_flags(toolchain: Toolchain) -> frozenset[str]:
    """Names of all flags that iree-compile takes, hidden ones included; kept by the compiler's hash."""
    return _flags(toolchain, toolchain.iree_compile, "--help-list-hidden", _COMPILER_OPTION)


def runtime_flags(toolchain: Toolchain) -> frozenset[str]:
    """Names of all flags that iree-benchmark-module takes; it ignores an unknown one without a word."""
    return _flags(toolchain, toolchain.runtime_tool("iree-benchmark-module"), "--help", _RUNTIME_OPTION)


def _flags(toolchain: Toolchain, tool: Path, option: str, pattern: re.Pattern[str]) -> frozenset[str]:
    memo = cache_root() / "toolchains" / f"{toolchain.compiler_sha256[:32]}-{toolchain.version}-{tool.name}-flags.json"
    kept = read_memo(memo)
    if isinstance(kept, list):
        return frozenset(str(name) for name in kept)
    try:
        finished = run([str(tool), option], limits=_LIMITS)
    except OSError as error:
        raise ToolchainError(f"{tool.name} cannot be started ({error.strerror}); reinstall the toolchain") from None
    names = frozenset(pattern.findall(finished.stdout))
    if not names:
        raise ToolchainError(
            f"{tool.name} {option} lists no flags ({finished.how_it_ended(_LIMITS)}); reinstall the toolchain"
        )
    write_memo(memo, sorted(names))
    return names
