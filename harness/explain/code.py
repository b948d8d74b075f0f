"""A program -> the final code of its dispatches as facts -> what differs on two sides, in sentences.

Compiling once more with `--iree-hal-dump-executable-intermediates-to` writes the assembly of each executable: its
instructions, and jumps that tell its loops. Microkernels that stay functions of their own are calls here.

What is said is what an engineer looks for in the assembly of a kernel: whether it computes on vectors, how many
multiply-adds can be under way at once, how much it loads for each of them, what it moves between registers, its spills.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.compare.samplers import Module
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
from harness.explain.isolated_timing import dump
from harness.explain.phrases import Labels, enumerated, on
from harness.process import Limits
from harness.text import plural

_FOLDER = "intermediates"


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

    loops: int  # How many it has
    depth: int  # Of its deepest loop; 0 without loops
    whole: Work  # All of it
    inner: tuple[Work, ...]  # Its innermost loops, in the order of the code
    fingerprint: str  # Equal where two have the same instructions

    @property
    def main_loop(self) -> Work | None:
        """The innermost loop with the most multiply-adds, of those the deepest, else the longest; None: no loop."""
        return max(self.inner, key=lambda loop: (loop.arithmetic, loop.depth, loop.instructions), default=None)


def final_code(module: Module, names: Collection[str], folder: Path, limits: Limits) -> dict[str, Code]:
    """Compile a module's program once more, and read the final code of dispatches."""
    (folder / _FOLDER).mkdir(parents=True)
    dump(module, (f"--iree-hal-dump-executable-intermediates-to={_FOLDER}",), folder, limits)
    found: dict[str, Code] = {}
    for file in sorted((folder / _FOLDER).rglob("*.s"), key=lambda file: (file.stat().st_mtime_ns, file.name)):
        found |= read_code(file.read_text(encoding="utf-8", errors="replace"), names)
    return found


def read_code(text: str, names: Collection[str]) -> dict[str, Code]:
    """The facts of the functions of those names in an assembly file; {} where it is for another target."""
    architecture = architecture_of(text)
    if architecture is None:
        return {}
    return {name: _code_of(function, architecture) for name, function in read_functions(text, names).items()}


def _code_of(function: Function, architecture: Architecture) -> Code:
    framed = any(keeps_frame(instruction) for block in function.blocks for instruction in block)
    effects = [
        [effect_of(instruction, architecture, framed=framed) for instruction in block] for block in function.blocks
    ]
    loops = find_loops(function.successors)
    innermost = sorted((loop for loop in loops if loop.innermost), key=lambda loop: min(loop.blocks))
    return Code(
        loops=len(loops),
        depth=max((loop.depth for loop in loops), default=0),
        whole=_work(effects),
        inner=tuple(_work([effects[block] for block in sorted(loop.blocks)], loop.depth) for loop in innermost),
        fingerprint=function.fingerprint,
    )


def _work(blocks: Sequence[Sequence[Effect]], depth: int = 0) -> Work:
    effects = [effect for block in blocks for effect in block]
    summed = ("multiply_adds", "scalar_multiply_adds", "loads", "lane_moves", "spills")
    return Work(
        depth=depth,
        instructions=len(effects),
        registers=max((effect.registers for effect in effects), key=REGISTERS.index, default=""),
        accumulators=len({effect.accumulator for effect in effects} - {""}),
        calls=tuple(dict.fromkeys(effect.calls for effect in effects if effect.calls)),
        **{name: sum(getattr(effect, name) for effect in effects) for name in summed},
    )


# --- What differs ---

# Smaller differences are not worth a sentence.
_FEW_MOVES, _MANY_MOVES = 4, 16  # in a loop, and in all of a function
_APART = 1.25
_ON_STACK = "moves vector registers to or from the stack"


def code_changes(base: Code, head: Code, labels: Labels) -> list[str]:
    """What the instructions of two functions that are not the same tell; always at least one sentence."""
    sentences: list[str] = []

    def say(what: str, of_base: object, of_head: object, *, told: bool = True) -> None:
        if told and of_base != of_head:
            sentences.append(f"{what} {on(labels, str(of_base), str(of_head))}")

    def say_moves(what: str, of_base: int, of_head: int, least: int) -> None:
        told = max(of_base, of_head) >= least and _far_apart(of_base, of_head)
        say(what, f"{of_base:,} times", f"{of_head:,}", told=told)

    one, other = base.main_loop, head.main_loop
    if one is not None and other is not None:
        say("the innermost loop has", _multiply_adds(one), _multiply_adds(other))
        if one.arithmetic and other.arithmetic:
            say(
                "it uses",
                plural(one.accumulators, "accumulator register"),
                f"{other.accumulators:,}",
                told=one.accumulators != other.accumulators,
            )
            loads = one.loads / one.arithmetic, other.loads / other.arithmetic
            say("it loads", f"{loads[0]:.2g} registers a multiply-add", f"{loads[1]:.2g}", told=_far_apart(*loads))
        say_moves("it moves single elements of vectors", one.lane_moves, other.lane_moves, _FEW_MOVES)
        say_moves(f"it {_ON_STACK}", one.spills, other.spills, _FEW_MOVES)
    elif one is not None or other is not None:
        sentences.append(f"only the code on {labels[0] if one is not None else labels[1]} has a loop")
    whole, other_whole = base.whole, head.whole
    kinds = [f"{work.registers or 'no vector'} registers" for work in (whole, other_whole)]
    say("the code computes in", *kinds, told=not (whole.multiply_adds or other_whole.multiply_adds))
    if not any(_ON_STACK in sentence for sentence in sentences):
        say_moves(f"the code {_ON_STACK}", whole.spills, other_whole.spills, _MANY_MOVES)
    say("the code has", _loops(base), _loops(head))
    lengths = whole.instructions, other_whole.instructions
    say("the code has", plural(lengths[0], "instruction"), f"{lengths[1]:,}", told=_far_apart(*lengths))
    say("the code calls", *(enumerated(work.calls) or "nothing" for work in (whole, other_whole)))
    return sentences or ["the final code has the same loops and multiply-adds, in other instructions"]


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
