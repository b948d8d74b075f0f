"""Other tools' rules, on arrays whose answer can be worked out by hand."""

import pytest

from benchmarks.verdicts.others import (
    OTHERS,
    Samples,
    given,
)
from tests.benchmarks_verdicts.conftest import Script


@pytest.mark.parametrize("one", OTHERS, ids=lambda one: one.name)
def test_no_rule_finds_what_is_not_there_and_all_find_a_half(one: object, script: Script) -> None:
    rule = one.rule  # type: ignore[attr-defined]
    quiet = {"spread": 1e-6, "generations": 30, "rounds": 12}
    assert rule(*given(script(change=0.5, **quiet))) == 1
    again = Samples(processes=tuple(each.base.ns for each in script(**quiet)))
    assert rule(again, again) == 0
