"""Concatenations of the same tensors share one buffer: what the rewrite makes of small programs, exactly."""

from __future__ import annotations

import pytest

from harness.rewrites.share_concat import share_concat
from tests.rewrites.tools import assert_left_alone, assert_rewritten, rewritten

# Two concatenations, the first a part of the second; %p2 is computed from the first one.
PREFIX = """
func.func @main(%p: tensor<2x3xf32>, %q: tensor<1x3xf32>) -> tensor<6x3xf32> {
  %0 = tensor.empty() : tensor<3x3xf32>
  %1 = tensor.insert_slice %p into %0[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<3x3xf32>
  %2 = tensor.insert_slice %q into %1[2, 0] [1, 3] [1, 1] : tensor<1x3xf32> into tensor<3x3xf32>
  %r = arith.mulf %2, %2 : tensor<3x3xf32>
  %3 = tensor.empty() : tensor<6x3xf32>
  %4 = tensor.insert_slice %p into %3[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<6x3xf32>
  %5 = tensor.insert_slice %q into %4[2, 0] [1, 3] [1, 1] : tensor<1x3xf32> into tensor<6x3xf32>
  %6 = tensor.insert_slice %r into %5[3, 0] [3, 3] [1, 1] : tensor<3x3xf32> into tensor<6x3xf32>
  return %6 : tensor<6x3xf32>
}
"""
PREFIX_SHARED = """
func.func @main(%p: tensor<2x3xf32>, %q: tensor<1x3xf32>) -> tensor<6x3xf32> {
  %0 = tensor.empty() : tensor<6x3xf32>
  %1 = tensor.insert_slice %p into %0[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<6x3xf32>
  %2 = tensor.insert_slice %q into %1[2, 0] [1, 3] [1, 1] : tensor<1x3xf32> into tensor<6x3xf32>
  %3 = tensor.extract_slice %2[0, 0] [3, 3] [1, 1] : tensor<6x3xf32> to tensor<3x3xf32>
  %r = arith.mulf %3, %3 : tensor<3x3xf32>
  %4 = tensor.insert_slice %r into %2[3, 0] [3, 3] [1, 1] : tensor<3x3xf32> into tensor<6x3xf32>
  return %4 : tensor<6x3xf32>
}
"""


def test_every_part_is_inserted_once_and_the_smaller_is_a_slice() -> None:
    assert_rewritten(PREFIX, PREFIX_SHARED, share_concat)


def test_what_was_rewritten_is_left_alone() -> None:
    assert_left_alone(PREFIX_SHARED, share_concat)


def test_tensor_concat_is_the_same() -> None:
    concat = """
    func.func @main(%p: tensor<2x3xf32>, %q: tensor<1x3xf32>) -> tensor<6x3xf32> {
      %0 = tensor.concat dim(0) %p, %q : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>
      %r = arith.mulf %0, %0 : tensor<3x3xf32>
      %1 = tensor.concat dim(0) %p, %q, %r
          : (tensor<2x3xf32>, tensor<1x3xf32>, tensor<3x3xf32>) -> tensor<6x3xf32>
      return %1 : tensor<6x3xf32>
    }
    """
    assert_rewritten(concat, PREFIX_SHARED, share_concat)


def test_a_concatenation_inside_another_is_the_same() -> None:
    nested = """
    func.func @main(%p: tensor<2x3xf32>, %q: tensor<1x3xf32>) -> tensor<6x3xf32> {
      %0 = tensor.concat dim(0) %p, %q : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>
      %r = arith.mulf %0, %0 : tensor<3x3xf32>
      %1 = tensor.concat dim(0) %0, %r : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<6x3xf32>
      return %1 : tensor<6x3xf32>
    }
    """
    assert_rewritten(nested, PREFIX_SHARED, share_concat)


def test_util_functions_are_functions() -> None:
    def as_util(text: str) -> str:
        return text.replace("func.func @", "util.func public @").replace(" return ", " util.return ")

    assert_rewritten(as_util(PREFIX), as_util(PREFIX_SHARED), share_concat)


def test_parts_are_inserted_as_they_come_to_exist_whatever_their_order_in_the_buffer() -> None:
    """Networks that put the newest first: the smaller concatenation is a suffix, along the last dimension here."""
    newest_first = """
    func.func @main(%p: tensor<2x3xf32>) -> tensor<2x9xf32> {
      %q = arith.mulf %p, %p : tensor<2x3xf32>
      %0 = tensor.concat dim(1) %q, %p : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
      %r = tensor.extract_slice %0[0, 1] [2, 3] [1, 1] : tensor<2x6xf32> to tensor<2x3xf32>
      %1 = tensor.concat dim(1) %r, %0 : (tensor<2x3xf32>, tensor<2x6xf32>) -> tensor<2x9xf32>
      return %1 : tensor<2x9xf32>
    }
    """
    shared = """
    func.func @main(%p: tensor<2x3xf32>) -> tensor<2x9xf32> {
      %0 = tensor.empty() : tensor<2x9xf32>
      %1 = tensor.insert_slice %p into %0[0, 6] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<2x9xf32>
      %q = arith.mulf %p, %p : tensor<2x3xf32>
      %2 = tensor.insert_slice %q into %1[0, 3] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<2x9xf32>
      %3 = tensor.extract_slice %2[0, 3] [2, 6] [1, 1] : tensor<2x9xf32> to tensor<2x6xf32>
      %r = tensor.extract_slice %3[0, 1] [2, 3] [1, 1] : tensor<2x6xf32> to tensor<2x3xf32>
      %4 = tensor.insert_slice %r into %2[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<2x9xf32>
      return %4 : tensor<2x9xf32>
    }
    """
    assert_rewritten(newest_first, shared, share_concat)


def test_a_chain_may_insert_in_any_order() -> None:
    backwards = """
    func.func @main(%p: tensor<2xf32>, %q: tensor<1xf32>) -> (tensor<3xf32>, tensor<5xf32>) {
      %0 = tensor.empty() : tensor<3xf32>
      %1 = tensor.insert_slice %q into %0[2] [1] [1] : tensor<1xf32> into tensor<3xf32>
      %2 = tensor.insert_slice %p into %1[0] [2] [1] : tensor<2xf32> into tensor<3xf32>
      %3 = tensor.concat dim(0) %p, %q, %p : (tensor<2xf32>, tensor<1xf32>, tensor<2xf32>) -> tensor<5xf32>
      return %2, %3 : tensor<3xf32>, tensor<5xf32>
    }
    """
    shared = """
    func.func @main(%p: tensor<2xf32>, %q: tensor<1xf32>) -> (tensor<3xf32>, tensor<5xf32>) {
      %0 = tensor.empty() : tensor<5xf32>
      %1 = tensor.insert_slice %p into %0[0] [2] [1] : tensor<2xf32> into tensor<5xf32>
      %2 = tensor.insert_slice %q into %1[2] [1] [1] : tensor<1xf32> into tensor<5xf32>
      %3 = tensor.insert_slice %p into %2[3] [2] [1] : tensor<2xf32> into tensor<5xf32>
      %4 = tensor.extract_slice %3[0] [3] [1] : tensor<5xf32> to tensor<3xf32>
      return %4, %3 : tensor<3xf32>, tensor<5xf32>
    }
    """
    assert_rewritten(backwards, shared, share_concat)


def test_each_reader_gets_a_slice_of_the_newest_state() -> None:
    """The last reader of %0 comes after %r was inserted: with a slice of the older state, that would need a copy."""
    twice = """
    func.func @main(%p: tensor<1xf32>, %q: tensor<1xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
      %0 = tensor.concat dim(0) %p, %q : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
      %r = arith.mulf %0, %0 : tensor<2xf32>
      %1 = tensor.concat dim(0) %p, %q, %r : (tensor<1xf32>, tensor<1xf32>, tensor<2xf32>) -> tensor<4xf32>
      %s = arith.addf %0, %r : tensor<2xf32>
      return %1, %s : tensor<4xf32>, tensor<2xf32>
    }
    """
    shared = """
    func.func @main(%p: tensor<1xf32>, %q: tensor<1xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
      %0 = tensor.empty() : tensor<4xf32>
      %1 = tensor.insert_slice %p into %0[0] [1] [1] : tensor<1xf32> into tensor<4xf32>
      %2 = tensor.insert_slice %q into %1[1] [1] [1] : tensor<1xf32> into tensor<4xf32>
      %3 = tensor.extract_slice %2[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
      %r = arith.mulf %3, %3 : tensor<2xf32>
      %4 = tensor.insert_slice %r into %2[2] [2] [1] : tensor<2xf32> into tensor<4xf32>
      %5 = tensor.extract_slice %4[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
      %s = arith.addf %5, %r : tensor<2xf32>
      return %4, %s : tensor<4xf32>, tensor<2xf32>
    }
    """
    assert_rewritten(twice, shared, share_concat)


def test_the_one_of_most_parts_takes_all_that_it_can() -> None:
    """%1 is a run of both of the larger ones, and goes to the larger; %3 has nothing left to share with."""
    overlapping = """
    func.func @main(%p: tensor<1xf32>, %q: tensor<1xf32>, %r: tensor<1xf32>)
        -> (tensor<2xf32>, tensor<4xf32>, tensor<3xf32>) {
      %1 = tensor.concat dim(0) %q, %r : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
      %2 = tensor.concat dim(0) %p, %q, %r, %p
          : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<4xf32>
      %3 = tensor.concat dim(0) %q, %r, %q : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
      return %1, %2, %3 : tensor<2xf32>, tensor<4xf32>, tensor<3xf32>
    }
    """
    text, matched = rewritten(overlapping, share_concat)
    assert matched == [1]
    assert "tensor.extract_slice %inserted_slice_2[1] [2] [1] : tensor<4xf32> to tensor<2xf32>" in text
    assert "tensor.concat dim(0) %arg1, %arg2, %arg1" in text


def test_families_along_different_dimensions_are_apart() -> None:
    both = """
    func.func @main(%p: tensor<2x2xf32>) -> (tensor<4x2xf32>, tensor<6x2xf32>, tensor<2x4xf32>, tensor<2x6xf32>) {
      %0 = tensor.concat dim(0) %p, %p : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
      %1 = tensor.concat dim(0) %p, %p, %p : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<6x2xf32>
      %2 = tensor.concat dim(1) %p, %p : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
      %3 = tensor.concat dim(1) %p, %p, %p : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x6xf32>
      return %0, %1, %2, %3 : tensor<4x2xf32>, tensor<6x2xf32>, tensor<2x4xf32>, tensor<2x6xf32>
    }
    """
    text, matched = rewritten(both, share_concat)
    assert matched == [2]
    assert text.count("tensor.empty() : tensor<6x2xf32>") == text.count("tensor.empty() : tensor<2x6xf32>") == 1


def test_a_buffer_does_not_open_long_before_it_is_read() -> None:
    """%c is there from the beginning; inserted then, it would keep the buffer alive for all of the time."""
    steps = "\n".join(f"%{n} = arith.mulf %{n - 1}, %{n - 1} : tensor<1xf32>" for n in range(1, 100))
    text = f"""
    func.func @main(%0: tensor<1xf32>) -> (tensor<2xf32>, tensor<3xf32>) {{
      %c = arith.constant dense<1.0> : tensor<1xf32>
      {steps}
      %two = tensor.concat dim(0) %c, %99 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
      %three = tensor.concat dim(0) %c, %99, %c : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
      return %two, %three : tensor<2xf32>, tensor<3xf32>
    }}
    """
    text, matched = rewritten(text, share_concat)
    assert matched == [1]
    assert 50 < text[: text.index("tensor.empty")].count("arith.mulf") < 99


def test_a_reader_inside_a_region_gets_its_slice_outside() -> None:
    inside = """
    func.func @main(%p: tensor<1xf32>, %q: tensor<1xf32>, %c: i1, %i: index) -> (f32, tensor<3xf32>) {
      %0 = tensor.concat dim(0) %p, %q : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
      %1 = tensor.concat dim(0) %p, %q, %p : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
      %2 = scf.if %c -> f32 {
        %3 = tensor.extract %0[%i] : tensor<2xf32>
        scf.yield %3 : f32
      } else {
        %4 = tensor.extract %1[%i] : tensor<3xf32>
        scf.yield %4 : f32
      }
      return %2, %1 : f32, tensor<3xf32>
    }
    """
    text, matched = rewritten(inside, share_concat)
    assert matched == [1]
    assert text.index("tensor.extract_slice") < text.index("scf.if")


def test_a_family_that_nothing_reads_is_no_trouble() -> None:
    assert rewritten(
        PREFIX.replace("tensor<6x3xf32> {", "() {").replace("return %6 : tensor<6x3xf32>", "return"), share_concat
    )[1] == [1]


def test_a_reader_in_a_later_block_gets_its_slice_before_the_branch() -> None:
    later = """
    func.func @main(%p: tensor<1xf32>, %q: tensor<1xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
      %0 = tensor.concat dim(0) %p, %q : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
      %1 = tensor.concat dim(0) %p, %q, %p : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
      cf.br ^later
    ^later:
      return %0, %1 : tensor<2xf32>, tensor<3xf32>
    }
    """
    text, matched = rewritten(later, share_concat)
    assert matched == [1]
    assert text.index("tensor.extract_slice") < text.index("cf.br")


LEFT_ALONE = {
    "nothing to share": """
      %0 = tensor.concat dim(0) %p, %q : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
      %1 = tensor.concat dim(0) %q, %q, %p : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<6x2xf32>
    """,
    "not along the same dimension": """
      %0 = tensor.concat dim(0) %p, %q : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
      %1 = tensor.concat dim(1) %p, %q, %p : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x6xf32>
    """,
    "dynamic": """
      %0 = tensor.concat dim(0) %d, %p : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
      %1 = tensor.concat dim(0) %d, %p, %q : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
    """,
    "an offset that is not known": """
      %0 = tensor.concat dim(0) %p, %q : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
      %e = tensor.empty() : tensor<4x2xf32>
      %1 = tensor.insert_slice %p into %e[0, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<4x2xf32>
      %2 = tensor.insert_slice %q into %1[%i, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<4x2xf32>
    """,
    "elements smaller than a byte": """
      %0 = tensor.concat dim(0) %n, %n : (tensor<1xi4>, tensor<1xi4>) -> tensor<2xi4>
      %1 = tensor.concat dim(0) %n, %n, %n : (tensor<1xi4>, tensor<1xi4>, tensor<1xi4>) -> tensor<3xi4>
    """,
    "not all of it is overwritten": """
      %0 = tensor.concat dim(0) %p, %q, %p : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<6x2xf32>
      %1 = tensor.insert_slice %p into %w[0, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<5x2xf32>
      %2 = tensor.insert_slice %q into %1[2, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<5x2xf32>
    """,
    "parts that overlap": """
      %0 = tensor.concat dim(0) %p, %q : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
      %e = tensor.empty() : tensor<4x2xf32>
      %1 = tensor.insert_slice %q into %e[2, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<4x2xf32>
      %2 = tensor.insert_slice %t into %1[0, 0] [3, 2] [1, 1] : tensor<3x2xf32> into tensor<4x2xf32>
      %3 = tensor.insert_slice %p into %2[0, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<4x2xf32>
    """,
    "gaps": """
      %0 = tensor.concat dim(0) %p, %q : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
      %e = tensor.empty() : tensor<4x2xf32>
      %1 = tensor.insert_slice %p into %e[0, 0] [2, 2] [2, 1] : tensor<2x2xf32> into tensor<4x2xf32>
      %2 = tensor.insert_slice %q into %1[1, 0] [2, 2] [2, 1] : tensor<2x2xf32> into tensor<4x2xf32>
    """,
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_what_cannot_share_is_left_alone(why: str) -> None:
    text = f"""
    func.func @main(%p: tensor<2x2xf32>, %q: tensor<2x2xf32>, %t: tensor<3x2xf32>, %w: tensor<5x2xf32>,
                    %d: tensor<?x2xf32>, %n: tensor<1xi4>, %i: index) {{
      {LEFT_ALONE[why]}
      return
    }}
    """
    assert_left_alone(text, share_concat)


def test_repeated_doubling_is_not_taken_apart_without_end() -> None:
    """Twelve doublings would be 4,096 parts of one operand."""
    levels = 12
    body = "\n".join(
        f"  %v{n + 1} = tensor.concat dim(0) %v{n}, %v{n} : (tensor<{2**n}xf32>, tensor<{2**n}xf32>) "
        f"-> tensor<{2 ** (n + 1)}xf32>"
        for n in range(levels)
    )
    text = f"""
    func.func @main(%v0: tensor<1xf32>) -> tensor<{2**levels}xf32> {{
    {body}
      return %v{levels} : tensor<{2**levels}xf32>
    }}
    """
    after, matched = rewritten(text, share_concat)
    assert 0 < matched[0] <= levels
    assert len(after.splitlines()) < 1_000
