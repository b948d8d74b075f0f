"""Shards of a plan: each model in one of them, the same one on every machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.suite.shards import Shard, parse_shard
from tests.builders import make_case


@given(models=st.lists(st.text(max_size=6), max_size=12, unique=True), count=st.integers(1, 9))
def test_each_model_is_in_one_shard_with_all_of_its_devices(models: list[str], count: int) -> None:
    shards = [Shard(number=number, count=count) for number in range(1, count + 1)]
    for model in models:
        having = [[shard.has(make_case(model=model, device=device)) for shard in shards] for device in ("cpu", "gpu")]
        assert having[0] == having[1]
        assert having[0].count(True) == 1


def test_shards_are_about_equally_large_and_stay_what_they_are() -> None:
    found = {shard: [f"net{i}" for i in range(40) if Shard(number=shard, count=3).has(make_case(model=f"net{i}"))]
             for shard in (1, 2, 3)}  # fmt: skip
    assert all(8 <= len(models) <= 20 for models in found.values())
    assert found[1][:4] == ["net1", "net3", "net5", "net13"]


@pytest.mark.parametrize("text", ["0/8", "9/8", "x/y", "2/8/9", ""])
def test_what_is_no_shard_is_one_sentence(text: str) -> None:
    assert str(parse_shard(" 2/8 ")) == "2/8"
    with pytest.raises(UsageError) as caught:
        parse_shard(text)
    assert str(caught.value) == (
        f"--shard {text}: is no shard; write its number and how many there are, as in 2/8, from 1/8 to 8/8"
    )
