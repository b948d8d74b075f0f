"""Right programs by family: what a compiler may do to any of them is no fault."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.outputs import parts
from benchmarks.outputs.building import Function, Value

# Seeds of each family; the even ones calibrate, the odd ones are only reported.
SEEDS = 8
_FAMILIES: dict[str, tuple[Callable[[Function, int], Function], tuple[str, ...]]] = {}
_KEEP_F64 = ("--iree-input-demote-f64-to-f32=false",)


@dataclass(frozen=True, kw_only=True)
class Right:
    """A right program.

    Attributes:
        flags: That it needs in any case.
    """

    family: str
    seed: int
    flags: tuple[str, ...]
    function: Function


def all_right() -> list[Right]:
    """Every family with every seed."""
    return [
        Right(family=family, seed=seed, flags=flags, function=make(_started(family, seed), seed))
        for family, (make, flags) in _FAMILIES.items()
        for seed in range(SEEDS)
    ]


def _started(family: str, seed: int) -> Function:
    dynamic = (37, 53, 101) if family == "dynamic shapes" else ()
    return Function(f"{family.replace(' ', '_').replace('-', '_')}_{seed}", seed=seed, dynamic=dynamic)


def _family(
    name: str, *flags: str
) -> Callable[[Callable[[Function, int], Function]], Callable[[Function, int], Function]]:
    def known(make: Callable[[Function, int], Function]) -> Callable[[Function, int], Function]:
        _FAMILIES[name] = (make, flags)
        return make

    return known


@_family("matmul")
def _matmul(f: Function, seed: int) -> Function:
    m, k, n = ((64, 256, 64), (33, 129, 65), (128, 1024, 96), (256, 512, 256))[seed // 2]
    a, b = f.argument((m, k)), f.argument((k, n) if seed % 2 else (n, k))
    return f.returned(parts.matmul(f, a, b) if seed % 2 else f.contracted(a, b, "mk,nk->mn", (m, n)))


@_family("batch matmul")
def _batch_matmul(f: Function, seed: int) -> Function:
    b, m, k, n = ((3, 40, 300, 24), (8, 16, 64, 48))[seed // 4]
    x, y = f.argument((b, m, k)), f.argument((b, k, n))
    if seed % 2:
        return f.returned(f.named("linalg.batch_matmul", [x, y], f.filled((b, m, n))))
    return f.returned(f.contracted(x, y, "bmk,bkn->mbn", (m, b, n)))


@_family("matvec")
def _matvec(f: Function, seed: int) -> Function:
    m, k = ((100, 1000), (16, 8192))[seed // 4]
    a, x = f.argument((m, k)), f.argument((k,))
    return f.returned(
        f.named("linalg.matvec", [a, x], f.filled((m,))) if seed % 2 else f.contracted(x, a, "k,mk->m", (m,))
    )


@_family("matmul of long sums")
def _long_matmul(f: Function, seed: int) -> Function:
    m, k, n = ((64, 4096, 64), (8, 16384, 32))[seed // 4]
    a, b = f.argument((m, k)), f.argument((k, n))
    if seed % 2:  # of one sign
        a, b = parts.unary(f, "math.absf", a), parts.unary(f, "math.absf", b)
    return f.returned(parts.matmul(f, a, b))


@_family("chained matmuls")
def _chain(f: Function, seed: int) -> Function:
    x, w = f.argument((48, 64)), f.argument((64, 64), scale=0.15)
    for _ in range(4 + seed):
        x = parts.matmul(f, x, w)
    return f.returned(x)


@_family("deep network")
def _deep(f: Function, seed: int) -> Function:
    x = f.argument((8, 256))
    w, bias = f.argument((256, 256), scale=0.09), f.argument((256,))
    for layer in range(3 + seed):
        y = parts.relu(f, parts.biased(f, parts.matmul(f, x, w), bias))
        x = parts.binary(f, "arith.addf", y, x) if seed % 2 and layer else y
    return f.returned(x)


@_family("convolution nhwc")
def _conv_nhwc(f: Function, seed: int) -> Function:
    x, w = f.argument((1, 19, 17, 24)), f.argument((3, 3, 24, 32))
    stride, dilation = ((1, 1), (2, 1), (1, 2), (2, 2))[seed // 2]
    x = parts.conv_2d(f, f.padded(x, (0, 1, 1, 0), (0, 1, 1, 0)), w, stride=stride, dilation=dilation)
    return f.returned(parts.relu(f, parts.biased(f, x, f.argument((32,)))) if seed % 2 else x)


@_family("convolution nchw")
def _conv_nchw(f: Function, seed: int) -> Function:
    x, w = f.argument((2, 16, 14, 15)), f.argument((24, 16, 3, 3))
    stride, dilation = ((1, 1), (2, 1), (1, 2), (1, 1))[seed // 2]
    x = f.padded(x, (0, 0, 1, 1), (0, 0, 1, 1)) if seed % 2 else x
    return f.returned(parts.conv_2d(f, x, w, stride=stride, dilation=dilation, layout="nchw_fchw"))


@_family("convolution by groups")
def _conv_groups(f: Function, seed: int) -> Function:
    stride = 1 + seed // 2 % 2
    if seed % 2:
        x, w = f.argument((1, 20, 20, 48)), f.argument((5, 5, 48) if seed > 3 else (3, 3, 48))
        return f.returned(parts.conv_2d(f, x, w, stride=stride, layout="nhwc_hwc"))
    x, w = f.argument((1, 4, 8, 15, 15)), f.argument((4, 6, 8, 3, 3))
    out = f.filled((1, 4, 6, 13 // stride + stride // 2, 13 // stride + stride // 2))
    attributes = f"{{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}"
    return f.returned(f.named("linalg.conv_2d_ngchw_gfchw", [x, w], out, attributes))


@_family("convolution 1d and 3d")
def _conv_other(f: Function, seed: int) -> Function:
    if seed % 2:
        x, w, out = f.argument((2, 50, 12)), f.argument((5, 12, 20)), f.filled((2, 46, 20))
        attributes = "{dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}"
        return f.returned(f.named("linalg.conv_1d_nwc_wcf", [x, w], out, attributes))
    x, w, out = f.argument((1, 7, 9, 8, 6)), f.argument((3, 3, 3, 6, 10)), f.filled((1, 5, 7, 6, 10))
    attributes = "{dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>}"
    return f.returned(f.named("linalg.conv_3d_ndhwc_dhwcf", [x, w], out, attributes))


@_family("pooling")
def _pooling(f: Function, seed: int) -> Function:
    x = f.argument((1, 21, 19, 16))
    size, stride = ((2, 2), (3, 1), (3, 2), (5, 1))[seed // 2]
    if seed % 2:
        return f.returned(parts.pooled(f, x, size, stride=stride, kind="max"))
    return f.returned(parts.with_number(f, "arith.divf", parts.pooled(f, x, size, stride=stride, kind="sum"), size**2))


@_family("norms")
def _norms(f: Function, seed: int) -> Function:
    x = f.argument((24, 300), scale=(1.0, 100.0)[seed // 4])
    if seed % 4 == 3:  # a batch norm
        m, v, s, b = (f.argument((300,)) for _ in range(4))
        body = """%d = arith.subf %a0, %a1 : f32
                  %q = arith.mulf %a2, %a2 : f32
                  %i = math.rsqrt %q : f32
                  %n = arith.mulf %d, %i : f32
                  %t = arith.mulf %n, %a3 : f32
                  %r = arith.addf %t, %a4 : f32"""
        return f.returned(f.each(body, x, *((value, "d1") for value in (m, v, s, b))))
    if seed % 4 == 2:  # a mean that is large beside the deviation
        x = parts.with_number(f, "arith.addf", x, 1000.0)
    x = parts.normalised(f, x, centred=seed % 4 != 1)
    return f.returned(parts.biased(f, x, f.argument((300,))))


@_family("softmax")
def _softmax(f: Function, seed: int) -> Function:
    x = f.argument((16, 500), scale=(1.0, 10.0)[seed // 4])
    if seed % 2:
        return f.returned(f.named("linalg.softmax", [x], f.empty(x.shape, "f32"), "dimension(1)"))
    return f.returned(parts.softmax(f, x, shift=seed != 0))


@_family("attention")
def _attention(f: Function, seed: int) -> Function:
    heads, rows, keys, width = ((2, 24, 40, 16), (4, 16, 128, 32))[seed // 4]
    q, k, v = (f.argument((heads, size, width)) for size in (rows, keys, keys))
    mask = f.argument(np.where(np.tri(rows, keys) > 0, 0.0, -1e9)) if seed % 2 else None
    return f.returned(parts.attention(f, q, k, v, mask=mask))


@_family("transformer block")
def _transformer(f: Function, seed: int) -> Function:
    x = f.argument((16, 64))
    w, u = f.argument((64, 64), scale=0.125), f.argument((64, 64), scale=0.125)
    for _ in range(1 + seed // 4):
        y = parts.normalised(f, x, centred=seed % 2 == 0)
        scores = f.contracted(parts.matmul(f, y, w), y, "qd,kd->qk", (16, 16))
        y = parts.matmul(f, parts.softmax(f, parts.with_number(f, "arith.mulf", scores, 0.125)), y)
        x = parts.binary(f, "arith.addf", x, parts.matmul(f, y, u))
        gate = parts.unary(f, "math.tanh" if seed % 2 else "math.erf", parts.matmul(f, x, w))
        x = parts.binary(f, "arith.addf", x, parts.binary(f, "arith.mulf", gate, x))
    return f.returned(x)


@_family("long sums")
def _long_sums(f: Function, seed: int) -> Function:
    size = 2**20 if seed < 4 else 100_003
    values = f.rng.standard_normal((2, size)) if seed % 2 else f.rng.random((2, size))
    x = f.argument(values)
    if seed in (2, 6):  # one sum of all
        return f.returned(parts.summed(f, x, [0, 1], 1.0))
    return f.returned(parts.summed(f, x, [1]))


@_family("sums that cancel")
def _cancelling(f: Function, seed: int) -> Function:
    values = f.rng.standard_normal((8, 4000)) * 10.0 ** f.rng.integers(0, 1 + seed, (8, 4000))
    x = f.argument(np.concatenate([values, -values[:, ::-1] * (1 + 1e-4)], axis=1))
    if seed % 2:
        ones = f.argument(np.ones((8000, 4)))
        return f.returned(parts.matmul(f, x, ones))
    return f.returned(parts.summed(f, x, [1]))


@_family("variances")
def _variances(f: Function, seed: int) -> Function:
    x = f.argument(f.rng.standard_normal((12, 900)) + 10.0 * seed)
    if seed % 2:  # the mean of squares less the square of the mean
        m = parts.mean(f, x)
        squares = parts.mean(f, parts.binary(f, "arith.mulf", x, x))
        return f.returned(parts.binary(f, "arith.subf", squares, parts.binary(f, "arith.mulf", m, m)))
    d = parts.binary(f, "arith.subf", x, (parts.mean(f, x), "d0"))
    return f.returned(parts.unary(f, "math.sqrt", parts.mean(f, parts.binary(f, "arith.mulf", d, d))))


@_family("products and extremes")
def _products(f: Function, seed: int) -> Function:
    x = f.argument((30, 70, 5))
    match seed % 4:
        case 0:
            x = parts.with_number(f, "arith.addf", parts.with_number(f, "arith.mulf", x, 0.05), 1.0)
            return f.returned(f.reduced("%r = arith.mulf %a0, %o0 : f32", x, [1], 1.0))
        case 1:
            return f.returned(f.reduced("%r = arith.maximumf %a0, %o0 : f32", x, [1, 2], -np.inf))
        case 2:
            return f.returned(f.reduced("%r = arith.minimumf %a0, %o0 : f32", x, [0], 0.25))
    w = f.argument((70, 70))
    y = f.contracted(x, w, "mkb,kn->bmn", (5, 30, 70))
    return f.returned(f.reduced("%r = arith.maximumf %a0, %o0 : f32", y, [2], -np.inf))


@_family("argmax")
def _argmax(f: Function, seed: int) -> Function:
    if seed % 2:
        return f.returned(parts.argmax(f, f.argument(f.rng.integers(0, 9, (40, 33)).astype(float))))
    return f.returned(parts.argmax(f, parts.matmul(f, f.argument((32, 200)), f.argument((200, 64)))))


@_family("scans")
def _scans(f: Function, seed: int) -> Function:
    x, start = f.argument((40, 100)), f.argument((100,))

    def step(place: str, carried: Value) -> Value:
        part = f.new("row")
        f.add(f"{part} = tensor.extract_slice {x.name}[{place}, 0] [1, 100] [1, 1] : {f.type(x)} to tensor<100xf32>")
        row = Value(name=part, shape=(100,), kind="f32")
        kept = parts.with_number(f, "arith.mulf", carried, 0.5 + 0.05 * seed)
        return parts.binary(f, "arith.addf", kept, row)

    return f.returned(f.repeated(40, start, step))


@_family("loops")
def _loops(f: Function, seed: int) -> Function:
    x = f.argument((24, 24))
    w = f.argument((24, 24), scale=0.2)
    if seed % 2:
        return f.returned(f.repeated(5 + seed, x, lambda _, s: parts.unary(f, "math.tanh", parts.matmul(f, s, w))))
    count, one, zero = f.argument(np.array(5 + seed), "i32"), f.scalar(1, "i32"), f.scalar(0, "i32")
    number, result, kind = f.new(), f.new(), f.type(x)
    f.add(f"{number} = tensor.extract {count.name}[] : tensor<i32>")
    f.add(f"{result}:2 = scf.while (%n = {number}, %s = {x.name}) : (i32, {kind}) -> (i32, {kind}) {{")
    f.add(f"%go = arith.cmpi sgt, %n, {zero} : i32")
    f.add(f"scf.condition(%go) %n, %s : i32, {kind}")
    f.add(f"}} do {{\n  ^bb0(%m: i32, %t: {kind}):")
    f.add(f"%l = arith.subi %m, {one} : i32")
    y = parts.matmul(f, Value(name="%t", shape=(24, 24), kind="f32"), w)
    y = parts.biased(f, y, f.argument((24,)))
    f.add(f"scf.yield %l, {y.name} : i32, {kind}")
    f.add("}")
    return f.returned(Value(name=f"{result}#1", shape=(24, 24), kind="f32"))


@_family("dynamic shapes")
def _dynamic(f: Function, seed: int) -> Function:
    x, w = f.argument((37, 101)), f.argument((101, 53))
    y = parts.biased(f, parts.matmul(f, x, w), f.argument((53,)))
    if seed % 4 == 0:
        y = parts.relu(f, y)
    if seed % 4 == 1:
        y = parts.softmax(f, y)
    if seed % 4 == 2:
        y = parts.matmul(f, y, f.argument((53, 20)))
    return f.returned(parts.summed(f, y, [1]) if seed > 3 else y)


@_family("gathers and slices")
def _moves(f: Function, seed: int) -> Function:
    x = f.argument((50, 40))
    match seed % 4:
        case 0:
            rows = parts.gathered(f, x, f.argument(f.rng.integers(0, 50, 30), "i64" if seed else "i32"))
            return f.returned(parts.matmul(f, rows, f.argument((40, 16))))
        case 1:
            return f.returned(parts.transposed(f, parts.unary(f, "arith.negf", x), (1, 0)))
        case 2:
            part = f.sliced(x, (3, 1), (20, 13), (2, 3))
            return f.returned(f.padded(parts.binary(f, "arith.mulf", part, part), (1, 2), (0, 3), 0.5))
    part = parts.unary(f, "math.exp", f.sliced(x, (10, 4), (16, 32)))
    return f.returned(f.inserted(part, parts.binary(f, "arith.addf", x, x), (30, 5)))


@_family("functions")
def _functions(f: Function, seed: int) -> Function:
    x = f.argument((2, 500), scale=3.0)
    plus = parts.with_number(f, "arith.addf", parts.unary(f, "math.absf", x), 0.01)
    inside = parts.with_number(f, "arith.mulf", parts.unary(f, "math.tanh", x), 0.999)
    half = parts.with_number(f, "arith.mulf", parts.unary(f, "math.tanh", parts.unary(f, "math.absf", x)), 0.49)
    away = parts.with_number(f, "arith.addf", half, 0.5)  # IREE's atanh is wrong near 0
    names = (
        ("exp", "log", "sin"), ("exp2", "log2", "cos"), ("expm1", "log1p", "atan"), ("tanh", "sqrt", "asin"),
        ("erf", "rsqrt", "acos"), ("sin", "log2", "atanh"), ("tan", "cbrt", "erf"), ("cosh", "log", "tanh"),
    )[seed]  # fmt: skip
    over = (x, plus, {"asin": inside, "acos": inside, "atanh": away}.get(names[2], x))
    return f.returned(*(parts.unary(f, f"math.{name}", value) for name, value in zip(names, over, strict=True)))


@_family("functions after a matmul")
def _after(f: Function, seed: int) -> Function:
    p = parts.matmul(f, f.argument((64, 256)), f.argument((256, 64)))
    size = parts.unary(f, "math.absf", p)
    match seed % 4:
        case 0:
            return f.returned(f.each("%c = arith.constant 1.0 : f32\n%r = arith.divf %c, %a0 : f32", p))
        case 1:
            return f.returned(parts.unary(f, "math.log", size))
        case 2:
            return f.returned(parts.unary(f, "math.rsqrt", size))
    return f.returned(parts.unary(f, "math.sqrt" if seed > 3 else "math.sin", size if seed > 3 else p))


@_family("steps after a matmul")
def _steps(f: Function, seed: int) -> Function:
    p = parts.matmul(f, f.argument((64, 400)), f.argument((400, 64)))
    match seed % 4:
        case 0:
            return f.returned(parts.unary(f, "math.floor" if seed else "math.roundeven", p))
        case 1:
            return f.returned(f.each("%r = arith.fptosi %a0 : f32 to i32", p, kind="i32"))
        case 2:
            z = f.scalar(0.5, "f32")
            return f.returned(f.each(f"%r = arith.cmpf ogt, %a0, {z} : f32", p, kind="i1"))
    z = f.scalar(0.0, "f32")
    body = f"%b = arith.cmpf olt, %a0, {z} : f32\n%n = arith.constant 7.0 : f32\n%r = arith.select %b, %n, %a0 : f32"
    return f.returned(f.each(body, p))


@_family("quantised")
def _quantised(f: Function, seed: int) -> Function:
    if seed % 2:
        a, b = f.argument((40, 300), "i8"), f.argument((300, 48), "i8")
        p = f.contracted(a, b, "mk,kn->mn", (40, 48), "i32")
        real = f.each("%r = arith.sitofp %a0 : i32 to f32", p, kind="f32")
        y = parts.with_number(f, "arith.mulf", real, 0.003)
        return f.returned(y if seed < 4 else parts.quantised(f, y, 0.37))
    p = parts.matmul(f, f.argument((64, 128)), f.argument((128, 64)))
    q = parts.quantised(f, p, 1.0 if seed < 4 else 0.21, rounding="math.round" if seed % 4 else "math.roundeven")
    return f.returned(q)


@_family("f16")
def _f16(f: Function, seed: int) -> Function:
    return f.returned(_narrow(f, seed, "f16"))


@_family("bf16")
def _bf16(f: Function, seed: int) -> Function:
    return f.returned(_narrow(f, seed, "bf16"))


def _narrow(f: Function, seed: int, kind: str) -> Value:
    match seed:
        case 0 | 1:
            return parts.matmul(f, f.argument((32, 200), kind), f.argument((200, 48), kind))
        case 2 | 3:
            a, b = f.argument((32, 500 * seed), kind), f.argument((500 * seed, 24), kind)
            return f.contracted(a, b, "mk,kn->mn", (32, 24), "f32")
        case 4:
            powers = parts.unary(f, "math.exp", f.argument((12, 100), kind))
            return parts.binary(f, "arith.divf", powers, (parts.summed(f, powers, [1]), "d0"))
        case 5:
            x = parts.matmul(f, f.argument((16, 64), kind), f.argument((64, 64), kind, 0.1))
            return parts.relu(f, parts.biased(f, x, f.argument((64,), kind)))
        case 6:
            x = f.argument((16, 128), kind)
            y = parts.normalised(f, parts.converted(f, x, "f32"))
            return parts.converted(f, y, kind)
    return parts.summed(f, f.argument(f.rng.random((8, 3000)), kind), [1])


@_family("f64", *_KEEP_F64)
def _f64(f: Function, seed: int) -> Function:
    match seed % 4:
        case 0:
            return f.returned(parts.matmul(f, f.argument((24, 300), "f64"), f.argument((300, 24), "f64")))
        case 1:
            return f.returned(parts.summed(f, f.argument((4, 5000), "f64"), [1]))
        case 2:
            return f.returned(parts.normalised(f, f.argument((8, 100), "f64"), epsilon=1e-12))
    x = parts.matmul(f, f.argument((16, 64), "f64"), f.argument((64, 16), "f64"))
    return f.returned(parts.binary(f, "arith.divf", parts.unary(f, "math.sqrt", parts.unary(f, "math.absf", x)), x))


@_family("integers")
def _integers(f: Function, seed: int) -> Function:
    kind = ("i8", "i16", "i32", "i64")[seed // 2]
    a, b = f.argument((13, 57), kind, 1e9), f.argument((13, 57), kind, 1e9)
    if seed % 2:
        t = f.argument((57, 20), kind, 1e9)
        return f.returned(f.contracted(a, t, "mk,kn->mn", (13, 20)))
    k3, k5, k7 = (f.scalar(n, kind) for n in (3, 5, 7))
    body = f"""%s = arith.muli %a0, %a1 : {kind}
               %t = arith.addi %s, %a0 : {kind}
               %d = arith.divsi %t, {k7} : {kind}
               %m = arith.remsi %a1, {k5} : {kind}
               %u = arith.shrsi %t, {k3} : {kind}
               %v = arith.shrui %t, {k3} : {kind}
               %w = arith.xori %u, %v : {kind}
               %x = arith.addi %w, %d : {kind}
               %y = arith.maxsi %x, %m : {kind}
               %z = arith.minui %y, %a1 : {kind}
               %r = arith.subi %z, %m : {kind}"""
    return f.returned(f.each(body, a, b))
