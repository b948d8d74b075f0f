"""Whatever the program, sharing buffers changes no bit of its results."""

from __future__ import annotations

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.rewrites.share_concat_interpreter import interpret
from tests.rewrites.share_concat_programs import Program, programs
from tests.rewrites.share_concat_tools import compile_module, printed, rewrite


@settings(max_examples=300)
@given(program=programs(), padding=st.booleans())
def test_the_results_are_the_same(program: Program, padding: bool) -> None:
    """By an interpreter to which unwritten memory is NaN: a slice that is read too early, or garbage, would show."""
    matched, text = rewrite(program.text, padding=padding)
    event(f"shares: {matched > 0}, with a frame: {'linalg.fill' in text}")
    before, after = interpret(program.text, program.arguments), interpret(text, program.arguments)
    assert [result.tobytes() for result in before] == [result.tobytes() for result in after]
    if not matched:
        assert text == printed(program.text)


@settings(max_examples=100)
@given(program=programs(), padding=st.booleans())
def test_nothing_is_left_to_share(program: Program, padding: bool) -> None:
    _, text = rewrite(program.text, padding=padding)
    assert rewrite(text, padding=padding) == (0, text)


@settings(max_examples=8)
@given(program=programs(), padding=st.booleans())
def test_the_results_are_the_same_compiled(program: Program, padding: bool) -> None:
    _, text = rewrite(program.text, padding=padding)
    before, after = (compile_module(one).run(*program.arguments) for one in (program.text, text))
    assert [result.tobytes() for result in before] == [result.tobytes() for result in after]
