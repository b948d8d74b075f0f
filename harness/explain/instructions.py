"""What one instruction does, as far as it tells how fast a kernel can be.

A multiplication counts as a multiply-add where it is none: on a target without fused ones, the addition is an
instruction of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.explain.assembly import Architecture, Instruction

# Kinds of vector registers, those of fewer bits first; `q` and `z` (of SVE, of a length that the machine knows) are
# AArch64's, `tmm` are AMX's tiles.
REGISTERS = ("q", "xmm", "ymm", "z", "zmm", "tmm")
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
