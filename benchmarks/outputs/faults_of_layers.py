"""Planted faults of matrix products, layers, convolutions and pooling."""

from collections.abc import Callable

import numpy as np

from benchmarks.outputs import parts
from benchmarks.outputs.building import Function, Value
from benchmarks.outputs.faults import KEEP_F64, Make, fault, scaled_at

Change = Callable[[Function, Value, Value], Value]

# --- matrix products --------------------------------------------------------------------------------------------------


def _one(f: Function, i: int, j: int) -> str:
    p, q = f.scalar(i, "index"), f.scalar(j, "index")
    return f"""%p = arith.cmpi eq, %i, {p} : index
               %q = arith.cmpi eq, %j, {q} : index
               %b = arith.andi %p, %q : i1"""


def _product(change: Change, m: int = 40, k: int = 256, n: int = 40, kind: str = "f32") -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        a, b = f.argument((m, k), kind), f.argument((k, n), kind)
        return change(f, a, b) if is_wrong else parts.matmul(f, a, b)

    return make


def _part_of_k(f: Function, a: Value, b: Value, low: int, high: int) -> Value:
    m, n = a.shape[0], b.shape[1]
    return parts.matmul(f, f.sliced(a, (0, low), (m, high - low)), f.sliced(b, (low, 0), (high - low, n)))


def _twice(f: Function, a: Value, b: Value) -> Value:
    return parts.binary(f, "arith.addf", parts.matmul(f, a, b), _part_of_k(f, a, b, 0, 8))


def _stale_border(f: Function, a: Value, b: Value) -> Value:
    p = parts.matmul(f, a, b)
    return f.inserted(f.sliced(p, (24, 0), (8, 40)), p, (32, 0))


def _through(kind: str) -> Change:
    def change(f: Function, a: Value, b: Value) -> Value:
        a, b = (parts.converted(f, parts.converted(f, x, kind), x.kind) for x in (a, b))
        return parts.matmul(f, a, b)

    return change


def _accumulated_in(kind: str) -> Change:
    def change(f: Function, a: Value, b: Value) -> Value:
        (m, _), n = a.shape, b.shape[1]
        body = f"""%p = arith.mulf %a0, %a1 : f32
                   %q = arith.truncf %p : f32 to {kind}
                   %r = arith.addf %o0, %q : {kind}
                   linalg.yield %r : {kind}"""
        out = [(f.filled((m, n), kind), "d0, d1")]
        (sums,) = f.generic([(a, "d0, d2"), (b, "d2, d1")], out, "d0, d1, d2", body, "d2")
        return parts.converted(f, sums, "f32")

    return change


def _wrong_elements(factor: float) -> Change:
    return lambda f, a, b: scaled_at(f, parts.matmul(f, a, b), _one(f, 17, 23), factor)


fault("matmul: the last tile of K is dropped", _product(lambda f, a, b: _part_of_k(f, a, b, 0, 240)))
fault("matmul: the last element of K is dropped", _product(lambda f, a, b: _part_of_k(f, a, b, 0, 255)))
fault(
    "matmul: the last element of 4096 of K is dropped", _product(lambda f, a, b: _part_of_k(f, a, b, 0, 4095), k=4096)
)
fault("matmul: a tile of K is counted twice", _product(_twice))
fault(
    "matmul: the accumulator starts at 0.001",
    _product(lambda f, a, b: f.contracted(a, b, "mk,kn->mn", (40, 40), start=1e-3)),
)
fault("matmul: a stale border tile", _product(_stale_border))
fault("matmul: operands are swapped", _product(lambda f, a, b: parts.matmul(f, b, a), 48, 48, 48))
fault("matmul: B is read transposed", _product(lambda f, a, b: f.contracted(a, b, "mk,nk->mn", (48, 48)), 48, 48, 48))
fault("matmul: the result is transposed", _product(lambda f, a, b: f.contracted(a, b, "mk,kn->nm", (40, 40))))
fault("matmul: f16 operands", _product(_through("f16")))
fault("matmul: bf16 operands", _product(_through("bf16")))
fault("matmul: an f16 accumulator", _product(_accumulated_in("f16")))
fault("matmul: a bf16 accumulator", _product(_accumulated_in("bf16")))
fault("matmul: one element is 0", _product(_wrong_elements(0.0)))
fault("matmul: one element is off by 0.1 %", _product(_wrong_elements(1.001)))
fault("matmul: one element has the wrong sign", _product(_wrong_elements(-1.0)))
fault("matmul of f64 computed in f32", _product(_through("f32"), kind="f64"), *KEEP_F64)
fault("matmul of f64: one element is off by 1e-9", _product(_wrong_elements(1 + 1e-9), kind="f64"), *KEEP_F64)
fault("matmul of f16: the last tile of K is dropped", _product(lambda f, a, b: _part_of_k(f, a, b, 0, 240), kind="f16"))
fault(
    "matmul of bf16: the last tile of K is dropped", _product(lambda f, a, b: _part_of_k(f, a, b, 0, 240), kind="bf16")
)
fault("matmul of f16: one element is 0", _product(_wrong_elements(0.0), kind="f16"))


def _wrong_batch(f: Function, is_wrong: bool) -> Value:
    a, b = f.argument((6, 16, 32)), f.argument((6, 32, 16))
    if is_wrong:
        b = f.inserted(f.sliced(b, (4, 0, 0), (1, 32, 16)), b, (5, 0, 0))
    return f.contracted(a, b, "bmk,bkn->bmn", (6, 16, 16))


def _matvec(f: Function, is_wrong: bool) -> Value:
    a, x = f.argument((64, 64)), f.argument((64,))
    return f.contracted(a, x, "km,k->m" if is_wrong else "mk,k->m", (64,))


fault("batch matmul: the last batch reads the B before it", _wrong_batch)
fault("matvec: A is read transposed", _matvec)

# --- layers -----------------------------------------------------------------------------------------------------------


def _layer(change: Change) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        p, bias = parts.matmul(f, f.argument((40, 200)), f.argument((200, 40))), f.argument((40,))
        return change(f, p, bias) if is_wrong else parts.relu(f, parts.biased(f, p, bias))

    return make


def _partly_biased(f: Function, p: Value, bias: Value) -> Value:
    tile = parts.relu(f, f.sliced(p, (0, 32), (40, 8)))
    return f.inserted(tile, parts.relu(f, parts.biased(f, p, bias)), (0, 32))


fault("layer: the bias is skipped", _layer(lambda f, p, _: parts.relu(f, p)))
fault("layer: the bias is skipped in the last tile", _layer(_partly_biased))
fault(
    "layer: the bias is added twice", _layer(lambda f, p, b: parts.relu(f, parts.biased(f, parts.biased(f, p, b), b)))
)
fault(
    "layer: the bias is along the other dimension",
    _layer(lambda f, p, b: parts.relu(f, parts.binary(f, "arith.addf", p, (b, "d0")))),
)
fault("layer: relu is left out", _layer(lambda f, p, b: parts.biased(f, p, b)))
fault("layer: relu comes before the bias", _layer(lambda f, p, b: parts.biased(f, parts.relu(f, p), b)))
_LEAKY = "%k = arith.constant 0.001 : f32\n%w = arith.mulf %a0, %k : f32\n%r = arith.maximumf %a0, %w : f32"
fault("layer: relu leaks", _layer(lambda f, p, b: f.each(_LEAKY, parts.biased(f, p, b))))


def _deep(f: Function, is_wrong: bool) -> Value:
    x, w = f.argument((8, 128)), f.argument((128, 128), scale=0.12)
    for layer in range(6):
        y = parts.relu(f, parts.matmul(f, x, w))
        x = x if is_wrong and layer == 3 else y
    return x


fault("network: one layer's output is stale", _deep)


def _norm(right: dict[str, float], wrong: dict[str, float], shift: float = 0.0) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        x = f.argument(f.rng.standard_normal((16, 200)) + shift)
        return parts.normalised(f, x, **(wrong if is_wrong else right))  # type: ignore[arg-type]

    return make


fault("layer norm: epsilon is 1e-3, not 1e-5", _norm({}, {"epsilon": 1e-3}))
fault("layer norm: epsilon is 1e-6, not 1e-5", _norm({}, {"epsilon": 1e-6}))
fault("layer norm: the variance is divided by n - 1", _norm({}, {"divisor": 199.0}))
fault("layer norm: the mean is not taken off", _norm({}, {"centred": False}, 0.5))
fault("rms norm: the mean is taken off", _norm({"centred": False}, {}, 0.5))


def _softmax(change: Callable[[Function, Value], Value], scale: float = 1.0) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        x = f.argument((32, 32), scale=scale)
        return change(f, x) if is_wrong else parts.softmax(f, x)

    return make


def _short_softmax(f: Function, x: Value) -> Value:
    powers = parts.unary(f, "math.exp", x)
    sums = parts.summed(f, f.sliced(powers, (0, 0), (32, 31)), [1])
    return parts.binary(f, "arith.divf", powers, (sums, "d0"))


fault(
    "softmax: along the other dimension",
    _softmax(lambda f, x: parts.transposed(f, parts.softmax(f, parts.transposed(f, x, (1, 0))), (1, 0))),
)
fault("softmax: the last column is not in the sum", _softmax(_short_softmax))
fault(
    "softmax: without taking off the maximum, which overflows",
    _softmax(lambda f, x: parts.softmax(f, x, shift=False), 60.0),
)
fault("softmax: computed in f16", _softmax(lambda f, x: parts.converted(f, _softmax_f16(f, x), "f32")))


def _softmax_f16(f: Function, x: Value) -> Value:
    powers = parts.converted(f, parts.unary(f, "math.exp", x), "f16")
    return parts.binary(f, "arith.divf", powers, (parts.summed(f, powers, [1]), "d0"))


def _attention(kind: str) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        q, k, v = f.argument((2, 16, 16)), f.argument((2, 24, 16)), f.argument((2, 24, 16))
        causal = f.argument(np.where(np.tri(16, 24) > 0, 0.0, -1e9))
        late = f.argument(np.where(np.tri(16, 24, 1) > 0, 0.0, -1e9))
        mask, scale = causal, 0.25
        if is_wrong:
            mask = late if kind == "late" else None if kind == "dropped" else causal  # type: ignore[assignment]
            scale = 1 / 16 if kind == "scale" else scale
        if is_wrong and kind == "values":
            v = f.inserted(f.sliced(v, (0, 0, 0), (1, 24, 16)), v, (1, 0, 0))
        return parts.attention(f, q, k, v, mask=mask, scale=scale)

    return make


fault("attention: the mask is dropped", _attention("dropped"))
fault("attention: the mask is one late", _attention("late"))
fault("attention: the scale is 1 / width", _attention("scale"))
fault("attention: a head reads another's values", _attention("values"))

# --- convolutions and pooling -----------------------------------------------------------------------------------------


def _conv(change: Change, kind: str = "f32") -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        x, w = f.argument((1, 14, 14, 8), kind), f.argument((3, 3, 8, 16), kind)
        if is_wrong:
            return change(f, x, w)
        return parts.conv_2d(f, _bordered(f, x, 1), w)

    return make


def _bordered(f: Function, x: Value, low: int, number: float = 0.0) -> Value:
    return f.padded(x, (0, low, low, 0), (0, 2 - low, 2 - low, 0), number)


def _dilated(f: Function, x: Value, w: Value) -> Value:
    return parts.conv_2d(f, f.padded(x, (0, 2, 2, 0), (0, 2, 2, 0)), w, dilation=2)


def _flipped(f: Function, x: Value, w: Value) -> Value:
    out = f.empty(w.shape, w.kind)
    (flipped,) = f.generic(
        [(w, "2 - d0, 2 - d1, d2, d3")], [(out, parts.letters(4))], parts.letters(4), f"linalg.yield %a0 : {w.kind}"
    )
    return parts.conv_2d(f, _bordered(f, x, 1), flipped)


def _without_channel(f: Function, x: Value, w: Value) -> Value:
    return parts.conv_2d(
        f, _bordered(f, f.sliced(x, (0, 0, 0, 0), (1, 14, 14, 7)), 1), f.sliced(w, (0, 0, 0, 0), (3, 3, 7, 16))
    )


def _strided(is_late: bool) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        x, w = f.argument((1, 16, 16, 8)), f.argument((3, 3, 8, 16))
        if not is_wrong:
            return parts.conv_2d(f, f.sliced(x, (0, 0, 0, 0), (1, 15, 15, 8)), w, stride=2)
        if is_late:
            return parts.conv_2d(f, f.sliced(x, (0, 1, 1, 0), (1, 15, 15, 8)), w, stride=2)
        return parts.conv_2d(f, f.sliced(x, (0, 0, 0, 0), (1, 9, 9, 8)), w)

    return make


def _depthwise(f: Function, is_wrong: bool) -> Value:
    x, w = f.argument((1, 12, 12, 16)), f.argument((3, 3, 16))
    if is_wrong:
        w = f.inserted(f.sliced(w, (0, 0, 0), (3, 3, 8)), w, (0, 0, 8))
    return parts.conv_2d(f, x, w, layout="nhwc_hwc")


fault("convolution: the border is off by one", _conv(lambda f, x, w: parts.conv_2d(f, _bordered(f, x, 2), w)))
fault(
    "convolution: the border is one off on one side",
    _conv(lambda f, x, w: parts.conv_2d(f, f.padded(x, (0, 1, 0, 0), (0, 1, 2, 0)), w)),
)
fault("convolution: the border is 1, not 0", _conv(lambda f, x, w: parts.conv_2d(f, _bordered(f, x, 1, 1.0), w)))
fault("convolution: dilation 2, not 1", _conv(_dilated))
fault("convolution: filters are flipped", _conv(_flipped))
fault("convolution: the last channel is dropped", _conv(_without_channel))
fault(
    "convolution: bf16 operands",
    _conv(lambda f, x, w: parts.conv_2d(f, _bordered(f, _cut(f, x, "bf16"), 1), _cut(f, w, "bf16"))),
)
fault("convolution: the stride starts one late", _strided(True))
fault("convolution: stride 1, not 2", _strided(False))
fault("depthwise: half of the channels read others' filters", _depthwise)


def _cut(f: Function, x: Value, kind: str) -> Value:
    return parts.converted(f, parts.converted(f, x, kind), x.kind)


def _pool(kind: str) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        values = f.rng.standard_normal((1, 15, 15, 8)) - (4.0 if kind == "start" else 0.0)
        x = f.argument(values)
        if kind == "start":
            y = parts.pooled(f, x, 3, stride=2, kind="max")
            return parts.relu(f, y) if is_wrong else y
        if kind == "size":
            small = f.sliced(x, (0, 0, 0, 0), (1, 14, 14, 8))
            return (
                parts.pooled(f, small, 2, stride=2, kind="max")
                if is_wrong
                else parts.pooled(f, x, 3, stride=2, kind="max")
            )
        return parts.with_number(f, "arith.divf", parts.pooled(f, x, 3, stride=1, kind="sum"), 8.0 if is_wrong else 9.0)

    return make


fault("pooling: the maximum starts at 0", _pool("start"))
fault("pooling: the window is smaller", _pool("size"))
fault("pooling: the mean is divided by 8, not 9", _pool("count"))
