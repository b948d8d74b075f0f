"""A small part of the simulated bisects, and the place that their table has in the documents."""

from __future__ import annotations

import pytest

from benchmarks.bisect import BEGIN, END, KINDS, ROOT, Kind, line


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_plain_step_is_named_and_nothing_else(kind: Kind) -> None:
    name, size, step, right, wrong, *_ = line(kind, 16, 1.0, 4)
    assert (name, size, step) == (kind.name, "16", "100 %")
    assert (right, wrong) == ("100.0 %", "0.0 %")


def test_the_table_has_a_place() -> None:
    text = (ROOT / "docs/bisect.md").read_text()
    assert text.index(BEGIN) < text.index(END)
