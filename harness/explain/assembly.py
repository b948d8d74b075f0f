"""The assembly that a compiler writes -> functions as instructions, in blocks that follow each other.

It is LLVM's text for x86-64 (AT&T syntax) and AArch64, without comments: loops are labels that are jumped back to.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

Architecture = Literal["x86-64", "AArch64"]

_LABEL = re.compile(r'"?(?P<name>[^\s":]+)"?:')
_END = re.compile(r"\.?Lfunc_end\d+:|\s+\.(?:size|cfi_endproc)\b")
_COMMENT = re.compile(r"(?:^|\s)(?:#+\s|#(?:NO_)?APP|//|;\s).*")
# The number of a function in its file, in labels of its blocks, constants and jump tables.
_OWN_NUMBER = re.compile(r"(\.?L(?:BB|CPI|JTI))\d+_")
_PREFIXES = ("{evex}", "{vex}", "{vex2}", "{vex3}", "lock", "notrack", "rep", "repe", "repne")

_X86 = re.compile(r"%(?:rsp|rbp|rsi|rdi|rax|eax|xmm0)\b")
# Directives of other targets whose registers have names that AArch64 has too: RISC-V's and WebAssembly's.
_ANOTHER = re.compile(r"^\s*\.(?:attribute|functype)\s", re.MULTILINE)
_AARCH64 = re.compile(r"^\s+[a-z]\w*(?:\.\w+)?\s+(?:[wx]\d+|\[?sp)\b", re.MULTILINE)

_JUMPS = ("jmp", "jmpq", "jmpl", "b", "br")
_CONDITIONAL = re.compile(r"j(?!mp)\w+|bc?\.\w+|cbn?z|tbn?z")
_LAST = re.compile(r"ret\w*|ud2|hlt|brk|udf")


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One instruction."""

    name: str  # Its mnemonic: `vfmadd231ps`
    operands: tuple[str, ...]  # As they are written, in their order: `(%r10,%rcx,4){1to16}`, `%zmm14`, `%zmm0`


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function."""

    blocks: tuple[tuple[Instruction, ...], ...]  # Instructions that run one after the other
    # Of each block, the numbers of those that may run next. An indirect jump has none.
    successors: tuple[frozenset[int], ...]
    fingerprint: str  # Equal of functions of the same instructions; values of constants that lie outside are not in it

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """All of them, in their order."""
        return tuple(instruction for block in self.blocks for instruction in block)


def architecture_of(text: str) -> Architecture | None:
    """What an assembly file is for, by its registers; None: neither of the two."""
    if _X86.search(text):
        return "x86-64"
    return "AArch64" if _ANOTHER.search(text) is None and _AARCH64.search(text) else None


def read_functions(text: str, names: Collection[str]) -> dict[str, Function]:
    """The functions of those names that a file has."""
    wanted = frozenset(names)
    lines: dict[str, list[str]] = {}
    reading: list[str] | None = None
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label is not None and (name := _named(label["name"], wanted)):
            reading = lines.setdefault(name, [])
        elif _END.match(line):
            reading = None
        elif reading is not None:
            reading.append(line)
    return {name: _function(body) for name, body in lines.items()}


def _named(label: str, names: Collection[str]) -> str:
    """Which of the names a label is; macOS puts an underscore before them."""
    return next((name for name in (label, label.removeprefix("_")) if name in names), "")


def _function(lines: Sequence[str]) -> Function:
    blocks: list[list[Instruction]] = [[]]
    begins: dict[str, int] = {}
    digest = hashlib.sha256()
    for line in lines:
        if label := _LABEL.match(line):
            if blocks[-1]:
                blocks.append([])
            begins[label["name"]] = len(blocks) - 1
        elif instruction := _instruction(line):
            blocks[-1].append(instruction)
            shown = f"{instruction.name} {', '.join(instruction.operands)}\n"
            digest.update(_OWN_NUMBER.sub(r"\1_", shown).encode())
            if _jumps(instruction) or _LAST.fullmatch(instruction.name):
                blocks.append([])
    return Function(
        blocks=tuple(map(tuple, blocks)),
        successors=tuple(_successors(blocks, place, begins) for place in range(len(blocks))),
        fingerprint=digest.hexdigest(),
    )


def _successors(blocks: Sequence[Sequence[Instruction]], place: int, begins: dict[str, int]) -> frozenset[int]:
    last = blocks[place][-1] if blocks[place] else None
    following: set[int] = {place + 1} if place + 1 < len(blocks) else set()
    if last is None:
        return frozenset(following)
    if last.name in _JUMPS or _LAST.fullmatch(last.name):
        following = set()
    if _jumps(last):
        following |= {begins[operand] for operand in last.operands if operand in begins}
    return frozenset(following)


def _jumps(instruction: Instruction) -> bool:
    return instruction.name in _JUMPS or _CONDITIONAL.fullmatch(instruction.name) is not None


def _instruction(line: str) -> Instruction | None:
    """None for a directive, a comment and an empty line."""
    name, _, rest = _COMMENT.sub("", line).strip().replace("\t", " ").partition(" ")
    while name in _PREFIXES and rest:
        name, _, rest = rest.lstrip().partition(" ")
    if not name or name.startswith("."):
        return None
    return Instruction(name=name, operands=_operands(rest.strip()))


def _operands(text: str) -> tuple[str, ...]:
    """Those between commas that are in no bracket."""
    if not text:
        return ()
    if not any(bracket in text for bracket in "([{"):
        return tuple(operand.strip() for operand in text.split(","))
    operands, begin, depth = [], 0, 0
    for place, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            operands.append(text[begin:place].strip())
            begin = place + 1
    return (*operands, text[begin:].strip())
