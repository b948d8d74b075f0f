"""ReLU and leaky ReLU as arith.maximumf: which forms, and that no value changes."""

from __future__ import annotations

import numpy as np
import pytest

from harness.rewrites.ingress_relu import relu_to_maximum
from tests.rewrites.tools import Array, Program, assert_left_alone, assert_rewritten, rewritten

KIND = "tensor<3x16xf32>"


def function(body: str, name: str = "main", slope: str = "0.2 : f32") -> str:
    """A function that applies a body, which makes `%y0` of `%in`, `%zero` and `%slope`, to each element."""
    zero = "%zero = arith.constant 0.0 : f32" if "%zero" in body else ""
    return f"""
func.func @{name}(%x: {KIND}) -> {KIND} {{
  {zero}
  %slope = arith.constant {slope}
  %empty = tensor.empty() : {KIND}
  %y = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%x : {KIND}) outs(%empty : {KIND}) {{
  ^bb0(%in: f32, %out: f32):
    {body}
    linalg.yield %y0 : f32
  }} -> {KIND}
  return %y : {KIND}
}}
"""


def relu(comparison: str, selection: str) -> str:
    return f"%p = arith.cmpf {comparison} : f32\n%y0 = arith.select %p, {selection} : f32"


ZERO_OR_NAN = "ReLUs that a maximum differs from for a NaN or for -0.0"
SLOPE = "ReLUs with a slope that is no constant between 2**-14 and 1"
RELUS = {
    "as_exported": relu("ugt, %in, %zero", "%in, %zero"),
    "zero_first": relu("ult, %zero, %in", "%in, %zero"),
    "values_exchanged": relu("ole, %in, %zero", "%zero, %in"),
    "both": relu("oge, %zero, %in", "%zero, %in"),
}
# As PyTorch computes it, and as in the ESRGAN of https://github.com/iree-org/iree/issues/11102.
SELECTED = """%scaled = arith.mulf {1} : f32
    %p = arith.cmpf {0}, %in, %zero : f32
    %y0 = arith.select %p, %in, %scaled : f32"""
SUMMED = """%p = arith.cmpf {0}, %in, %zero : f32
    %above = arith.select %p, %in, %zero : f32
    %below = arith.select %p, %zero, %in : f32
    %scaled = arith.mulf {1} : f32
    %y0 = arith.addf {2} : f32"""
OPERANDS = ("%below, %slope", "%above, %scaled")
LEAKY = {
    "selected": SELECTED.format("ogt", "%in, %slope"),
    "selected_at_zero_too": SELECTED.format("oge", "%slope, %in"),
    "selected_unordered": SELECTED.format("ugt", "%in, %slope"),
    "summed": SUMMED.format("ugt", *OPERANDS),
    "summed_the_other_way": SUMMED.format("ogt", "%slope, %below", "%scaled, %above"),
}


@pytest.mark.parametrize("form", RELUS)
def test_relu_becomes_a_maximum(form: str) -> None:
    maximum = "%y0 = arith.maximumf %in, %zero : f32"
    assert_rewritten(function(RELUS[form]), function(maximum), relu_to_maximum)


@pytest.mark.parametrize("form", LEAKY)
def test_leaky_relu_becomes_a_maximum(form: str) -> None:
    factors = "%slope, %in" if "%slope, %in :" in LEAKY[form] else "%in, %slope"
    maximum = f"""%scaled = arith.mulf {factors} : f32
    %y0 = arith.maximumf %in, %scaled : f32"""
    assert_rewritten(function(LEAKY[form]), function(maximum), relu_to_maximum)


def test_a_slope_may_be_rounded_on_the_spot() -> None:
    rounded = "%narrow = arith.truncf %slope : f64 to f32\n"
    body = SUMMED.format("ugt", "%below, %narrow", "%above, %scaled")
    after = f"""{rounded}
    %scaled = arith.mulf %in, %narrow : f32
    %y0 = arith.maximumf %in, %scaled : f32"""
    before, after = (function(text, slope="0.2 : f64") for text in (rounded + body, after))
    assert_rewritten(before, after, relu_to_maximum)


@pytest.mark.parametrize("slope", ["0.0", "-0.5", "1.5", "1.0e-5", "0x7FC00000"])
@pytest.mark.parametrize("form", ["selected", "summed_the_other_way"])
def test_other_slopes_are_left_alone(form: str, slope: str) -> None:
    text = function(LEAKY[form], slope=f"{slope} : f32")
    assert_left_alone(text, relu_to_maximum, SLOPE if form == "selected" else ZERO_OR_NAN)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (relu("ogt, %in, %zero", "%in, %zero"), ZERO_OR_NAN),  # a NaN gives 0
        (relu("uge, %in, %zero", "%in, %zero"), ZERO_OR_NAN),  # -0.0 stays
        (relu("ugt, %in, %zero", "%zero, %in"), ""),  # a minimum
        (relu("ult, %in, %zero", "%in, %zero"), ""),
        (relu("ugt, %in, %slope", "%in, %slope"), ""),  # not at 0
        (relu("ugt, %in, %zero", "%slope, %zero"), ""),
        (relu("une, %in, %zero", "%in, %zero"), ""),
        (SUMMED.replace("%p, %zero, %in", "%p, %zero, %slope").format("ogt", *OPERANDS), ZERO_OR_NAN),
        # Halves that treat a NaN differently.
        (
            SUMMED.replace("%below =", "%q = arith.cmpf ugt, %in, %zero : f32\n%below =")
            .replace("%p, %zero", "%q, %zero")
            .format("ogt", *OPERANDS),
            ZERO_OR_NAN,
        ),
    ],
)
def test_other_selections_are_left_alone(body: str, reason: str) -> None:
    assert_left_alone(function(body), relu_to_maximum, reason)


def edge_cases() -> Array:
    """Zeros of both signs, infinities, NaN, the smallest and largest of each kind, and ordinary numbers."""
    limits = np.finfo(np.float32)
    some = [0.0, 1.0, 2.5, np.inf, limits.max, limits.tiny, limits.smallest_subnormal, 3 * limits.smallest_subnormal]
    values = np.array([*some, *(-one for one in some), np.nan, *np.linspace(-3, 3, 31)], dtype=np.float32)
    return values.reshape(-1, 16)


def flushed(values: Array) -> Array:
    """Subnormal numbers as 0: compiled programs read them so, but may pass them on unread in a selection."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.float32(0), values)


def test_no_value_changes() -> None:
    functions = {**RELUS, **LEAKY}
    before = "".join(function(body, name) for name, body in functions.items())
    after, (matched,) = rewritten(before, relu_to_maximum)
    assert matched == len(functions)
    selecting, maximum = Program(before), Program(after)
    for name in functions:
        expected, actual = (flushed(program(edge_cases(), function=name)[0]) for program in (selecting, maximum))
        np.testing.assert_array_equal(actual, expected, err_msg=name)
