"""The assembly that a compiler writes -> functions as instructions in blocks, what each does, and their loops.

It is LLVM's text for x86-64 (AT&T syntax) and AArch64. A multiplication counts as a multiply-add: on a target without
fused ones, the addition is an instruction of its own. Loops are parts of the control flow that can be reached from
themselves, wherever their labels stand: a compiler moves a loop's blocks apart, and enters it in the middle.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.explain.decisions import split

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
        # macOS puts an underscore before names.
        named = (label["name"], label["name"].removeprefix("_")) if label is not None else ()
        if name := next((name for name in named if name in wanted), ""):
            reading = lines.setdefault(name, [])
        elif _END.match(line):
            reading = None
        elif reading is not None:
            reading.append(line)
    return {name: _function(body) for name, body in lines.items()}


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
    return Instruction(name=name, operands=tuple(split(rest)))


# Kinds of vector registers, those of fewer bits first, after none; `q` and `z` (of SVE, of a length that the machine
# knows) are AArch64's, `tmm` are AMX's tiles.
REGISTERS = ("", "q", "xmm", "ymm", "z", "zmm", "tmm")
A_POINTER = "a pointer"


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One instruction's part in a kernel."""

    # The widest kind of vector registers that it computes with, of `REGISTERS`; "": it has no vectors
    registers: str = ""
    multiply_adds: int = 0  # Of vectors, 1 where it is one
    scalar_multiply_adds: int = 0  # Of single numbers
    accumulator: str = ""  # The register that its multiply-add adds to; "" of a multiplication
    loads: int = 0  # How many registers of floating numbers or vectors it reads from memory
    spills: int = 0  # How many vector registers it moves to or from a fixed place on the stack
    lane_moves: int = 0  # Whether it moves single elements of vectors about: shuffles, inserts, extracts, gathers
    calls: str = ""  # The function that it calls; `A_POINTER` where that is in a register


_NOTHING = Effect()


def effect_of(instruction: Instruction, architecture: Architecture, *, framed: bool = True) -> Effect:
    """What an instruction does."""
    return _of_x86(instruction, framed) if architecture == "x86-64" else _of_aarch64(instruction)


def keeps_frame(instruction: Instruction) -> bool:
    """Whether it is how a function on x86-64 begins that keeps the stack's place in %rbp."""
    return instruction == Instruction(name="movq", operands=("%rsp", "%rbp"))


# --- x86-64 ---

_X86_REGISTER = re.compile(r"%(?P<kind>[xyz]mm)\d+")
_X86_STACK = re.compile(r"-?\d*\(%r(?P<base>[sb]p)\)(?:\s*\{.*\})*")
_X86_FUSED = re.compile(r"vfn?m(?:add|sub|addsub|subadd)(?:\d{3})?(?P<many>[ps])[sdh]")
_X86_DOT = re.compile(r"(?:v?pmadd|vpdp|vdpb|vdpph|tdp)\w+")
_X86_PRODUCT = re.compile(r"v?mul(?P<many>[ps])[sdh]|v?pmul(?:l[wdq]|u?dq)")
_X86_SCALAR = re.compile(r"(?!v?(?:broadcast|p))\w+s[sdh]|v?mov[dqw]|v?cvt\w*2s[sdh][lq]?|v?cvtt?s[sdh]2\w+")
# Code of single numbers copies, masks and clears registers of 128 bits too; with these it computes on vectors.
_X86_ARITHMETIC = re.compile(
    r"v?(?:fn?m|add|sub|mul|div|min|max|sqrt|rcp|rsqrt|cvt|round)\w*p[sdh]|v?p(?:add|sub|mul|madd|min|max|abs|dp)\w*"
)
_X86_MOVE = re.compile(r"v?mov\w+")
_X86_LANES = re.compile(r"v?p?(?:shuf|perm|unpck|insr|insert|extr|align|gather|scatter)\w*")


def _of_x86(instruction: Instruction, framed: bool) -> Effect:
    name, operands = instruction.name, instruction.operands
    if name.startswith("call"):
        return Effect(calls=_called(operands))
    if name.startswith("tdp") and operands:
        return Effect(registers="tmm", multiply_adds=1, accumulator=operands[-1])
    kinds = [register["kind"] for operand in operands if (register := _X86_REGISTER.match(operand))]
    if not kinds:
        return _NOTHING
    widest = max(kinds, key=REGISTERS.index)
    is_scalar = _X86_SCALAR.fullmatch(name) is not None
    if widest == "xmm" and (is_scalar or not _X86_ARITHMETIC.fullmatch(name)):
        widest = ""
    fused, product = _X86_FUSED.fullmatch(name), _X86_PRODUCT.fullmatch(name)
    of_vectors = _X86_DOT.fullmatch(name) is not None
    of_scalars = False
    if (found := fused or product) is not None:
        of_scalars = found["many"] == "s"
        of_vectors = not of_scalars
    target = operands[-1]
    accumulator = _X86_REGISTER.match(target) if (fused or of_vectors) and not product else None
    stores = "(" in target
    memory = next((operand for operand in operands if "(" in operand), None)
    stack = _X86_STACK.fullmatch(memory) if memory is not None else None
    on_stack = stack is not None and (stack["base"] == "sp" or framed)
    return Effect(
        registers=widest,
        multiply_adds=int(of_vectors),
        scalar_multiply_adds=int(of_scalars),
        accumulator=accumulator[0] if accumulator is not None else "",
        loads=int(memory is not None and not stores),
        spills=int(on_stack and (not stores or _X86_MOVE.fullmatch(name) is not None)),
        lane_moves=int(_X86_LANES.fullmatch(name) is not None),
    )


def _called(operands: tuple[str, ...]) -> str:
    target = operands[0] if operands else ""
    return A_POINTER if not target or target.startswith("*") else target.partition("@")[0].strip('"')


# --- AArch64 ---

_ARM_VECTOR = re.compile(r"\{?\s*(?P<kind>[vz])\d+\.\d*[bhsdq](?!\w*\[)")
_ARM_WHOLE = re.compile(r"(?P<kind>[qz])\d+")
_ARM_SCALAR = re.compile(r"[hsd]\d+")
_ARM_LANE = re.compile(r"v\d+\.[bhsd]\[|\}\s*\[")
_ARM_STACK = re.compile(r"\[(?:sp|x29)(?:, #-?\d+(?:, mul vl)?)?\]!?")
_ARM_FUSED = re.compile(
    r"fml[as]l?2?|bfml[as]l[bt]|bfdot|[bf]f?mmla|(?:us|su|[su])dot|(?:us|[su])mmla|ml[as]|[su]ml[as]l(?:2|[bt])?|fmopa"
)
_ARM_FUSED_SCALAR = re.compile(r"fn?m(?:add|sub)")
_ARM_PRODUCT = re.compile(r"fmulx?|fnmul|mul|[su]mull2?")
_ARM_LANES = re.compile(r"zip[12]|uzp[12]|trn[12]|ext|tbl|tbx|ins|rev\d\d|splice|compact")
_ARM_NEUTRAL = re.compile(r"movi|mov|ld\w+|st\w+")


def _of_aarch64(instruction: Instruction) -> Effect:
    name, operands = instruction.name, instruction.operands
    if name in ("bl", "blr"):
        return Effect(calls=A_POINTER if name == "blr" else _called(operands))
    if not operands:
        return _NOTHING
    target = operands[0]
    vectors = [found["kind"] for operand in operands if (found := _ARM_VECTOR.match(operand))]
    wholes = [found["kind"] for operand in operands if (found := _ARM_WHOLE.fullmatch(operand))]
    kinds = vectors + wholes
    is_vector = _ARM_VECTOR.match(target) is not None
    is_scalar = _ARM_SCALAR.fullmatch(target) is not None
    lanes = name in ("mov", "ld1") and any(_ARM_LANE.search(operand) for operand in operands)
    if not (kinds or is_scalar or lanes):
        return _NOTHING
    fused = _ARM_FUSED.fullmatch(name) is not None
    fused_scalar = (_ARM_FUSED_SCALAR.fullmatch(name) is not None or fused) and is_scalar
    product = _ARM_PRODUCT.fullmatch(name) is not None
    moves = name.startswith(("ld", "st"))
    on_stack = any(_ARM_STACK.fullmatch(operand) for operand in operands)
    lanes = lanes or (is_vector and _ARM_LANES.fullmatch(name) is not None)
    accumulator = operands[-1] if fused_scalar and not fused else target
    return Effect(
        registers="" if _ARM_NEUTRAL.fullmatch(name) or not kinds else "z" if "z" in kinds else "q",
        multiply_adds=int((fused or product) and is_vector),
        scalar_multiply_adds=int(fused_scalar or (product and is_scalar)),
        accumulator=accumulator.partition(".")[0] if (fused and is_vector) or fused_scalar else "",
        loads=(2 if name in ("ldp", "ldnp") else 1) if name.startswith("ld") else 0,
        spills=len(wholes) if moves and on_stack else 0,
        lane_moves=int(lanes),
    )


_BEFORE_THE_FIRST = -1


@dataclass(frozen=True, kw_only=True)
class Loop:
    """One loop of a function."""

    blocks: frozenset[int]  # Numbers of its blocks, those of loops inside it among them
    depth: int  # 1 of a loop that is in no other
    innermost: bool  # Whether no other loop is in it


def find_loops(successors: Sequence[Collection[int]]) -> tuple[Loop, ...]:
    """The loops of a function, each before those inside it; two that begin at the same block are one here."""
    predecessors: list[set[int]] = [set() for _ in successors]
    for block, following in enumerate(successors):
        for successor in following:
            predecessors[successor].add(block)
    if not successors:
        return ()
    predecessors[0].add(_BEFORE_THE_FIRST)
    return tuple(_loops_among(frozenset(range(len(successors))), successors, predecessors, 1))


def _loops_among(
    blocks: frozenset[int], successors: Sequence[Collection[int]], predecessors: Sequence[set[int]], depth: int
) -> Iterator[Loop]:
    """The loops among some blocks: each is a cycle, and without the block that it begins at, the loops inside it."""
    for cycle in sorted(_cycles(blocks, successors), key=min) if blocks else ():
        entered = [block for block in cycle if predecessors[block] - cycle]
        header = min(entered or cycle)
        inside = tuple(_loops_among(cycle - {header}, successors, predecessors, depth + 1))
        yield Loop(blocks=cycle, depth=depth, innermost=not inside)
        yield from inside


def _cycles(blocks: frozenset[int], successors: Sequence[Collection[int]]) -> list[frozenset[int]]:
    """The strongly connected parts that have a cycle."""
    from scipy.sparse import coo_array  # which takes a while to import
    from scipy.sparse.csgraph import connected_components

    order = sorted(blocks)
    numbers = {block: number for number, block in enumerate(order)}
    jumps = [(numbers[block], numbers[after]) for block in order for after in successors[block] if after in numbers]
    begins, ends = [begin for begin, _ in jumps], [end for _, end in jumps]
    graph = coo_array(([1.0] * len(jumps), (begins, ends)), shape=(len(order), len(order)))
    parts: dict[int, set[int]] = {}
    for block, part in zip(order, connected_components(graph, connection="strong")[1].tolist(), strict=True):
        parts.setdefault(part, set()).add(block)
    return [frozenset(part) for part in parts.values() if len(part) > 1 or min(part) in successors[min(part)]]
