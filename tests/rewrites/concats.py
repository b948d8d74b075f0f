"""Programs of concatenations in a short notation, and an interpreter for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from iree.compiler import ir

from tests.rewrites.tools import Array

Shape = tuple[int, ...]


def program(text: str, element: str = "f32") -> str:
    """A module of one function, from one line an operation; types follow from those of the arguments.

    main p:2x3 q:1x3         arguments: tensors by their shapes, or values of any other type
    a = concat 0 p q         tensor.concat along dimension 0
    e = empty 3x3
    s = insert p e 0,0       tensor.insert_slice of p into e at these offsets
    t = extract s 1,0 2x3    tensor.extract_slice at these offsets, of this shape
    y = pad p zero 1,0 1,0   tensor.pad by a scalar: so many below and above, in each dimension
    c = constant 0.0         a scalar; zero and one need no line
    f = fill c e
    r = mulf p p             any operation of arith on two tensors
    | cf.br ^later           MLIR as it is
    return r s

    """
    (_, *arguments), *body, (_, *results) = (line.split() for line in text.strip().splitlines())
    shapes: dict[str, Shape] = {}
    parameters = []
    for argument in arguments:
        name, kind = argument.split(":")
        if kind[0].isdigit():
            shapes[name] = _shape(kind)
            kind = _type(shapes[name], element)
        parameters.append(f"%{name}: {kind}")
    point = "" if element[0] == "i" else ".0"
    used = {word for words in body for word in words}
    scalars = {"zero": f"0{point}", "one": f"1{point}"}
    lines = [f"%{name} = arith.constant {value} : {element}" for name, value in scalars.items() if name in used]
    lines += [
        " ".join(words[1:]) if words[0] == "|" else _line(words[0], words[2], words[3:], shapes, element)
        for words in body
    ]
    kinds = ", ".join(_type(shapes[result], element) for result in results)
    lines.append(f"return {', '.join(f'%{result}' for result in results)} : {kinds}" if results else "return")
    indented = "\n".join(f"  {line}" for line in lines)
    return f"func.func @main({', '.join(parameters)}) -> ({kinds}) {{\n{indented}\n}}"


def _line(result: str, operation: str, words: Sequence[str], shapes: dict[str, Shape], element: str) -> str:
    """One operation in MLIR; its result's shape goes into `shapes`."""

    def of(name: str) -> str:
        return f"%{name} : {kind(name)}"

    def kind(name: str) -> str:
        return _type(shapes[name], element)

    first = words[0]
    match operation:
        case "concat":
            axis, parts = int(first), words[1:]
            shape = list(shapes[parts[0]])
            shape[axis] = sum(shapes[part][axis] for part in parts)
            shapes[result] = tuple(shape)
            names, kinds = ", ".join(f"%{part}" for part in parts), ", ".join(map(kind, parts))
            return f"%{result} = tensor.concat dim({axis}) {names} : ({kinds}) -> {kind(result)}"
        case "empty":
            shapes[result] = _shape(first)
            return f"%{result} = tensor.empty() : {kind(result)}"
        case "insert":
            shapes[result] = shapes[words[1]]
            where = _slice(words[2], shapes[first])
            return (
                f"%{result} = tensor.insert_slice %{first} into %{words[1]}{where} : {kind(first)} into {kind(result)}"
            )
        case "extract":
            shapes[result] = _shape(words[2])
            where = _slice(words[1], shapes[result])
            return f"%{result} = tensor.extract_slice %{first}{where} : {kind(first)} to {kind(result)}"
        case "pad":
            low, high = ([int(size) for size in word.split(",")] for word in words[2:4])
            shapes[result] = tuple(map(sum, zip(low, shapes[first], high, strict=True)))
            nofold = " nofold" if words[4:] else ""
            indices = ", ".join(f"%i{number}: index" for number in range(len(low)))
            return (
                f"%{result} = tensor.pad %{first}{nofold} low{low} high{high} {{\n  ^bb0({indices}):\n"
                f"    tensor.yield %{words[1]} : {element}\n  }} : {kind(first)} to {kind(result)}"
            )
        case "constant":
            return f"%{result} = arith.constant {first} : {element}"
        case "fill":
            shapes[result] = shapes[words[1]]
            whole = kind(result)
            return f"%{result} = linalg.fill ins(%{first} : {element}) outs({of(words[1])}) -> {whole}"
        case _:
            shapes[result] = shapes[first]
            return f"%{result} = arith.{operation} %{first}, {of(words[1])}"


def _shape(text: str) -> Shape:
    return tuple(int(size) for size in text.split("x"))


def _type(shape: Shape, element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def _slice(offsets: str, shape: Shape) -> str:
    return f"[{offsets}] {list(shape)} {[1] * len(shape)}"


# ------------------------------------------------------------------------------------------------------- an interpreter


def interpret(text: str, arguments: Sequence[Array]) -> list[Array]:
    """The results of a module's only function; what was never written is NaN."""
    with ir.Context():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        values: dict[ir.Value, Any] = dict(zip(block.arguments, arguments, strict=True))
        for view in block.operations:
            operation = view.operation
            operands = [values[operand] for operand in operation.operands]
            if operation.name == "func.return":
                return operands
            values[operation.result] = _MEANINGS[operation.name](operation, *operands)
    raise ValueError("the function does not return")


def _window(operation: ir.Operation) -> tuple[slice, ...]:
    offsets, sizes = operation.attributes["static_offsets"], operation.attributes["static_sizes"]
    return tuple(slice(offset, offset + size) for offset, size in zip(offsets, sizes, strict=True))


def _insert(operation: ir.Operation, part: Array, base: Array) -> Array:
    whole: Array = base.copy()
    whole[_window(operation)] = part
    return whole


def _pad(operation: ir.Operation, inner: Array) -> Array:
    low, high = operation.attributes["static_low"], operation.attributes["static_high"]
    value = operation.regions[0].blocks[0].operations[0].operands[0].owner.attributes["value"].value
    padded: Array = np.pad(inner, list(zip(low, high, strict=True)), constant_values=value)
    return padded


_MEANINGS: dict[str, Callable[..., Any]] = {
    "arith.constant": lambda operation: np.float32(operation.attributes["value"].value),
    "arith.addf": lambda _, left, right: left + right,
    "arith.mulf": lambda _, left, right: left * right,
    "linalg.fill": lambda _, value, base: np.full_like(base, value),
    "tensor.concat": lambda operation, *parts: np.concatenate(parts, operation.attributes["dim"].value),
    "tensor.empty": lambda operation: np.full(operation.result.type.shape, np.nan, np.float32),
    "tensor.extract_slice": lambda operation, whole: whole[_window(operation)],
    "tensor.insert_slice": _insert,
    "tensor.pad": _pad,
}
