"""A rewrite is a function over a module, so its test needs the compiler's Python bindings and nothing else.

In a package of your own the import is `from example_plugins.rewrites import one_exp`.
"""

from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from tests.example_plugins.example_plugins.rewrites import one_exp

PROGRAM = """
func.func @main(%x: f32, %y: f32) -> (f32, f32, f32) {
  %a = math.exp %x : f32
  %b = math.exp %y : f32
  %found = arith.mulf %a, %b : f32
  %square = arith.mulf %a, %a : f32
  %other = arith.mulf %a, %y : f32
  return %found, %square, %other : f32, f32, f32
}
"""


def rewritten(text: str, **options: int) -> tuple[int, str]:
    """How often the rewrite matched, and the program that it left, without what nothing uses."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        matched = one_exp(module, **options)
        module.operation.verify()
        PassManager.parse("builtin.module(func.func(canonicalize))").run(module.operation)
        return matched, str(module)


def test_products_of_exponentials_become_exponentials_of_sums() -> None:
    matched, text = rewritten(PROGRAM)
    assert matched == 2
    assert "arith.addf %arg0, %arg1" in text
    assert "arith.addf %arg0, %arg0" in text
    assert text.count("arith.mulf") == 1, "exp(x) * y is something else"


def test_no_more_than_the_limit() -> None:
    matched, text = rewritten(PROGRAM, limit=1)
    assert matched == 1
    assert "arith.addf %arg0, %arg1" in text
    assert text.count("arith.mulf") == 2


def test_where_nothing_matches_nothing_changes() -> None:
    text = PROGRAM.replace("math.exp", "math.tanh")
    with ir.Context():
        module = ir.Module.parse(text)
        before = str(module)
        assert one_exp(module) == 0
        assert str(module) == before
