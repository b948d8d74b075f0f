"""Command-line flags of IREE's tools as data: comparing, and the combinations that do not do what they say."""

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.toolchain.tools import flag_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


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


# flag_rules.toml has the flags that are known: those that cancel each other, and what each kind may not do.
_RULES = tomllib.loads(Path(__file__).with_name("flag_rules.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class Trap:
    """Flags that cancel or silence each other."""

    on: Sequence[str] = ()  # Flags are in the trap when all of these are on,
    given: Sequence[str] = ()  # all of these are given and off,
    without: Sequence[str] = ()  # and none of these is on
    effect: str  # What the flags then do, as the end of a sentence
    instead: str  # What to write


TRAPS = tuple(Trap(**trap) for trap in _RULES["traps"])


def find_trap(flags: Sequence[str]) -> tuple[Trap, tuple[str, ...]] | None:
    """The first trap that these flags walk into, and the flags that do; None when they walk into none."""
    on = {flag_name(flag): flag for flag in flags if is_on(flag)}
    off = {flag_name(flag): flag for flag in flags if not is_on(flag)}
    for trap in TRAPS:
        if on.keys() >= {*trap.on} and off.keys() >= {*trap.given} and on.keys().isdisjoint(trap.without):
            return trap, (*(on[name] for name in trap.on), *(off[name] for name in trap.given))
    return None


# What a suite may give, by kind. A suite is code as a Makefile is, since a model becomes native code; what follows is
# there so that a flag does nothing unexpected: numbers and words pass, a path passes only where a flag is known to read
# there, or to dump below the folder that the compiler works in.
_REASONS: dict[str, str] = _RULES["reasons"]
_OF_COMPILER: dict[str, list[str]] = _RULES["compiler"]
_READS, _DUMPS = frozenset(_OF_COMPILER["reads"]), frozenset(_OF_COMPILER["dumps"])
_REFUSED = {
    (at_run, name): _REASONS[kind]
    for at_run, tool in ((False, "compiler"), (True, "runtime"))
    for kind, names in _RULES[tool].items()
    if kind in _REASONS
    for name in names
}
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
_SEPARATORS = re.compile(r"[/\\=@:,;\s(){}\[\]\"']+")
# In the compiler's working folder a link to the user's own file; harness.compile.iree_compile names it too.
_MODEL_FILE = "model.mlir"


def refusal(flag: str, *, at_run: bool) -> str | None:
    """Why a suite may not give this flag, as a phrase; None: it may."""
    name, value = flag_name(flag), flag.partition("=")[2]
    if not at_run and any(text in flag for text in _PASSES_THAT_RUN):
        return _REASONS["runs_a_program"]
    if reason := _REFUSED.get((at_run, name)):
        return reason
    if not at_run and name in _READS:
        return None
    value = _READING_OPTION.sub("", value)
    pieces = _SEPARATORS.split(value)
    if not at_run and _MODEL_FILE in pieces:
        return _NAMES_THE_MODEL
    if at_run or name not in _DUMPS:
        has_a_path = "/" in value or "\\" in value or value.startswith("~") or ".." in pieces
        return _HAS_A_PATH if has_a_path else None
    is_absolute = any(part.startswith(("/", "\\", "~")) or part[1:2] == ":" for part in value.split("="))
    return _LEADS_OUTSIDE if ".." in pieces or is_absolute else None
