"""Shards of a plan: each group in one of them, the same one on every machine, and no shard much larger than another."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.models.model import Model
from harness.records.case import Case
from harness.suite.shards import Part, Shard, parse_shard, part_of
from tests.builders import a_model, make_case

# By model: its devices and how many variants it has on each.
shapes = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=6),
    st.tuples(st.lists(st.sampled_from(["cpu", "gpu", "pool"]), min_size=1, unique=True), st.integers(1, 5)),
    min_size=1,
    max_size=12,
)


def a_plan(models: dict[str, tuple[list[str], int]]) -> list[Case]:
    return [
        make_case(f"v{number}", model=model, device=device)
        for model, (devices, variants) in models.items()
        for device in devices
        for number in range(variants)
    ]


def parts(cases: Sequence[Case], count: int, models: Sequence[Model] = ()) -> list[Part]:
    known = {model.name: model for model in models}
    every = [known.get(name) or a_model(name) for name in dict.fromkeys(case.model for case in cases)]
    return [part_of(cases, every, Shard(number=number, count=count)) for number in range(1, count + 1)]


def groups_of(part: Part) -> set[str]:
    return {case.group for case in part.cases}


@given(models=shapes, count=st.integers(1, 9))
def test_shards_have_each_case_once_in_order_and_the_devices_of_a_model_together(
    models: dict[str, tuple[list[str], int]], count: int
) -> None:
    cases = a_plan(models)
    divided = parts(cases, count)
    assert Counter(case.name for part in divided for case in part.cases) == Counter(case.name for case in cases)
    assert sorted(group for part in divided for group in groups_of(part)) == sorted(divided[0].groups)
    for part in divided:
        assert list(part.cases) == [case for case in cases if case in part.cases]
        assert part.groups_elsewhere == len(part.groups) - len(groups_of(part))
    of_model = [{case.model for case in part.cases} for part in divided]
    assert sum(map(len, of_model)) == len(models)


@given(models=shapes, count=st.integers(1, 9))
def test_no_shard_is_empty_if_it_need_not_be_or_larger_than_its_share_by_more_than_what_stays_together(
    models: dict[str, tuple[list[str], int]], count: int
) -> None:
    cases = a_plan(models)
    sizes = Counter(case.model for case in cases)
    found = [len(part.cases) for part in parts(cases, count)]
    assert max(found) <= math.ceil(len(cases) / count) + max(sizes.values())
    assert sum(map(bool, found)) == min(count, len(sizes))


@given(models=shapes, count=st.integers(1, 9), seed=st.randoms())
def test_the_order_of_the_plan_and_what_this_machine_lacks_change_no_shard(
    models: dict[str, tuple[list[str], int]], count: int, seed: object
) -> None:
    cases = a_plan(models)
    other = [replace(case, skip="there is no GPU") if case.device == "gpu" else case for case in cases]
    seed.shuffle(other)  # type: ignore[attr-defined]
    names = [[{case.name for case in part.cases} for part in parts(plan, count)] for plan in (cases, other)]
    assert names[0] == names[1]


def test_devices_that_onnx_runtime_checks_each_by_itself_may_be_apart() -> None:
    cases = a_plan({"net": (["cpu", "gpu", "pool"], 2)})
    alone = replace(a_model("net"), reference="onnxruntime")
    assert [len(part.cases) for part in parts(cases, 3, [alone])] == [2, 2, 2]
    assert sorted(len(part.cases) for part in parts(cases, 3)) == [0, 0, 6]


@pytest.mark.parametrize("text", ["0/8", "9/8", "x/y", "2/8/9", ""])
def test_what_is_no_shard_is_one_sentence(text: str) -> None:
    assert str(parse_shard(" 2/8 ")) == "2/8"
    with pytest.raises(UsageError) as caught:
        parse_shard(text)
    assert str(caught.value) == (
        f"--shard {text}: is no shard; write its number and how many there are, as in 2/8, from 1/8 to 8/8"
    )
