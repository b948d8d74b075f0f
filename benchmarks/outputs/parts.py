"""What programs are made of: layers as functions on tensors, which right programs and planted faults share."""

from collections.abc import Sequence

import numpy as np

from benchmarks.outputs.building import Function, Value


def end_of(kind: str) -> str:
    """How names of arith's operations end."""
    return "i" if kind.startswith("i") else "f"


def letters(rank: int) -> str:
    """The dimensions of a space."""
    return ", ".join(f"d{d}" for d in range(rank))


def unary(f: Function, name: str, x: Value) -> Value:
    """One operation of one operand."""
    return f.each(f"%r = {name} %a0 : {x.kind}", x)


def binary(f: Function, name: str, x: Value, y: Value | tuple[Value, str]) -> Value:
    """One operation of two operands, the other of which may have fewer dimensions."""
    return f.each(f"%r = {name} %a0, %a1 : {x.kind}", x, y)


def with_number(f: Function, name: str, x: Value, number: float) -> Value:
    """One operation of a tensor and a number."""
    scalar = f.scalar(number, x.kind)
    return f.each(f"%r = {name} %a0, {scalar} : {x.kind}", x)


def relu(f: Function, x: Value) -> Value:
    """max(x, 0)."""
    return with_number(f, "arith.maximumf", x, 0.0)


def converted(f: Function, x: Value, kind: str) -> Value:
    """Another float type."""
    widths = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
    name = "arith.extf" if widths[kind] > widths[x.kind] else "arith.truncf"
    return f.each(f"%r = {name} %a0 : {x.kind} to {kind}", x, kind=kind)


def matmul(f: Function, a: Value, b: Value, kind: str = "") -> Value:
    """A plain matrix product."""
    kind = kind or a.kind
    return f.named("linalg.matmul", [a, b], f.filled((a.shape[0], b.shape[1]), kind))


def biased(f: Function, x: Value, bias: Value) -> Value:
    """A bias along the last dimension."""
    return binary(f, f"arith.add{end_of(x.kind)}", x, (bias, f"d{len(x.shape) - 1}"))


def summed(f: Function, x: Value, axes: Sequence[int], start: float = 0.0) -> Value:
    """A sum."""
    return f.reduced(f"%r = arith.add{end_of(x.kind)} %a0, %o0 : {x.kind}", x, axes, start)


def row_map(x: Value) -> str:
    """All dimensions but the last."""
    return letters(len(x.shape) - 1)


def softmax(f: Function, x: Value, shift: bool = True) -> Value:
    """Along the last dimension, spelt out."""
    last = [len(x.shape) - 1]
    if shift:
        most = f.reduced(f"%r = arith.maximumf %a0, %o0 : {x.kind}", x, last, -np.inf)
        x = binary(f, "arith.subf", x, (most, row_map(x)))
    powers = unary(f, "math.exp", x)
    return binary(f, "arith.divf", powers, (summed(f, powers, last), row_map(x)))


def mean(f: Function, x: Value, divisor: float = 0.0) -> Value:
    """Along the last dimension."""
    return with_number(f, "arith.divf", summed(f, x, [len(x.shape) - 1]), divisor or float(x.shape[-1]))


def normalised(f: Function, x: Value, *, epsilon: float = 1e-5, centred: bool = True, divisor: float = 0.0) -> Value:
    """A layer norm, or an RMS norm where it is not centred; without scale."""
    rows = row_map(x)
    if centred:
        x = binary(f, "arith.subf", x, (mean(f, x), rows))
    squares = binary(f, "arith.mulf", x, x)
    scale = unary(f, "math.rsqrt", with_number(f, "arith.addf", mean(f, squares, divisor), epsilon))
    return binary(f, "arith.mulf", x, (scale, rows))


def attention(f: Function, q: Value, k: Value, v: Value, *, mask: Value | None = None, scale: float = 0.0) -> Value:
    """Attention of heads, spelt out: q is heads x rows x width, k and v heads x keys x width."""
    heads, rows, width = q.shape
    keys = k.shape[1]
    scores = f.contracted(q, k, "hqd,hkd->hqk", (heads, rows, keys))
    scores = with_number(f, "arith.mulf", scores, scale or float(np.float32(width**-0.5)))
    if mask is not None:
        scores = binary(f, "arith.addf", scores, (mask, "d1, d2"))
    return f.contracted(softmax(f, scores), v, "hqk,hkd->hqd", (heads, rows, width))


def conv_2d(f: Function, x: Value, filters: Value, *, stride: int = 1, dilation: int = 1, layout: str = "nhwc_hwcf",
            start: Value | None = None) -> Value:  # fmt: skip
    """A convolution, added to a start where one is given."""
    if layout in ("nhwc_hwcf", "nhwc_hwc"):
        (n, h, w, _), (kh, kw, *_) = x.shape, filters.shape
    else:
        (n, _, h, w), (_, _, kh, kw) = x.shape, filters.shape
    high, wide = ((size - (k - 1) * dilation - 1) // stride + 1 for size, k in ((h, kh), (w, kw)))
    name = "linalg.conv_2d_" + layout
    match layout:
        case "nhwc_hwcf":
            shape: tuple[int, ...] = (n, high, wide, filters.shape[3])
        case "nhwc_hwc":
            name, shape = "linalg.depthwise_conv_2d_nhwc_hwc", (n, high, wide, x.shape[3])
        case _:
            shape = (n, filters.shape[0], high, wide)
    attributes = f"{{dilations = dense<{dilation}> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}"
    return f.named(name, [x, filters], start or f.filled(shape, x.kind), attributes)


def pooled(f: Function, x: Value, size: int, *, stride: int, kind: str) -> Value:
    """Pooling in nhwc; kind is sum or max."""
    n, h, w, c = x.shape
    shape = (n, (h - size) // stride + 1, (w - size) // stride + 1, c)
    start = f.filled(shape, x.kind, 0.0 if kind == "sum" else -np.inf)
    attributes = f"{{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}"
    return f.named(f"linalg.pooling_nhwc_{kind}", [x, f.empty((size, size), x.kind)], start, attributes)


def quantised(f: Function, x: Value, scale: float, *, rounding: str = "math.roundeven") -> Value:
    """Divided by a scale, rounded and clamped to i8."""
    k, high, low = f.scalar(scale, x.kind), f.scalar(127.0, x.kind), f.scalar(-128.0, x.kind)
    body = [f"%w = arith.divf %a0, {k} : {x.kind}"]
    body += [f"%q = {rounding} %w : {x.kind}" if rounding else f"%q = arith.addf %w, %w : {x.kind}"]
    if not rounding:
        body[-1] = f"%q = arith.maximumf %w, {low} : {x.kind}"
    body += [f"%c = arith.minimumf %q, {high} : {x.kind}", f"%d = arith.maximumf %c, {low} : {x.kind}"]
    return f.each("\n".join([*body, f"%r = arith.fptosi %d : {x.kind} to i8"]), x, kind="i8")


def argmax(f: Function, x: Value, *, later: bool = False) -> Value:
    """The place of the largest along the last dimension, the first of equals, or the last."""
    rows = row_map(x)
    shape, last = x.shape[:-1], len(x.shape) - 1
    out = [(f.filled(shape, x.kind, -np.inf), rows), (f.filled(shape, "i32", 0), rows)]
    better = "oge" if later else "ogt"
    body = f"""%i = linalg.index {last} : index
               %j = arith.index_cast %i : index to i32
               %b = arith.cmpf {better}, %a0, %o0 : {x.kind}
               %m = arith.select %b, %a0, %o0 : {x.kind}
               %n = arith.select %b, %j, %o1 : i32
               linalg.yield %m, %n : {x.kind}, i32"""
    return f.generic([(x, letters(last + 1))], out, letters(last + 1), body, f"d{last}")[1]


def transposed(f: Function, x: Value, order: Sequence[int]) -> Value:
    """Dimensions in another order."""
    out = f.empty([x.shape[d] for d in order], x.kind)
    source = ", ".join(f"d{list(order).index(d)}" for d in range(len(order)))
    (result,) = f.generic(
        [(x, source)], [(out, letters(len(order)))], letters(len(order)), f"linalg.yield %a0 : {x.kind}"
    )
    return result


def gathered(f: Function, x: Value, places: Value) -> Value:
    """Rows of a matrix, by their numbers."""
    body = f"""%i = arith.index_cast %a0 : {places.kind} to index
               %j = linalg.index 1 : index
               %e = tensor.extract {x.name}[%i, %j] : {f.type(x)}
               linalg.yield %e : {x.kind}"""
    out = f.empty((places.shape[0], x.shape[1]), x.kind)
    (result,) = f.generic([(places, "d0")], [(out, "d0, d1")], "d0, d1", body)
    return result
