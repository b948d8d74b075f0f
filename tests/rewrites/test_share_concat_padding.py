"""A shared buffer has the padding around it that its readers would add one by one."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from harness.rewrites.share_concat import share_concat
from tests.rewrites.tools import assert_rewritten, rewritten

DATA = Path(__file__).parent / "data"


def program(*lines: str, results: dict[str, str]) -> str:
    """A function of two columns %p and %q and a number %x, with the constants %zero and %one."""
    return f"""
    func.func @main(%p: tensor<2x1xf32>, %q: tensor<2x1xf32>, %x: f32) -> ({", ".join(results.values())}) {{
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      {" ".join(lines)}
      return {", ".join(results)} : {", ".join(results.values())}
    }}
    """


def concat(result: str, *parts: str) -> str:
    """Columns side by side."""
    kinds = ", ".join(["tensor<2x1xf32>"] * len(parts))
    return f"{result} = tensor.concat dim(1) {', '.join(parts)} : ({kinds}) -> tensor<2x{len(parts)}xf32>\n"


def pad(result: str, source: str, columns: int, *, value: str = "%zero", nofold: str = "") -> str:
    """One row above and one below."""
    return f"""
      {result} = tensor.pad {source} {nofold} low[1, 0] high[1, 0] {{
      ^bb0(%i: index, %j: index):
        tensor.yield {value} : f32
      }} : tensor<2x{columns}xf32> to tensor<4x{columns}xf32>
    """


TWO = (concat("%two", "%p", "%q"), concat("%three", "%p", "%q", "%p"))


def test_the_block_of_the_issue() -> None:
    """All of its tensor.pad go, of the first convolution's input as well, which is a part and no concatenation."""
    before, after = ((DATA / name).read_text() for name in ("esrgan_issue.mlir", "esrgan_issue.shared.mlir"))
    assert_rewritten(before, after, share_concat)


def test_without_the_option_every_reader_adds_its_padding() -> None:
    text, matched = rewritten((DATA / "esrgan_issue.mlir").read_text(), partial(share_concat, padding=False))
    assert matched == [1]
    assert text.count("tensor.pad") == 3
    assert "linalg.fill" not in text
    assert "tensor.extract_slice %inserted_slice_1[0, 0, 0, 0] [1, 3, 4, 3] [1, 1, 1, 1]" in text


@pytest.mark.parametrize(("kind", "zero"), [("f16", "0.0"), ("bf16", "0.0"), ("f64", "0.0"), ("i8", "0"), ("i32", "0")])
def test_elements_may_be_of_any_kind(kind: str, zero: str) -> None:
    text = program(*TWO, pad("%a", "%two", 2), results={"%a": "tensor<4x2xf32>"})
    text = text.replace("%one = arith.constant 1.0 : f32", "").replace("0.0 : f32", f"{zero} : {kind}")
    shared, matched = rewritten(text.replace("f32", kind), share_concat)
    assert matched == [1]
    assert "tensor.pad" not in shared


def test_padding_in_a_block_before_the_buffer_stays() -> None:
    """%p is a part of the family, and is padded where there is no buffer yet."""
    before, after = pad("%early", "%p", 1), pad("%a", "%two", 2) + pad("%b", "%three", 3)
    kinds = {"%early": "tensor<4x1xf32>", "%a": "tensor<4x2xf32>", "%b": "tensor<4x3xf32>"}
    text, matched = rewritten(program(before, "cf.br ^later\n^later:\n", *TWO, after, results=kinds), share_concat)
    assert matched == [1]
    assert text.count("tensor.pad") == 1
    assert text.count("linalg.fill") == 1


def test_a_reader_without_padding_gets_the_inside() -> None:
    before = program(
        *TWO,
        pad("%a", "%two", 2),
        pad("%b", "%three", 3),
        results={"%a": "tensor<4x2xf32>", "%b": "tensor<4x3xf32>", "%two": "tensor<2x2xf32>"},
    )
    after = """
    func.func @main(%p: tensor<2x1xf32>, %q: tensor<2x1xf32>, %x: f32)
        -> (tensor<4x2xf32>, tensor<4x3xf32>, tensor<2x2xf32>) {
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %0 = tensor.empty() : tensor<4x3xf32>
      %fill = arith.constant 0.0 : f32
      %1 = linalg.fill ins(%fill : f32) outs(%0 : tensor<4x3xf32>) -> tensor<4x3xf32>
      %2 = tensor.insert_slice %p into %1[1, 0] [2, 1] [1, 1] : tensor<2x1xf32> into tensor<4x3xf32>
      %3 = tensor.insert_slice %q into %2[1, 1] [2, 1] [1, 1] : tensor<2x1xf32> into tensor<4x3xf32>
      %4 = tensor.insert_slice %p into %3[1, 2] [2, 1] [1, 1] : tensor<2x1xf32> into tensor<4x3xf32>
      %two = tensor.extract_slice %4[1, 0] [2, 2] [1, 1] : tensor<4x3xf32> to tensor<2x2xf32>
      %a = tensor.extract_slice %4[0, 0] [4, 2] [1, 1] : tensor<4x3xf32> to tensor<4x2xf32>
      return %a, %4, %two : tensor<4x2xf32>, tensor<4x3xf32>, tensor<2x2xf32>
    }
    """
    assert_rewritten(before, after, share_concat)


NOT_FRAMED = {
    "only half of the readers add it": (pad("%a", "%two", 2), {"%a": "tensor<4x2xf32>", "%three": "tensor<2x3xf32>"}),
    "half of them add another value": (
        pad("%a", "%two", 2) + pad("%b", "%three", 3, value="%one"),
        {"%a": "tensor<4x2xf32>", "%b": "tensor<4x3xf32>"},
    ),
    "it is no constant": (
        pad("%a", "%two", 2, value="%x") + pad("%b", "%three", 3, value="%x"),
        {"%a": "tensor<4x2xf32>", "%b": "tensor<4x3xf32>"},
    ),
    "a padded tensor of its own is wanted": (
        pad("%a", "%two", 2, nofold="nofold") + pad("%b", "%three", 3, nofold="nofold"),
        {"%a": "tensor<4x2xf32>", "%b": "tensor<4x3xf32>"},
    ),
    "it is along the axis": (
        (pad("%a", "%two", 2) + pad("%b", "%three", 3))
        .replace("low[1, 0] high[1, 0]", "low[0, 1] high[0, 1]")
        .replace("to tensor<4x2xf32>", "to tensor<2x4xf32>")
        .replace("to tensor<4x3xf32>", "to tensor<2x5xf32>"),
        {"%a": "tensor<2x4xf32>", "%b": "tensor<2x5xf32>"},
    ),
}


@pytest.mark.parametrize("why", NOT_FRAMED)
def test_without_a_majority_for_one_constant_padding_the_buffer_has_none(why: str) -> None:
    readers, results = NOT_FRAMED[why]
    text, matched = rewritten(program(*TWO, readers, results=results), share_concat)
    assert matched == [1]
    assert text.count("tensor.pad") == readers.count("tensor.pad")
    assert "linalg.fill" not in text


def block(number: int, column: str, *, value: str = "%zero") -> str:
    """A family with padding whose host is %three<number>, and a column %next<number> that is computed from it."""
    return "".join(
        [
            concat(f"%two{number}", column, "%q"),
            pad(f"%a{number}", f"%two{number}", 2, value=value),
            concat(f"%three{number}", column, "%q", column),
            pad(f"%b{number}", f"%three{number}", 3, value=value),
            f"%c{number} = tensor.extract_slice %a{number}[1, 1] [2, 1] [1, 1] : tensor<4x2xf32> to tensor<2x1xf32>\n",
            f"%d{number} = tensor.extract_slice %b{number}[1, 1] [2, 1] [1, 1] : tensor<4x3xf32> to tensor<2x1xf32>\n",
            f"%next{number} = arith.addf %c{number}, %d{number} : tensor<2x1xf32>\n",
        ]
    )


NEXT = {"%next1": "tensor<2x1xf32>", "%next2": "tensor<2x1xf32>"}


def test_a_block_that_follows_goes_on_with_the_buffer() -> None:
    """Its columns are overwritten before they are read, and its padding is there already."""
    text, matched = rewritten(program(block(1, "%p"), block(2, "%next1"), results=NEXT), share_concat)
    assert matched == [2]
    assert text.count("linalg.fill") == 1
    lines = [line.strip() for line in text.splitlines()]
    inserted = [line for line in lines if "tensor.insert_slice" in line]
    assert " into %inserted_slice_3[1, 0]" in inserted[3]  # the state after the first block's three insertions


NEW_BUFFER = {
    "blocks side by side": program(block(1, "%p"), block(2, "%q"), results=NEXT),
    "another padding": program(block(1, "%p"), block(2, "%next1", value="%one"), results=NEXT),
    "the buffer is still read": program(
        block(1, "%p"), block(2, "%next1"), results={**NEXT, "%b1": "tensor<4x3xf32>", "%three1": "tensor<2x3xf32>"}
    ),
}


@pytest.mark.parametrize("why", NEW_BUFFER)
def test_otherwise_a_block_has_a_buffer_of_its_own(why: str) -> None:
    text, matched = rewritten(NEW_BUFFER[why], share_concat)
    assert matched == [2]
    assert text.count("linalg.fill") == 2
