"""How files are put together to be sent."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from harness.fleet.files import Item, bundles

_MOST = 100


@given(st.lists(st.integers(0, 250)))
def test_small_files_go_together_and_larger_ones_alone(sizes: list[int]) -> None:
    items = [Item(place=f"fleet/{number}", sha256="", size=size) for number, size in enumerate(sizes)]
    found = list(bundles(items, _MOST))
    assert [item for bundle in found for item in bundle] == items
    assert all(len(bundle) == 1 or sum(item.size for item in bundle) <= _MOST for bundle in found)
    pairs = itertools.pairwise(found)
    assert all(sum(item.size for item in bundle) + after[0].size > _MOST for bundle, after in pairs)
