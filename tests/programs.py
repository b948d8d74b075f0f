"""Programs on tensors in a short notation."""

import re
from collections.abc import Sequence

import numpy as np

Shape = tuple[int, ...]
_LOOPS = "nchw"


def program(text: str, element: str = "f32", *, blob: str = "") -> str:
    """A module of one function, from one line an operation; types follow from those of the arguments.

    main p:2x3 q:1x3         arguments: tensors by their shapes, or values of any other type
    a = concat 0 p q         tensor.concat along dimension 0
    e = empty 3x3
    s = insert p e 0,0       tensor.insert_slice of p into e at these offsets
    t = extract s 1,0 2x3    tensor.extract_slice at these offsets, of this shape; maybe with strides
    y = pad p zero 1,0 1,0   tensor.pad by a scalar: so many below and above, in each dimension
    c = constant 0.0         a scalar; zero, one and two need no line
    k = random 4x3x3x3       a constant of random numbers; another word seeds them
    f = fill c e
    t = transpose p 1,0
    r = mulf p p             any operation of arith, or math.exp and the like, on tensors
    r = each mulf p two      the same in parallel loops n, c, h, w; b:c is read along loop c, and b:nc00 at 0 of h and w
                             out=e: into e, which the operand `out` reads; `yield` only passes its operand on
    y = matmul x w e         added to e
    y = conv x k             linalg.conv_2d_nchw_fchw from zeros; named=, start=, strides=, dilations= say otherwise
    | cf.br ^later           MLIR as it is
    v:2x3 = | tensor.cast .. the same, for a value of that shape
    return r s

    Args:
        blob: Name and bytes of a resource, as MLIR has them: `w: "0x04000000..."`.
    """
    head, *body, end = (line for line in text.splitlines() if line.strip())
    writer = _Writer(head.partition("main")[2], element)
    for line in body:
        writer.line(line)
    resources = f"\n{{-# dialect_resources: {{ builtin: {{ {blob} }} }} #-}}\n" if blob else ""
    return writer.module(end.split()[1:]) + resources


class _Writer:
    """A program while it is written."""

    def __init__(self, arguments: str, element: str = "f32") -> None:
        self.shapes: dict[str, Shape] = {}  # Of all its tensors so far, by name
        self._element = element
        self._lines: list[str] = []
        self._parameters = []
        for argument in arguments.split():
            name, kind = argument.split(":")
            if kind[0].isdigit():
                self.shapes[name] = _numbers(kind, "x")
                kind = self._kind(name)
            self._parameters.append(f"%{name}: {kind}")

    def line(self, line: str) -> None:
        """Append a line of the notation."""
        words = line.split()
        if words[0] == "|":
            self._lines.append(" ".join(words[1:]))
            return
        result, shape = words[0].partition(":")[::2]
        if shape:
            self.shapes[result] = _numbers(shape, "x")
        self._lines.append(self._operation(result, words[2], words[3:]))

    def module(self, results: Sequence[str]) -> str:
        """The module, whose function returns these values."""
        kinds = ", ".join(map(self._kind, results))
        end = f"return {', '.join(f'%{result}' for result in results)} : {kinds}" if results else "return"
        point = "" if self._element[0] == "i" else ".0"
        scalars = {"zero": f"0{point}", "one": f"1{point}", "two": f"2{point}"}
        body = "\n".join([*self._lines, end])
        head = "\n".join(
            f"%{name} = arith.constant {value} : {self._element}"
            for name, value in scalars.items()
            if name not in self.shapes and re.search(rf"%{name}\b", body)
        )
        return f"func.func @main({', '.join(self._parameters)}) -> ({kinds}) {{\n{head}\n{body}\n}}"

    def _kind(self, name: str) -> str:
        return tensor(self.shapes[name], self._element)

    def _operation(self, result: str, operation: str, words: Sequence[str]) -> str:
        """One operation in MLIR; its result's shape goes into `shapes`."""
        first, shapes, kind = words[0], self.shapes, self._kind
        match operation:
            case "|":
                return f"%{result} = {' '.join(words)}"
            case "concat":
                axis, parts = int(first), words[1:]
                shape = list(shapes[parts[0]])
                shape[axis] = sum(shapes[part][axis] for part in parts)
                shapes[result] = tuple(shape)
                names, kinds = ", ".join(f"%{part}" for part in parts), ", ".join(map(kind, parts))
                return f"%{result} = tensor.concat dim({axis}) {names} : ({kinds}) -> {kind(result)}"
            case "empty":
                shapes[result] = _numbers(first, "x")
                return f"%{result} = tensor.empty() : {kind(result)}"
            case "insert":
                base, offsets = words[1:]
                shapes[result] = shapes[base]
                where = _slice(offsets, shapes[first])
                return f"%{result} = tensor.insert_slice %{first} into %{base}{where} : {kind(first)} into {kind(base)}"
            case "extract":
                shapes[result] = _numbers(words[2], "x")
                where = _slice(words[1], shapes[result], *words[3:])
                return f"%{result} = tensor.extract_slice %{first}{where} : {kind(first)} to {kind(result)}"
            case "pad":
                low, high = (_numbers(word) for word in words[2:4])
                shapes[result] = tuple(map(sum, zip(low, shapes[first], high, strict=True)))
                nofold = " nofold" if words[4:] else ""
                indices = ", ".join(f"%{result}_i{number}: index" for number in range(len(low)))
                return (
                    f"%{result} = tensor.pad %{first}{nofold} low{list(low)} high{list(high)} {{\n  ^bb0({indices}):\n"
                    f"    tensor.yield %{words[1]} : {self._element}\n  }} : {kind(first)} to {kind(result)}"
                )
            case "constant":
                return f"%{result} = arith.constant {first} : {self._element}"
            case "random":
                shapes[result] = _numbers(first, "x")
                return f"%{result} = arith.constant {_random(shapes[result], *map(int, words[1:]))} : {kind(result)}"
            case "fill":
                base = words[1]
                shapes[result] = shapes[base]
                ins = f"ins(%{first} : {self._element})"
                return f"%{result} = linalg.fill {ins} outs(%{base} : {kind(base)}) -> {kind(base)}"
            case "transpose":
                order = _numbers(words[1])
                shapes[result] = tuple(shapes[first][dimension] for dimension in order)
                return (
                    f"%{result}_e = tensor.empty() : {kind(result)}\n%{result} = linalg.transpose "
                    f"ins(%{first} : {kind(first)}) outs(%{result}_e : {kind(result)}) permutation = {list(order)}"
                )
            case "each":
                return self._each(result, first, words[1:])
            case "matmul":
                left, right, init = words
                shapes[result] = shapes[init]
                ins = f"ins(%{left}, %{right} : {kind(left)}, {kind(right)})"
                return f"%{result} = linalg.matmul {ins} outs(%{init} : {kind(init)}) -> {kind(init)}"
            case "conv":
                options = {"named": "conv_2d_nchw_fchw", "strides": "1,1", "dilations": "1,1", "start": ""}
                options |= dict(word.split("=") for word in words[2:])
                return self._convolution(result, first, words[1], **options)
            case _:
                shapes[result] = shapes[first]
                operands = ", ".join(f"%{word}" for word in words)
                return f"%{result} = {_qualified(operation)} {operands} : {kind(first)}"

    def _each(self, result: str, operation: str, words: Sequence[str]) -> str:
        operands = [word.partition(":")[::2] for word in words if not word.startswith("out=")]
        init, out = next((word[4:] for word in words if word.startswith("out=")), f"{result}_e").partition(":")[::2]
        self.shapes[result] = self.shapes[init] if init in self.shapes else self.shapes[operands[0][0]]
        kind, element = self._kind(result), self._element
        loops = _LOOPS[: len(self.shapes[result])]
        tensors = [(name, letters or loops) for name, letters in operands if name in self.shapes]
        maps = [f"affine_map<({', '.join(loops)}) -> ({', '.join(to)})>" for _, to in (*tensors, ("", out or loops))]
        names, kinds = (", ".join(map(text, [name for name, _ in tensors])) for text in ("%{}".format, self._kind))
        arguments = [f"%{result}_in{number}" for number in range(len(tensors))]
        inside = iter(arguments)
        values = ", ".join(
            next(inside) if name in self.shapes else f"%{result}_out" if name == "out" else f"%{name}"
            for name, _ in operands
        )
        body = f"%{result}_0 = {_qualified(operation)} {values} : {element}\nlinalg.yield %{result}_0 : {element}"
        return f"""{"" if init in self.shapes else f"%{init} = tensor.empty() : {kind}"}
          %{result} = linalg.generic {{
              indexing_maps = [{", ".join(maps)}], iterator_types = [{", ".join(['"parallel"'] * len(loops))}]}}
            {f"ins({names} : {kinds})" if tensors else ""} outs(%{init} : {kind}) {{
          ^bb0({", ".join(f"{argument}: {element}" for argument in (*arguments, f"%{result}_out"))}):
            {f"linalg.yield {values} : {element}" if operation == "yield" else body}
          }} -> {kind}"""

    def _convolution(
        self, result: str, image: str, filter_: str, *, named: str, strides: str, dilations: str, start: str
    ) -> str:
        words = named.split("_")
        layout = next(word for word in words if sorted(word) == sorted(_LOOPS))
        sizes = dict(zip(layout, self.shapes[image], strict=True))
        axes = words[-1] if "conv" in words else "hw"
        kernel = dict(zip(axes, self.shapes[filter_], strict=True))
        for axis, stride, dilation in zip("hw", _numbers(strides), _numbers(dilations), strict=True):
            sizes[axis] = (sizes[axis] - dilation * (kernel[axis] - 1) - 1) // stride + 1
        sizes["c"] = kernel.get("f", sizes["c"])
        self.shapes[result] = tuple(sizes[axis] for axis in layout)
        kind = self._kind(result)
        zeros = f"""%{result}_e = tensor.empty() : {kind}
          %{result}_start = linalg.fill ins(%zero : {self._element}) outs(%{result}_e : {kind}) -> {kind}\n"""
        steps = f"strides = dense<[{strides}]> : vector<2xi64>, dilations = dense<[{dilations}]> : vector<2xi64>"
        return f"""{"" if start else zeros}%{result} = linalg.{named} {{{steps}}}
            ins(%{image}, %{filter_} : {self._kind(image)}, {self._kind(filter_)})
            outs(%{start or f"{result}_start"} : {kind}) -> {kind}"""


def in_util(text: str) -> str:
    """The same program as IREE has it from phase `input` on: functions are util.func."""
    return text.replace("func.func @", "util.func public @").replace("\nreturn ", "\nutil.return ")


def tensor(shape: Sequence[int], element: str = "f32") -> str:
    """The type of a tensor."""
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


def _qualified(operation: str) -> str:
    return operation if "." in operation else f"arith.{operation}"


def _numbers(text: str, separator: str = ",") -> Shape:
    return tuple(int(number) for number in text.split(separator))


def _slice(offsets: str, shape: Shape, strides: str = "") -> str:
    return f"[{offsets}] {list(shape)} {list(_numbers(strides)) if strides else [1] * len(shape)}"


def _random(shape: Shape, seed: int = 0) -> str:
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(np.prod(shape)))
    return f'dense<"0x{values.tobytes().hex()}">'


# An argument and a weight of a parameter file.
WEIGHTED = 'util.global private @w = #flow.parameter.named<"model"::"w"> : tensor<4xf32>\n' + program("""
main a:4
w:4 = | util.global.load @w : tensor<4xf32>
r = addf a w
return r
""")
# A sum on a first device, and its square on a second.
ON_TWO_DEVICES = program("""
main x:4
a = addf x x
b:4 = | flow.tensor.transfer %a : tensor<4xf32> to #hal.device.promise<@dev_b>
c = mulf b b
d:4 = | flow.tensor.transfer %c : tensor<4xf32> to #hal.device.promise<@dev_a>
return d
""")
