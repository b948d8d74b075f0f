"""A program -> the final code of its dispatches as facts -> what differs on two sides, in sentences.

Compiling once more with `--iree-hal-dump-executable-intermediates-to` writes the assembly of each executable and its
object file. The assembly has the instructions, and jumps that tell its loops; how many bytes a function takes, only the
object file says. Microkernels that stay functions of their own are calls here.

What is said is what an engineer looks for in the assembly of a kernel: whether it computes on vectors, how many
multiply-adds can be under way at once, how much it loads for each of them, what it moves between registers, its spills.
"""

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.explain.assembly import (
    REGISTERS,
    Architecture,
    Effect,
    Function,
    architecture_of,
    effect_of,
    find_loops,
    keeps_frame,
    read_functions,
)
from harness.explain.phrases import Labels, bytes_text, enumerated, on
from harness.ir.dump import MODEL_FILE
from harness.ir.tools import failure
from harness.process import Limits
from harness.text import plural
from harness.toolchain import Toolchain
from harness.toolchain.tools import error_lines, run_tool

_FOLDER = "intermediates"
_OUTPUT_FILE = "output.vmfb"


@dataclass(frozen=True, kw_only=True)
class Work:
    """What some code does; counts are of its instructions, not of how often they run."""

    depth: int = 0  # How many loops it is in, itself among them where it is one
    instructions: int = 0
    registers: str = ""  # The widest vector registers that it computes with; "" where it has none
    multiply_adds: int = 0  # Of vectors. A multiplication counts, since some targets add apart from it.
    scalar_multiply_adds: int = 0  # Of single numbers
    accumulators: int = 0  # Registers that its multiply-adds add to: how many of them can be under way at once
    # Registers of floating numbers or vectors that are read from memory, also as a multiply-add's operand
    loads: int = 0
    lane_moves: int = 0  # Shuffles, inserts, extracts and gathers of vectors' elements
    # Moves of vector registers to and from fixed places on the stack, which may be a small buffer's too
    spills: int = 0
    calls: tuple[str, ...] = ()  # Functions that it calls, each once

    @property
    def arithmetic(self) -> int:
        """All its multiply-adds."""
        return self.multiply_adds + self.scalar_multiply_adds


@dataclass(frozen=True, kw_only=True)
class Code:
    """The final code of one dispatch."""

    size_bytes: int | None  # None where no object file says it
    loops: int  # How many it has
    depth: int  # Of its deepest loop; 0 without loops
    whole: Work  # All of it
    inner: tuple[Work, ...]  # Its innermost loops, in the order of the code
    fingerprint: str  # Equal where two have the same instructions

    @property
    def main_loop(self) -> Work | None:
        """The innermost loop with the most multiply-adds, of those the deepest, else the longest; None: no loop."""
        return max(self.inner, key=lambda loop: (loop.arithmetic, loop.depth, loop.instructions), default=None)


def final_code(
    flags: Sequence[str],
    model: Path,
    names: Collection[str],
    *,
    toolchain: Toolchain,
    folder: Path,
    limits: Limits,
    files: Sequence[Path] = (),
) -> dict[str, Code]:
    """Compile a program once more, and read the final code of dispatches."""
    (folder / MODEL_FILE).symlink_to(model.resolve())
    for file in files:
        (folder / file.name).symlink_to(file.resolve())
    (folder / _FOLDER).mkdir()
    command = [str(toolchain.iree_compile), MODEL_FILE, "-o", _OUTPUT_FILE, *flags]
    command.append(f"--iree-hal-dump-executable-intermediates-to={_FOLDER}")
    finished = run_tool("ir", "iree-compile", command, cwd=folder, limits=limits)
    if not finished.ok or error_lines(finished.stderr):
        remedy = "make the case compile"
        raise failure("iree-compile", finished, limits, where=", on its way to the final code", remedy=remedy)
    found: dict[str, Code] = {}
    for file in sorted((folder / _FOLDER).rglob("*.s"), key=lambda file: (file.stat().st_mtime_ns, file.name)):
        object_file = file.with_suffix(".o")
        sizes = function_sizes(object_file.read_bytes()) if object_file.is_file() else {}
        found |= read_code(file.read_text(encoding="utf-8", errors="replace"), names, sizes)
    return found


def read_code(text: str, names: Collection[str], sizes: Mapping[str, int]) -> dict[str, Code]:
    """The facts of the functions of those names in an assembly file; {} where it is for another target."""
    architecture = architecture_of(text)
    if architecture is None:
        return {}
    functions = read_functions(text, names)
    return {name: _code_of(function, architecture, sizes.get(name)) for name, function in functions.items()}


def _code_of(function: Function, architecture: Architecture, size_bytes: int | None) -> Code:
    framed = any(map(keeps_frame, function.instructions))
    effects = [
        [effect_of(instruction, architecture, framed=framed) for instruction in block] for block in function.blocks
    ]
    loops = find_loops(function.successors)
    innermost = sorted((loop for loop in loops if loop.innermost), key=lambda loop: min(loop.blocks))
    return Code(
        size_bytes=size_bytes,
        loops=len(loops),
        depth=max((loop.depth for loop in loops), default=0),
        whole=_work(effects),
        inner=tuple(_work([effects[block] for block in sorted(loop.blocks)], loop.depth) for loop in innermost),
        fingerprint=function.fingerprint,
    )


def _work(blocks: Sequence[Sequence[Effect]], depth: int = 0) -> Work:
    effects = [effect for block in blocks for effect in block]
    return Work(
        depth=depth,
        instructions=len(effects),
        registers=max((effect.registers for effect in effects), key=REGISTERS.index, default=""),
        multiply_adds=sum(effect.multiply_adds for effect in effects),
        scalar_multiply_adds=sum(effect.scalar_multiply_adds for effect in effects),
        accumulators=len({effect.accumulator for effect in effects} - {""}),
        loads=sum(effect.loads for effect in effects),
        lane_moves=sum(effect.lane_moves for effect in effects),
        spills=sum(effect.spills for effect in effects),
        calls=tuple(dict.fromkeys(effect.calls for effect in effects if effect.calls)),
    )


# --- bytes of functions, by an object file's table of symbols ---

_ELF_64_LITTLE = b"\x7fELF\x02\x01"
_HEADER = struct.Struct("<40xQ10xHHH")  # of the file: where sections are described, their entries' size and number
_SECTION = struct.Struct("<4xI16xQQI12xQ")  # type, place, bytes, linked section, bytes of an entry
_SYMBOL = struct.Struct("<IBBHQQ")  # name, kind, visibility, section, value, bytes
_SYMBOL_TABLE, _FUNCTION = 2, 2


def function_sizes(data: bytes) -> dict[str, int]:
    """Bytes of each function of a 64-bit ELF object file; {} of another kind of file."""
    if not data.startswith(_ELF_64_LITTLE):
        return {}
    try:
        return dict(_functions(data))
    except (struct.error, IndexError, ValueError):
        return {}


def _functions(data: bytes) -> list[tuple[str, int]]:
    place, entry, number, _ = _HEADER.unpack_from(data)
    sections = [_SECTION.unpack_from(data, place + entry * index) for index in range(number)]
    found = []
    for kind, begin, length, link, step in sections:
        if kind != _SYMBOL_TABLE or not step:
            continue
        names = sections[link][1]
        for at in range(begin, begin + length, step):
            name, info, _, _, _, size = _SYMBOL.unpack_from(data, at)
            if info & 0xF == _FUNCTION and size:
                text = data[names + name : data.index(b"\0", names + name)]
                found.append((text.decode(errors="replace"), size))
    return found


# --- What differs ---

# Smaller differences are not worth a sentence.
_FEW_MOVES, _MANY_MOVES = 4, 16  # in a loop, and in all of a function
_APART = 1.25
_ON_STACK = "moves vector registers to or from the stack"


def code_changes(base: Code, head: Code, labels: Labels) -> list[str]:
    """What the instructions of two functions that are not the same tell; always at least one sentence."""
    of_base, of_head = base.whole, head.whole
    loops = (base.main_loop, head.main_loop)
    sentences: list[str] = []
    if loops[0] is not None and loops[1] is not None:
        sentences += _of_main_loops(loops[0], loops[1], labels)
    elif loops != (None, None):
        sentences.append(f"only the code on {labels[0] if loops[0] is not None else labels[1]} has a loop")
    if of_base.registers != of_head.registers and not (of_base.multiply_adds or of_head.multiply_adds):
        kinds = on(labels, f"{of_base.registers or 'no vector'} registers", of_head.registers or "no vector registers")
        sentences.append(f"the code computes in {kinds}")
    if not any(_ON_STACK in sentence for sentence in sentences):
        sentences += _moves(f"the code {_ON_STACK}", of_base.spills, of_head.spills, _MANY_MOVES, labels)
    if (base.loops, base.depth) != (head.loops, head.depth):
        sentences.append(f"the code has {on(labels, _loops(base), _loops(head))}")
    if base.size_bytes and head.size_bytes and _far_apart(base.size_bytes, head.size_bytes):
        sentences.append(f"the code takes {on(labels, bytes_text(base.size_bytes), bytes_text(head.size_bytes))}")
    if of_base.calls != of_head.calls:
        calls = on(labels, enumerated(of_base.calls) or "nothing", enumerated(of_head.calls) or "nothing")
        sentences.append(f"the code calls {calls}")
    return sentences or ["the final code has the same loops and multiply-adds, in other instructions"]


def _of_main_loops(base: Work, head: Work, labels: Labels) -> list[str]:
    sentences: list[str] = []
    if (kinds := (_multiply_adds(base), _multiply_adds(head)))[0] != kinds[1]:
        sentences.append(f"the innermost loop has {on(labels, *kinds)}")
    if base.arithmetic and head.arithmetic:
        if base.accumulators != head.accumulators:
            registers = on(labels, plural(base.accumulators, "accumulator register"), f"{head.accumulators:,}")
            sentences.append(f"it uses {registers}")
        loads = (base.loads / base.arithmetic, head.loads / head.arithmetic)
        if _far_apart(*loads):
            sentences.append(f"it loads {on(labels, f'{loads[0]:.2g} registers a multiply-add', f'{loads[1]:.2g}')}")
    sentences += _moves("it moves single elements of vectors", base.lane_moves, head.lane_moves, _FEW_MOVES, labels)
    return sentences + _moves(f"it {_ON_STACK}", base.spills, head.spills, _FEW_MOVES, labels)


def _moves(what: str, base: int, head: int, least: int, labels: Labels) -> list[str]:
    told = max(base, head) >= least and _far_apart(base, head)
    return [f"{what} {on(labels, f'{base:,} times', f'{head:,}')}"] if told else []


def _multiply_adds(loop: Work) -> str:
    """`64 multiply-adds in zmm registers`, `3 multiply-adds of single numbers`."""
    parts = []
    if loop.multiply_adds:
        parts.append(f"{plural(loop.multiply_adds, 'multiply-add')} in {loop.registers} registers")
    if loop.scalar_multiply_adds:
        parts.append(f"{plural(loop.scalar_multiply_adds, 'multiply-add')} of single numbers")
    return enumerated(parts) or "no multiply-add"


def _loops(code: Code) -> str:
    return f"{plural(code.loops, 'loop')}, {code.depth:,} deep" if code.loops else "no loop"


def _far_apart(base: float, head: float) -> bool:
    return base != head and max(base, head) >= _APART * min(base, head)
