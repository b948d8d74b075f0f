"""How files are put together to be sent."""

from __future__ import annotations

import hashlib
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RunError
from harness.fleet import files, tasks
from harness.fleet.files import Item, Luggage, bundles, small_ones, write_chunk

_MOST = 100


@given(st.lists(st.integers(0, 250)))
def test_small_files_go_together_and_larger_ones_alone(sizes: list[int]) -> None:
    items = [Item(place=f"fleet/{number}", sha256="", size=size) for number, size in enumerate(sizes)]
    found = list(bundles(items, _MOST))
    assert [item for bundle in found for item in bundle] == items
    assert all(len(bundle) == 1 or sum(item.size for item in bundle) <= _MOST for bundle in found)
    pairs = itertools.pairwise(found)
    assert all(sum(item.size for item in bundle) + after[0].size > _MOST for bundle, after in pairs)


def test_what_was_sent_and_is_no_longer_used_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    monkeypatch.setattr(files, "LIMIT_BYTES", 2)
    monkeypatch.setattr(files, "_trimmed_s", float("-inf"))
    sent = {}
    for name in ("old", "needed", "young"):
        sha256 = hashlib.sha256(name.encode()).hexdigest()
        sent[name] = Item(place=f"fleet/{sha256[:2]}/{sha256}/{name}", sha256=sha256, size=len(name))
        write_chunk(sent[name], 0, name.encode(), "")
        if name != "young":
            os.utime(tmp_path / sent[name].place, (0, 0))
    assert tasks.receive_small({sent["needed"]: b"needed"}, "") is None
    assert [name for name, item in sent.items() if (tmp_path / item.place).exists()] == ["needed", "young"]


def test_an_answer_has_the_smallest_of_its_files_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    items = [Item(place=f"{size}", sha256="", size=size) for size in (70, 20, 0, 30)]
    for item in items:
        (tmp_path / item.place).write_bytes(b"x" * item.size)
    assert {item.size: len(data) for item, data in small_ones(items, _MOST).items()} == {0: 0, 20: 20, 30: 30}


def test_a_file_that_a_host_needs_and_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    gone = tmp_path / "weights.irpa"
    with pytest.raises(RunError) as caught:
        Luggage().pack({"parameters": gone})
    assert str(caught.value) == (
        f"{gone}: cannot be read (No such file or directory); see who removes files of the cache"
    )
