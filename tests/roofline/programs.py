"""Programs in MLIR, and their work."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from harness.roofline.graph import Work, work_of


def function(arguments: str, results: str, *lines: str) -> str:
    """A module with one function `main`."""
    body = "\n".join(f"    {line}" for line in lines)
    return f"module {{\n  util.func public @main({arguments}) -> ({results}) {{\n{body}\n  }}\n}}\n"


def work(text: str, *shapes: Sequence[int], entry: str = "main") -> Work:
    """Of one call.

    Args:
        shapes: Of the arguments, where their types do not say them.
    """
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        return work_of(ir.Module.parse(text), entry, shapes)


def zeros(name: str, kind: str) -> tuple[str, ...]:
    """Lines that fill a tensor of that static type, as contractions begin with."""
    element = kind.rstrip(">").rpartition("x")[2]
    return (
        f"%{name}_zero = arith.constant 0.0 : {element}",
        f"%{name}_empty = tensor.empty() : {kind}",
        f"%{name} = linalg.fill ins(%{name}_zero : {element}) outs(%{name}_empty : {kind}) -> {kind}",
    )


def elementwise(name: str, operation: str, source: str, kind: str, *, loops: int = 1) -> str:
    """A line that applies `operation`, in terms of %x, to each element."""
    identity = (
        f"affine_map<({', '.join(f'd{n}' for n in range(loops))}) -> ({', '.join(f'd{n}' for n in range(loops))})>"
    )
    kinds = ", ".join(['"parallel"'] * loops)
    element = kind.rstrip(">").rpartition("x")[2]
    return (
        f"%{name}_empty = tensor.empty() : {kind}\n    "
        f"%{name} = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{kinds}]}} "
        f"ins({source} : {kind}) outs(%{name}_empty : {kind}) {{\n"
        f"    ^bb0(%x: {element}, %out: {element}):\n      %y = {operation} : {element}\n"
        f"      linalg.yield %y : {element}\n    }} -> {kind}"
    )
