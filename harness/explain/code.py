"""A program -> the final code of its dispatches as facts -> what differs on two sides, in sentences.

Compiling once more with `--iree-hal-dump-executable-intermediates-to` writes the assembly of each executable, LLVM's
text for x86-64 (AT&T syntax) or AArch64. Microkernels that stay functions of their own are calls here.

What is said is what an engineer looks for in the assembly of a kernel: whether it computes on vectors, how many
multiply-adds can be under way at once, how much it loads for each of them, what it moves between registers, its spills.
A multiplication counts as a multiply-add: on a target without fused ones, the addition is an instruction of its own.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.compare.samplers import Module
from harness.explain.decisions import split
from harness.explain.isolated_timing import dump
from harness.explain.summary_sentence import Labels, enumerated, on
from harness.process import Limits
from harness.text import plural

_FOLDER = "intermediates"


@dataclass(frozen=True, kw_only=True)
class Work:
    """What some code does; counts are of its instructions, not of how often they run."""

    instructions: int = 0
    registers: str = ""  # The widest kind of vector registers that it names, of `_REGISTERS`; "": none
    multiply_adds: int = 0  # Of vectors
    scalar_multiply_adds: int = 0  # Of single numbers
    accumulators: frozenset[str] = frozenset()  # Registers that its multiply-adds add to: as many can be under way
    loads: int = 0  # Registers of floating numbers or vectors that are read from memory, also by a multiply-add
    lane_moves: int = 0  # Shuffles, inserts, extracts and gathers of vectors' elements
    spills: int = 0  # Moves of vector registers to and from fixed places on the stack
    calls: tuple[str, ...] = ()  # Functions that it calls, each once

    @property
    def arithmetic(self) -> int:
        """All its multiply-adds."""
        return self.multiply_adds + self.scalar_multiply_adds


@dataclass(frozen=True, kw_only=True)
class Code:
    """The final code of one dispatch."""

    whole: Work
    main_loop: Work | None  # The innermost loop with the most multiply-adds, else the longest; None: no loop
    fingerprint: str  # Equal where two have the same instructions; values of constants are not in it


def final_code(module: Module, names: Collection[str], folder: Path, limits: Limits) -> dict[str, Code]:
    """Compile a module's program once more, and read the final code of dispatches."""
    (folder / _FOLDER).mkdir(parents=True)
    dump(module, (f"--iree-hal-dump-executable-intermediates-to={_FOLDER}",), folder, limits)
    found: dict[str, Code] = {}
    for file in sorted((folder / _FOLDER).rglob("*.s"), key=lambda file: (file.stat().st_mtime_ns, file.name)):
        found |= read_code(file.read_text(encoding="utf-8", errors="replace"), names)
    return found


# --- functions ---

_LABEL = re.compile(r'"?(?P<name>[^\s":]+)"?:')
_END = re.compile(r"\.?Lfunc_end\d+:|\s+\.(?:size|cfi_endproc)\b")
_COMMENT = re.compile(r"(?:^|\s)(?:#+\s|#(?:NO_)?APP|//|;\s).*")
# The number of a function in its file, in labels of its blocks, constants and jump tables.
_OWN_NUMBER = re.compile(r"(\.?L(?:BB|CPI|JTI))\d+_")
_PREFIXES = ("{evex}", "{vex}", "{vex2}", "{vex3}", "lock", "notrack", "rep", "repe", "repne")
_JUMP = re.compile(r"j\w+|bc?\.\w+|b|cbn?z|tbn?z")

Instruction = tuple[str, tuple[str, ...]]  # Its mnemonic, and its operands as they are written


def read_code(text: str, names: Collection[str]) -> dict[str, Code]:
    """The facts of the functions of those names in an assembly file; {} where it is for another target."""
    effect_of = next((effect_of for pattern, effect_of in _TARGETS.items() if pattern.search(text)), None)
    bodies: dict[str, list[str]] = {}
    reading: list[str] | None = None
    for line in text.splitlines() if effect_of is not None else ():
        label = _LABEL.match(line)
        name = "" if label is None else label["name"]
        if name not in names:
            name = name.removeprefix("_")  # which macOS puts before names
        if name in names:
            reading = bodies.setdefault(name, [])
        elif _END.match(line):
            reading = None
        elif reading is not None:
            reading.append(line)
    return {name: _code_of(body, effect_of) for name, body in bodies.items() if effect_of is not None}


def _code_of(lines: Sequence[str], effect_of: "EffectOf") -> Code:
    """A function's facts; a loop is what stands between a label and the last jump back to it."""
    begins: dict[str, int] = {}
    ends: dict[int, int] = {}
    effects: list[Work] = []
    digest = hashlib.sha256()
    for line in lines:
        if label := _LABEL.match(line):
            begins[label["name"]] = len(effects)
        elif instruction := read_instruction(line):
            name, operands = instruction
            effects.append(effect_of(instruction))
            digest.update(_OWN_NUMBER.sub(r"\1_", f"{name} {', '.join(operands)}\n").encode())
            if _JUMP.fullmatch(name):
                ends |= {begins[operand]: len(effects) for operand in operands if operand in begins}
    innermost = [
        _work(effects[begin:end])
        for begin, end in ends.items()
        if not any((begin, end) != other and begin <= other[0] and other[1] <= end for other in ends.items())
    ]
    main_loop = max(innermost, key=lambda loop: (loop.arithmetic, loop.instructions), default=None)
    return Code(whole=_work(effects), main_loop=main_loop, fingerprint=digest.hexdigest())


def read_instruction(line: str) -> Instruction | None:
    """None for a directive, a comment and an empty line."""
    name, _, rest = _COMMENT.sub("", line).strip().replace("\t", " ").partition(" ")
    while name in _PREFIXES and rest:
        name, _, rest = rest.lstrip().partition(" ")
    return None if not name or name.startswith(".") else (name, tuple(split(rest)))


def _work(effects: Sequence[Work]) -> Work:
    summed = ("multiply_adds", "scalar_multiply_adds", "loads", "lane_moves", "spills")
    return Work(
        instructions=len(effects),
        registers=max((effect.registers for effect in effects), key=_REGISTERS.index, default=""),
        accumulators=frozenset[str]().union(*(effect.accumulators for effect in effects)),
        calls=tuple(dict.fromkeys(called for effect in effects for called in effect.calls)),
        **{name: sum(getattr(effect, name) for effect in effects) for name in summed},
    )


# --- instructions ---

# Kinds of vector registers, those of fewer bits first, after none; `q` and `z` (of SVE, of a length that the machine
# knows) are AArch64's, `tmm` are AMX's tiles.
_REGISTERS = ("", "q", "xmm", "ymm", "z", "zmm", "tmm")
A_POINTER = "a pointer"


EffectOf = Callable[[Instruction], Work]

_X86_REGISTER = re.compile(r"%(?P<kind>[xyzt]mm)\d+")
_X86_STACK = re.compile(r"(?:-?\d*\(%rsp\)|-\d+\(%rbp\))")
_X86_ADDS = re.compile(
    r"vfn?m(?:add|sub|addsub|subadd)(?:\d{3})?(?P<many>[ps])[sdh]|(?:v?pmadd|vpdp|vdpb|vdpph|tdp)\w+"
)
_X86_PRODUCT = re.compile(r"v?mul(?P<many>[ps])[sdh]|v?pmul(?:l[wdq]|u?dq)")
_X86_LANES = re.compile(r"v?p?(?:shuf|perm|unpck|insr|insert|extr|align|gather|scatter)\w*")


def effect_on_x86(instruction: Instruction) -> Work:
    """What an instruction of x86-64 does."""
    name, operands = instruction
    if name.startswith("call"):
        return Work(calls=(_called(operands),))
    kinds = [register["kind"] for operand in operands if (register := _X86_REGISTER.match(operand))]
    if not kinds:
        return Work()
    adds = _X86_ADDS.fullmatch(name)
    multiplies = adds or _X86_PRODUCT.fullmatch(name)
    is_scalar = multiplies is not None and multiplies["many"] == "s"
    memory = [operand for operand in operands if "(" in operand]
    return Work(
        registers=max(kinds, key=_REGISTERS.index),
        multiply_adds=int(multiplies is not None and not is_scalar),
        scalar_multiply_adds=int(is_scalar),
        accumulators=frozenset([operands[-1].partition(" ")[0]] if adds else []),
        loads=int(bool(memory) and "(" not in operands[-1]),
        lane_moves=int(_X86_LANES.fullmatch(name) is not None),
        spills=int(any(map(_X86_STACK.match, memory))),
    )


def _called(operands: tuple[str, ...]) -> str:
    target = operands[0] if operands else ""
    return A_POINTER if not target or target.startswith("*") else target.partition("@")[0].strip('"')


_ARM_VECTOR = re.compile(r"\{?\s*(?P<kind>[vz])\d+\.\d*[bhsdq](?!\w*\[)")
_ARM_WHOLE = re.compile(r"(?P<kind>[qz])\d+")
_ARM_SCALAR = re.compile(r"[hsd]\d+")
_ARM_LANE = re.compile(r"v\d+\.[bhsd]\[|\}\s*\[")
_ARM_STACK = re.compile(r"\[(?:sp|x29)(?:, #-?\d+(?:, mul vl)?)?\]!?")
_ARM_ADDS = re.compile(
    r"fml[as]l?2?|bfml[as]l[bt]|bfdot|[bf]f?mmla|(?:us|su|[su])dot|(?:us|[su])mmla|ml[as]|[su]ml[as]l(?:2|[bt])?|fmopa"
    r"|fn?m(?:add|sub)"
)
_ARM_PRODUCT = re.compile(r"fmulx?|fnmul|mul|[su]mull2?")
_ARM_LANES = re.compile(r"zip[12]|uzp[12]|trn[12]|ext|tbl|tbx|ins|rev\d\d|splice|compact")


def effect_on_aarch64(instruction: Instruction) -> Work:
    """What an instruction of AArch64 does."""
    name, operands = instruction
    if name in ("bl", "blr"):
        return Work(calls=(A_POINTER if name == "blr" else _called(operands),))
    whole = [found["kind"] for operand in operands if (found := _ARM_WHOLE.fullmatch(operand))]
    kinds = [*whole, *(found["kind"] for operand in operands if (found := _ARM_VECTOR.match(operand)))]
    moves_lanes = name in ("mov", "ld1") and any(_ARM_LANE.search(operand) for operand in operands)
    is_scalar = bool(operands) and _ARM_SCALAR.fullmatch(operands[0]) is not None
    if not (kinds or is_scalar or moves_lanes):
        return Work()
    adds = _ARM_ADDS.fullmatch(name) is not None
    multiplies = int(adds or _ARM_PRODUCT.fullmatch(name) is not None)
    on_stack = name.startswith(("ld", "st")) and any(_ARM_STACK.fullmatch(operand) for operand in operands)
    return Work(
        registers="z" if "z" in kinds else "q" if kinds else "",
        multiply_adds=0 if is_scalar else multiplies,
        scalar_multiply_adds=multiplies if is_scalar else 0,
        accumulators=frozenset([operands[0].partition(".")[0]] if adds else []),
        loads=(2 if name in ("ldp", "ldnp") else 1) if name.startswith("ld") else 0,
        lane_moves=int(moves_lanes or _ARM_LANES.fullmatch(name) is not None),
        spills=len(whole) if on_stack else 0,
    )


# What an assembly file is for, by its registers.
_TARGETS: Mapping[re.Pattern[str], EffectOf] = {
    re.compile(r"%(?:rsp|rbp|rsi|rdi|rax|eax|xmm0)\b"): effect_on_x86,
    re.compile(r"^\s+[a-z]\w*(?:\.\w+)?\s+[wx]\d+\b", re.MULTILINE): effect_on_aarch64,
}


# --- what differs ---

# Smaller differences are not worth a sentence.
_FEW_MOVES, _MANY_MOVES = 4, 16  # in a loop, and in all of a function
_APART = 1.25
_ON_STACK = "moves vector registers to or from the stack"


def code_changes(base: Code, head: Code, labels: Labels) -> list[str]:
    """What the instructions of two functions that are not the same tell; always at least one sentence."""
    sentences: list[str] = []

    def say(what: str, of_base: str, of_head: str, *, told: bool = True) -> None:
        if told and of_base != of_head:
            sentences.append(f"{what} {on(labels, of_base, of_head)}")

    def say_moves(what: str, of_base: int, of_head: int, least: int) -> None:
        told = max(of_base, of_head) >= least and _far_apart(of_base, of_head)
        say(what, f"{of_base:,} times", f"{of_head:,}", told=told)

    one, other, whole, other_whole = base.main_loop, head.main_loop, base.whole, head.whole
    if one is not None and other is not None:
        say("the innermost loop has", _multiply_adds(one), _multiply_adds(other))
        if one.arithmetic and other.arithmetic:
            uses = len(one.accumulators), len(other.accumulators)
            say("it uses", plural(uses[0], "accumulator register"), f"{uses[1]:,}", told=uses[0] != uses[1])
            loads = one.loads / one.arithmetic, other.loads / other.arithmetic
            say("it loads", f"{loads[0]:.2g} registers a multiply-add", f"{loads[1]:.2g}", told=_far_apart(*loads))
        say_moves("it moves single elements of vectors", one.lane_moves, other.lane_moves, _FEW_MOVES)
        say_moves(f"it {_ON_STACK}", one.spills, other.spills, _FEW_MOVES)
    elif one is not None or other is not None:
        sentences.append(f"only the code on {labels[0] if one is not None else labels[1]} has a loop")
    if not (whole.multiply_adds or other_whole.multiply_adds):
        say("the code uses at most", *(f"{work.registers or 'no vector'} registers" for work in (whole, other_whole)))
    if not any(_ON_STACK in sentence for sentence in sentences):
        say_moves(f"the code {_ON_STACK}", whole.spills, other_whole.spills, _MANY_MOVES)
    lengths = whole.instructions, other_whole.instructions
    say("the code has", plural(lengths[0], "instruction"), f"{lengths[1]:,}", told=_far_apart(*lengths))
    say("the code calls", *(enumerated(work.calls) or "nothing" for work in (whole, other_whole)))
    return sentences or ["the final code has the same multiply-adds, in other instructions"]


def _multiply_adds(loop: Work) -> str:
    """`64 multiply-adds in zmm registers`, `3 multiply-adds of single numbers`."""
    parts = []
    if loop.multiply_adds:
        parts.append(f"{plural(loop.multiply_adds, 'multiply-add')} in {loop.registers} registers")
    if loop.scalar_multiply_adds:
        parts.append(f"{plural(loop.scalar_multiply_adds, 'multiply-add')} of single numbers")
    return enumerated(parts) or "no multiply-add"


def _far_apart(base: float, head: float) -> bool:
    return base != head and max(base, head) >= _APART * min(base, head)
