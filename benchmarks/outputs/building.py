"""Functions on tensors as MLIR text, put together step by step, with their arguments' values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Made = list["Value"]

_HELD = {"f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64, "i1": np.bool_}


def held_as(values: Array, kind: str) -> Array:
    """Values in the type that holds an element type; bf16 is held as f32 values that it has."""
    if kind == "bf16":
        bits = np.asarray(values, dtype=np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.asarray(values).astype(_HELD.get(kind, kind.replace("i", "int")))


@dataclass(frozen=True, kw_only=True)
class Value:
    """A tensor of the function."""

    name: str
    shape: tuple[int, ...]
    kind: str


class Function:
    """A function whose body grows with each call.

    Args:
        seed: Of the values of its arguments, unless they are given.
        dynamic: Sizes that the program is not to know: each must be that of an argument.
    """

    def __init__(self, name: str, *, seed: int = 0, dynamic: Sequence[int] = ()) -> None:
        self.name = name
        self.rng = np.random.default_rng(seed)
        self.arguments: list[tuple[Value, Array]] = []
        self.results: list[Value] = []
        self.lines: list[str] = []
        self.dynamic = dict.fromkeys(dynamic, "")
        self._count = 0

    def new(self, prefix: str = "v") -> str:
        """A name that no other value has."""
        self._count += 1
        return f"%{prefix}{self._count}"

    def type(self, value: Value) -> str:
        """A tensor's type."""
        sizes = "".join("?x" if size in self.dynamic else f"{size}x" for size in value.shape)
        return f"tensor<{sizes}{value.kind}>"

    def add(self, line: str) -> None:
        """One more line of the body."""
        self.lines.append(f"  {line}")

    def made(self, shape: Sequence[int], kind: str, text: str) -> Value:
        """The tensor that an operation gives; `{type}` in its text is its own type."""
        value = Value(name=self.new(), shape=tuple(int(size) for size in shape), kind=kind)
        self.add(f"{value.name} = {text.replace('{type}', self.type(value))}")
        return value

    def argument(self, values: Array | Sequence[int], kind: str = "f32", scale: float = 1.0) -> Value:
        """An argument with these values, or of this shape with random ones: normal, or whole over the type's range."""
        if not isinstance(values, np.ndarray):
            shape = tuple(values)
            if kind.startswith("i"):
                reach = min(100 * scale, 2.0 ** (int(kind[1:]) - 1))
                values = self.rng.integers(int(-reach), int(reach), shape)
            else:
                values = self.rng.standard_normal(shape) * scale
        value = Value(name=f"%x{len(self.arguments)}", shape=values.shape, kind=kind)
        self.arguments.append((value, held_as(values, kind)))
        for axis, size in enumerate(value.shape):
            if self.dynamic.get(size) == "":
                at, self.dynamic[size] = self.new("c"), self.new("d")
                self.add(f"{at} = arith.constant {axis} : index")
                self.add(f"{self.dynamic[size]} = tensor.dim {value.name}, {at} : {self.type(value)}")
        return value

    def scalar(self, number: float, kind: str) -> str:
        """A constant's name."""
        name = self.new("k")
        text = str(int(number)) if kind.startswith("i") else f"{float(number)!r}"
        if text in ("inf", "-inf"):
            bits = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}[kind]
            width = {"f16": 4, "bf16": 4, "f32": 8, "f64": 16}[kind]
            text = f"0x{bits + (1 << (4 * width - 1)) * (number < 0):0{width}X}"
        elif "e" in text and "." not in text:
            text = text.replace("e", ".0e")
        self.add(f"{name} = arith.constant {text} : {kind}")
        return name

    def empty(self, shape: Sequence[int], kind: str) -> Value:
        """A tensor without values."""
        sizes = ", ".join(self.dynamic[size] for size in shape if size in self.dynamic)
        return self.made(shape, kind, f"tensor.empty({sizes}) : {{type}}")

    def filled(self, shape: Sequence[int], kind: str = "f32", number: float = 0.0) -> Value:
        """A tensor of one number."""
        scalar, empty = self.scalar(number, kind), self.empty(shape, kind)
        return self.made(shape, kind, f"linalg.fill ins({scalar} : {kind}) outs({empty.name} : {{type}}) -> {{type}}")

    def named(self, operation: str, inputs: Sequence[Value], out: Value, attributes: str = "") -> Value:
        """A named operation of linalg."""
        names, types = ", ".join(v.name for v in inputs), ", ".join(self.type(v) for v in inputs)
        return self.made(
            out.shape,
            out.kind,
            f"{operation} {attributes} ins({names} : {types}) outs({out.name} : {{type}})"
            + (" -> {type}" if operation != "linalg.map" else ""),
        )

    def generic(self, inputs: Sequence[tuple[Value, str]], outs: Sequence[tuple[Value, str]], dims: str, body: str,
                reduced: str = "") -> Made:  # fmt: skip
        """linalg.generic. Its body knows %a0, %a1, ... and %o0, ..., and ends with `linalg.yield`.

        Args:
            inputs: Tensors with the results of their indexing maps: "d0, d1".
            dims: "d0, d1, d2".
            reduced: Those of them that are reduced.
        """
        names = [d.strip() for d in dims.split(",")]
        maps = ", ".join(f"affine_map<({dims}) -> ({indices})>" for _, indices in [*inputs, *outs])
        gone = [d.strip() for d in reduced.split(",")]
        kinds = ", ".join('"reduction"' if d in gone else '"parallel"' for d in names)
        arguments = ", ".join(
            [f"%a{at}: {value.kind}" for at, (value, _) in enumerate(inputs)]
            + [f"%o{at}: {value.kind}" for at, (value, _) in enumerate(outs)]
        )
        given = f"ins({', '.join(v.name for v, _ in inputs)} : {', '.join(self.type(v) for v, _ in inputs)})"
        given = given if inputs else ""
        types = ", ".join(self.type(v) for v, _ in outs)
        into = f"outs({', '.join(v.name for v, _ in outs)} : {types})"
        name = self.new()
        count = f":{len(outs)}" if len(outs) > 1 else ""
        self.add(f"{name}{count} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {given} {into} {{")
        self.add(f"^bb0({arguments}):")
        for line in body.strip().split("\n"):
            self.add(f"  {line.strip()}")
        self.add(f"}} -> {types if len(outs) == 1 else f'({types})'}")
        return [
            Value(name=f"{name}#{at}" if count else name, shape=value.shape, kind=value.kind)
            for at, (value, _) in enumerate(outs)
        ]

    def each(self, body: str, *inputs: Value | tuple[Value, str], kind: str = "") -> Value:
        """Element by element; the body ends with %r. An operand of fewer dimensions says which it has: (b, "d1")."""
        first = inputs[0] if isinstance(inputs[0], Value) else inputs[0][0]
        dims = ", ".join(f"d{d}" for d in range(len(first.shape)))
        mapped = [(given, dims) if isinstance(given, Value) else given for given in inputs]
        kind = kind or first.kind
        (result,) = self.generic(
            mapped, [(self.empty(first.shape, kind), dims)], dims, f"{body}\nlinalg.yield %r : {kind}"
        )
        return result

    def reduced(self, body: str, value: Value, axes: Sequence[int], start: float, kind: str = "") -> Value:
        """Reduced along axes; the body makes %r of %a0 and %o0."""
        kind = kind or value.kind
        dims = [f"d{d}" for d in range(len(value.shape))]
        kept = [d for d in range(len(value.shape)) if d not in axes]
        out = self.filled([value.shape[d] for d in kept], kind, start)
        every, left = ", ".join(dims), ", ".join(dims[d] for d in kept)
        gone = ", ".join(dims[d] for d in axes)
        (result,) = self.generic([(value, every)], [(out, left)], every, f"{body}\nlinalg.yield %r : {kind}", gone)
        return result

    def contracted(self, a: Value, b: Value, maps: str, shape: Sequence[int], kind: str = "", start: float = 0.0) -> Value:
        """A sum of products: maps are as einsum writes them, "mk,kn->mn"; wider kinds are extended first."""
        kind = kind or a.kind
        inputs, out = maps.split("->")
        left, right = inputs.split(",")
        letters = [*out, *sorted((set(left) | set(right)) - set(out))]
        of = {letter: f"d{at}" for at, letter in enumerate(letters)}
        body = []
        for at, value in enumerate((a, b)):
            extend = "arith.extf" if kind.startswith(("f", "b")) else "arith.extsi"
            body.append(f"%w{at} = {extend} %a{at} : {value.kind} to {kind}" if value.kind != kind else "")
        x, y = (f"%w{at}" if value.kind != kind else f"%a{at}" for at, value in enumerate((a, b)))
        end = "f" if kind.startswith(("f", "b")) else "i"
        body += [f"%p = arith.mul{end} {x}, {y} : {kind}", f"%r = arith.add{end} %o0, %p : {kind}"]
        text = "\n".join(line for line in [*body, f"linalg.yield %r : {kind}"] if line)
        indices = [", ".join(of[letter] for letter in part) for part in (left, right, out)]
        gone = ", ".join(of[letter] for letter in letters if letter not in out)
        (result,) = self.generic(
            [(a, indices[0]), (b, indices[1])], [(self.filled(shape, kind, start), indices[2])],
            ", ".join(of.values()), text, gone,
        )  # fmt: skip
        return result

    def padded(self, value: Value, low: Sequence[int], high: Sequence[int], number: float = 0.0) -> Value:
        """With a border of one number."""
        scalar = self.scalar(number, value.kind)
        shape = [a + size + b for a, size, b in zip(low, value.shape, high, strict=True)]
        places = ", ".join(f"%p{d}: index" for d in range(len(shape)))
        lows, highs = ", ".join(map(str, low)), ", ".join(map(str, high))
        return self.made(
            shape,
            value.kind,
            f"tensor.pad {value.name} low[{lows}] high[{highs}] {{\n  ^bb0({places}):\n    "
            f"tensor.yield {scalar} : {value.kind}\n  }} : {self.type(value)} to {{type}}",
        )

    def sliced(self, value: Value, offsets: Sequence[int], sizes: Sequence[int], steps: Sequence[int] | None = None) -> Value:
        """A part."""
        text = "".join(f"[{', '.join(map(str, part))}]" for part in (offsets, sizes, steps or [1] * len(sizes)))
        return self.made(
            sizes, value.kind, f"tensor.extract_slice {value.name}{text} : {self.type(value)} to {{type}}"
        )

    def inserted(self, part: Value, into: Value, offsets: Sequence[int]) -> Value:
        """A tensor with another in it."""
        text = "".join(f"[{', '.join(map(str, p))}]" for p in (offsets, part.shape, [1] * len(offsets)))
        return self.made(
            into.shape,
            into.kind,
            f"tensor.insert_slice {part.name} into {into.name}{text} : {self.type(part)} into {{type}}",
        )

    def repeated(self, count: int, start: Value, step: Any) -> Value:
        """A loop: step(place, value) gives the next value."""
        low, high, one = self.scalar(0, "index"), self.scalar(count, "index"), self.scalar(1, "index")
        result, place, carried = self.new(), self.new("i"), self.new("s")
        kind = self.type(start)
        self.add(f"{result} = scf.for {place} = {low} to {high} step {one} iter_args({carried} = {start.name}) -> ({kind}) {{")
        last = step(place, Value(name=carried, shape=start.shape, kind=start.kind))
        self.add(f"scf.yield {last.name} : {kind}")
        self.add("}")
        return Value(name=result, shape=start.shape, kind=start.kind)

    def returned(self, *values: Value) -> Function:
        """The function, which gives these."""
        self.results = list(values)
        return self

    def text(self) -> str:
        """The whole function."""
        arguments = ", ".join(f"{value.name}: {self.type(value)}" for value, _ in self.arguments)
        types = ", ".join(self.type(value) for value in self.results)
        names = ", ".join(value.name for value in self.results)
        head = f"func.func @{self.name}({arguments}) -> ({types}) {{"
        return re.sub(r" +", " ", "\n".join([head, *self.lines, f"  return {names} : {types}", "}"]).replace("\n", "\n  "))
