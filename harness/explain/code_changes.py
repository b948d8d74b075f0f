"""The final code of a dispatch on both sides -> what differs, in sentences, the innermost loop first; pure.

What is said is what an engineer looks for in the assembly of a kernel: whether it computes on vectors, how many
multiply-adds can be under way at once, how much it loads for each of them, what it moves between registers, its spills.
"""

from __future__ import annotations

from harness.explain.code import Code, InnerLoop
from harness.explain.phrases import Labels, bytes_text, enumerated, on
from harness.text import plural

# Smaller differences are not worth a sentence.
_FEW_MOVES, _MANY_MOVES = 4, 16  # in a loop, and in all of a function
_APART = 1.25


def code_changes(base: Code, head: Code, labels: Labels) -> list[str]:
    """What the instructions of two functions that are not the same tell; always at least one sentence."""
    loops = (base.main_loop, head.main_loop)
    sentences: list[str] = []
    if loops[0] is not None and loops[1] is not None:
        sentences += _of_main_loops(loops[0], loops[1], labels)
    elif loops[0] is not None or loops[1] is not None:
        sentences.append(f"only the code on {labels[0] if loops[0] is not None else labels[1]} has a loop")
    if base.registers != head.registers and not (base.multiply_adds or head.multiply_adds):
        registers = [code.registers or "no vector" for code in (base, head)]
        sentences.append(f"the code computes in {registers[0]} registers on {labels[0]}, {registers[1]} on {labels[1]}")
    spills = (base.spills, head.spills)
    if not any("stack" in sentence for sentence in sentences) and max(spills) >= _MANY_MOVES and _far_apart(*spills):
        moves = on(labels, f"{spills[0]:,} times", f"{spills[1]:,}")
        sentences.append(f"the code moves vector registers to or from the stack {moves}")
    if (base.loops, base.depth) != (head.loops, head.depth):
        sentences.append(f"the code has {on(labels, _loops(base), _loops(head))}")
    if base.size_bytes and head.size_bytes and _far_apart(base.size_bytes, head.size_bytes):
        sentences.append(f"the code takes {on(labels, bytes_text(base.size_bytes), bytes_text(head.size_bytes))}")
    if base.calls != head.calls:
        sentences.append(f"the code calls {on(labels, _calls(base), _calls(head))}")
    return sentences or ["the final code has the same loops and multiply-adds, in other instructions"]


def _of_main_loops(base: InnerLoop, head: InnerLoop, labels: Labels) -> list[str]:
    sentences: list[str] = []
    if (kinds := (_multiply_adds(base), _multiply_adds(head)))[0] != kinds[1]:
        sentences.append(f"the innermost loop has {on(labels, *kinds)}")
    if base.accumulators != head.accumulators and base.arithmetic and head.arithmetic:
        accumulators = on(labels, plural(base.accumulators, "accumulator"), f"{head.accumulators:,}")
        sentences.append(f"its multiply-adds go to {accumulators}")
    if base.arithmetic and head.arithmetic:
        loads = (base.loads / base.arithmetic, head.loads / head.arithmetic)
        if _far_apart(*loads):
            sentences.append(
                f"it loads {loads[0]:.2g} registers a multiply-add on {labels[0]}, {loads[1]:.2g} on {labels[1]}"
            )
    for what, numbers in (
        ("moves single elements of vectors", (base.lane_moves, head.lane_moves)),
        ("moves vector registers to or from the stack", (base.spills, head.spills)),
    ):
        if max(numbers) >= _FEW_MOVES and _far_apart(*numbers):
            sentences.append(f"it {what} {on(labels, f'{numbers[0]:,} times', f'{numbers[1]:,}')}")
    return sentences


def _multiply_adds(loop: InnerLoop) -> str:
    """`64 multiply-adds in zmm registers`, `3 multiply-adds of single numbers`."""
    parts = []
    if loop.multiply_adds:
        parts.append(f"{plural(loop.multiply_adds, 'multiply-add')} in {loop.registers} registers")
    if loop.scalar_multiply_adds:
        parts.append(f"{plural(loop.scalar_multiply_adds, 'multiply-add')} of single numbers")
    return enumerated(parts) or "no multiply-add"


def _loops(code: Code) -> str:
    return f"{plural(code.loops, 'loop')}, {code.depth:,} deep" if code.loops else "no loop"


def _calls(code: Code) -> str:
    return enumerated(code.calls) or "nothing"


def _far_apart(base: float, head: float) -> bool:
    return base != head and max(base, head) >= _APART * min(base, head)
