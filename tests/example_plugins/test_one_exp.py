"""A rewrite is a function over the module, so its test needs the compiler's Python bindings and nothing else.

In a package of your own the import is `from example_plugins.rewrites import one_exp`.
"""

from iree.compiler import ir

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


def test_products_of_exponentials_become_exponentials_of_sums_as_far_as_the_limit() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(PROGRAM)
        assert one_exp(module, limit=1) == 1
        assert "arith.addf %arg0, %arg1" in str(module)
        assert one_exp(module) == 1
        module.operation.verify()
        text = str(module)
        assert "arith.addf %arg0, %arg0" in text
        assert text.count("arith.mulf") == 1, "exp(x) * y is something else"
        assert one_exp(module) == 0
        assert str(module) == text, "where nothing matches nothing changes"
