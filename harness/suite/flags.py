"""Command-line flags of IREE's tools as data: comparing, and the combinations that do not do what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.toolchain.tools import flag_name


def is_on(flag: str) -> bool:
    """Whether a boolean flag switches its feature on: given bare or with a true value."""
    _, equals, value = flag.partition("=")
    return not equals or value.lower() in {"true", "1", "on"}


def normalised(flags: Iterable[str]) -> tuple[str, ...]:
    """The normal form of flags: equal for two command lines that mean the same.

    Two dashes, `=true` left out, sorted by name; repeated flags keep their order, since some are ordered lists.
    """
    canonical = []
    for flag in flags:
        name, equals, value = flag.lstrip("-").partition("=")
        canonical.append((name, f"--{name}" if not equals or value == "true" else f"--{name}={value}"))
    return tuple(text for _, text in sorted(canonical, key=lambda pair: pair[0]))


@dataclass(frozen=True, kw_only=True)
class Trap:
    """Flags that cancel or silence each other.

    Attributes:
        flags: Sets of names; flags are in the trap when one of each set is on.
        effect: What the flags then do, as the end of a sentence.
        instead: What to write.
    """

    flags: tuple[frozenset[str], ...]
    effect: str
    instead: str


_GLOBAL_OPT = frozenset({"iree-global-opt-data-tiling"})

# Found by running iree-compile 3.13.0 on a matmul: the flow-level IR of each combination, see docs/suite-format.md.
TRAPS = (
    Trap(
        flags=(frozenset({"iree-opt-data-tiling"}), _GLOBAL_OPT),
        effect="cancel each other, so that nothing is data-tiled and no message says so",
        instead="keep one of the two",
    ),
    Trap(
        flags=(frozenset({"iree-dispatch-creation-data-tiling"}), _GLOBAL_OPT),
        effect="are two paths of which the second wins without a message",
        instead="keep one of the two",
    ),
)


def find_trap(flags: Sequence[str]) -> tuple[Trap, tuple[str, ...]] | None:
    """The first trap that these flags walk into, and the flags that do; None when they walk into none."""
    switched_on = {flag_name(flag): flag for flag in flags if is_on(flag)}
    for trap in TRAPS:
        culprits = tuple(
            next((switched_on[name] for name in sorted(names) if name in switched_on), "") for names in trap.flags
        )
        if all(culprits):
            return trap, culprits
    early = next((flag for flag in flags if flag_name(flag) == "iree-global-opt-enable-early-materialization"), None)
    if early is not None and not is_on(early) and not _GLOBAL_OPT & switched_on.keys():
        silent = Trap(
            flags=(),
            effect="has no effect: only the global-opt path reads it",
            instead="add --iree-global-opt-data-tiling or remove it",
        )
        return silent, (early,)
    return None


# Flags that a suite may not give, and why. What the harness passes itself would be contradicted; what prints and exits
# measures nothing; what loads code or runs a program comes from installed plugins only; and the worker cannot apply
# the allocator.
_OURS = "is the harness's own to give"
_PRINTS = "makes the tool print and exit"
_RUNS_A_PROGRAM = "runs a program, which a suite may not name"
# The pass of that name, which a pipeline may have in it, runs one too.
_RUNS_A_TOOL = "preprocess-executables-with"
_LOADS_CODE = "loads code, which only an installed plugin may"
_REFUSED_COMPILE = {
    **dict.fromkeys(("o", "compile-to", "compile-from", "compile-mode"), _OURS),
    **dict.fromkeys(("help", "help-hidden", "help-list", "help-list-hidden", "version"), _PRINTS),
    **dict.fromkeys(
        (
            "iree-load-plugin",
            "iree-link-bitcode",
            "iree-hal-substitute-executable-object",
            "iree-hal-substitute-executable-objects-from",
            "load",
            "load-pass-plugin",
        ),
        _LOADS_CODE,
    ),
    **dict.fromkeys(
        (
            "iree-cuda-use-ptxas-from",
            "iree-hal-preprocess-executables-with",
            "iree-llvmcpu-embedded-linker-path",
            "iree-llvmcpu-system-linker-path",
            "iree-llvmcpu-wasm-linker-path",
            "print-changed-diff-path",
        ),
        _RUNS_A_PROGRAM,
    ),
}
_REFUSED_RUN = {
    **dict.fromkeys(("device", "module", "function", "input", "output", "parameters", "time_unit"), _OURS),
    **dict.fromkeys(("print_statistics", "dispatch_statistics", "benchmark_format", "benchmark_out"), _OURS),
    **dict.fromkeys(("benchmark_repetitions", "benchmark_min_time", "batch_size", "batch_concurrency"), _OURS),
    **dict.fromkeys(("help", "version", "list_devices", "list_drivers", "dump_devices", "agents_md"), _PRINTS),
    "executable_plugin": _LOADS_CODE,
    "device_allocator": "is not applied by iree.runtime, so that what is timed would be without it",
}


def refusal(flag: str, *, at_run: bool) -> str | None:
    """Why a suite may not give this flag, as a phrase; None: it may."""
    if not at_run and _RUNS_A_TOOL in flag:
        return _RUNS_A_PROGRAM
    return (_REFUSED_RUN if at_run else _REFUSED_COMPILE).get(flag_name(flag))


def runs_code(flag: str) -> bool:
    """Whether a flag makes a tool load code or run a program."""
    return any(refusal(flag, at_run=at_run) in (_LOADS_CODE, _RUNS_A_PROGRAM) for at_run in (False, True))
