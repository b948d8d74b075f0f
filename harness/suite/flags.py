"""Command-line flags of IREE's tools as data: comparing, and the combinations that do not do what they say."""

from __future__ import annotations

import re
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
    """Flags that cancel or silence each other."""

    flags: tuple[frozenset[str], ...]  # Sets of names; flags are in the trap when one of each set is on
    effect: str  # What the flags then do, as the end of a sentence
    instead: str  # What to write


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


# What a suite may give, by kind. A suite is code as a Makefile is, since a model becomes native code; what follows is
# there so that a flag does nothing unexpected: numbers and words pass, a path passes only where a flag is known to read
# there, or to dump below the folder that the compiler works in. scripts/trace_flags.py watches every flag of a release,
# and scripts/traced-flags/ has what it found, which is where these names come from.
_OURS = "is the harness's own to give"
_PRINTS = "makes the tool print and exit"
_RUNS_A_PROGRAM = "runs a program, which a suite may not name"
_LOADS_CODE = "loads code, which only an installed plugin may"
_READS_FLAGS = "reads further flags from a file; write them here"
_WRITES_AT_RUN = "writes a file, where nothing may be written while something is timed"
_HAS_A_PATH = "has a path in its value, and is no flag that is known to read there or to dump below the working folder"
_LEADS_OUTSIDE = "writes outside the compiler's working folder, below which a path like dumps/x lies"
_NAMES_THE_MODEL = "names the harness's own copy of the model"

# Passes that a pipeline may have in it; they run a program, or put object code in.
_PASSES_THAT_RUN = ("preprocess-executables-with", "gpu-module-to-binary", "hal-substitute-executables")
# Options of passes, in a pipeline's text, that read a file and do nothing else with its path.
_READING_OPTION = re.compile(
    r"\b(?:library-file-name|patterns-file|transform-file-name|transform-library-paths|transform-spec-path"
    r"|tuning-spec-path)=[^\s{}]+"
)
_REFUSED_COMPILE = {
    **dict.fromkeys(("o", "compile-to", "compile-from", "compile-mode"), _OURS),
    **dict.fromkeys(("iree-scheduling-dump-statistics-file", "iree-scheduling-dump-statistics-format"), _OURS),
    **dict.fromkeys(("help", "help-hidden", "help-list", "help-list-hidden", "version"), _PRINTS),
    **dict.fromkeys(
        (
            "iree-hal-executable-object-search-path",
            "iree-hal-substitute-executable-object",
            "iree-hal-substitute-executable-objects-from",
            "iree-link-bitcode",
            "iree-load-plugin",
            "iree-rocm-bc-dir",
            "load",
            "load-pass-plugin",
            "x86-lvi-load-opt-plugin",
        ),
        _LOADS_CODE,
    ),
    **dict.fromkeys(
        (
            "exec-on-ir-change",
            "inliner-interactive-channel-base",
            "iree-cuda-use-ptxas-from",
            "iree-cuda-use-ptxas-params",
            "iree-hal-preprocess-executables-with",
            "iree-llvmcpu-embedded-linker-path",
            "iree-llvmcpu-system-linker-path",
            "iree-llvmcpu-wasm-linker-path",
            "print-changed-diff-path",
            "print-changed-dot-path",
            "regalloc-evict-interactive-channel-base",
            "regalloc-priority-interactive-channel-base",
        ),
        _RUNS_A_PROGRAM,
    ),
}
_REFUSED_RUN = {
    **dict.fromkeys(("device", "module", "function", "input", "output", "parameters", "time_unit"), _OURS),
    **dict.fromkeys(("print_statistics", "dispatch_statistics", "benchmark_format", "benchmark_out"), _OURS),
    **dict.fromkeys(("benchmark_repetitions", "benchmark_min_time", "batch_size", "batch_concurrency"), _OURS),
    **dict.fromkeys(("help", "version", "list_devices", "list_drivers", "dump_devices", "agents_md"), _PRINTS),
    **dict.fromkeys(("executable_plugin", "hip_dylib_path", "vulkan_libvulkan_search_path"), _LOADS_CODE),
    **dict.fromkeys(
        ("device_capture_file", "device_profiling_output", "device_replay_output", "instrument_file"), _WRITES_AT_RUN
    ),
    "flagfile": _READS_FLAGS,
    "device_allocator": "is not applied by iree.runtime, so that what is timed would be without it",
}
# Of iree-compile: flags that open what they name, anywhere, and only read it.
_READS = frozenset(
    (
        "fs-profile-file",
        "forceattrs-csv-path",
        "iree-codegen-debug-patched-func-ops-file-name",
        "iree-codegen-transform-dialect-library",
        "iree-codegen-tuning-spec-path",
        "iree-hal-substitute-executable-configuration",
        "iree-hal-substitute-executable-configurations-from",
        "iree-hal-substitute-executable-source",
        "iree-hal-substitute-executable-sources-from",
        "iree-parameter-import",
        "iree-preprocessing-pdl-spec-filename",
        "iree-preprocessing-transform-spec-filename",
        "sample-profile-file",
    )
)
# Of iree-compile: flags that write a file or a folder for people to look at.
_DUMPS = frozenset(
    (
        "crash-diagnostics-dir",
        "dot-cfg-dir",
        "dump-compilation-phases-to",
        "info-output-file",
        "ir-dump-directory",
        "iree-codegen-dump-tuning-specs-to",
        "iree-flow-dump-dispatch-graph-output-file",
        "iree-hal-dump-executable-benchmarks-to",
        "iree-hal-dump-executable-binaries-to",
        "iree-hal-dump-executable-configurations-to",
        "iree-hal-dump-executable-files-to",
        "iree-hal-dump-executable-intermediates-to",
        "iree-hal-dump-executable-sources-to",
        "iree-opt-export-parameters",
        "iree-opt-splat-parameters",
        "iree-parameter-encoder-output-file",
        "iree-parameter-export",
        "iree-parameter-splat",
        "iree-util-hoist-into-globals-print-constexpr-dotgraph-to",
        "iree-vm-bytecode-source-listing",
        "log-actions-to",
        "mlir-pass-pipeline-crash-reproducer",
        "mlir-print-ir-tree-dir",
        "opt-bisect-print-ir-path",
        "print-on-crash-path",
        "profile-actions-to",
        "remarks-output-file",
    )
)
_SEPARATORS = re.compile(r"[/\\=@:,;\s(){}\[\]\"']+")
# What lies in the compiler's working folder as a link to the user's own file; harness.compile.request names it too.
_MODEL_FILE = "model.mlir"


def refusal(flag: str, *, at_run: bool) -> str | None:
    """Why a suite may not give this flag, as a phrase; None: it may."""
    name, value = flag_name(flag), flag.partition("=")[2]
    if not at_run and any(text in flag for text in _PASSES_THAT_RUN):
        return _RUNS_A_PROGRAM
    if reason := (_REFUSED_RUN if at_run else _REFUSED_COMPILE).get(name):
        return reason
    if not at_run and name in _READS:
        return None
    value = _READING_OPTION.sub("", value)
    pieces = _SEPARATORS.split(value)
    if not at_run and _MODEL_FILE in pieces:
        return _NAMES_THE_MODEL
    if at_run or name not in _DUMPS:
        return _HAS_A_PATH if _is_path(value) or ".." in pieces else None
    is_below = ".." not in pieces and not any(_is_absolute(part) for part in value.split("="))
    return None if is_below else _LEADS_OUTSIDE


def _is_path(value: str) -> bool:
    return "/" in value or "\\" in value or value.startswith("~")


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "\\", "~")) or path[1:2] == ":"


def runs_code(flag: str) -> bool:
    """Whether a flag makes a tool load code or run a program."""
    return any(refusal(flag, at_run=at_run) in (_LOADS_CODE, _RUNS_A_PROGRAM) for at_run in (False, True))
