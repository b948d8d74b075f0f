"""Very many rows: changed copies of them, and those of one verdict or metric, are what plain Python gives."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import TIMED
from harness.records.comparison import VERDICTS, Row, Rows, Verdict, altered

ROW = Row(case="net/tiled@cpu", model="net", variant="tiled", device="cpu", metric="latency", verdict="new")


def test_an_altered_row_is_a_replaced_one_and_the_first_stays() -> None:
    fields = {"verdict": "failed", "stderr": "boom", "base_value": 3.0}
    assert altered(ROW, **fields) == replace(ROW, **fields)  # type: ignore[arg-type]  # of any field
    assert list(vars(altered(ROW, **fields))) == list(vars(ROW))  # reports write the fields in their order
    assert ROW.verdict == "new"


@pytest.mark.parametrize("name", ["ratio", "ci_low", "ci_high", "p", "floor", "base_value", "head_value", "seconds"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_figure_that_is_no_number_is_seen(name: str, value: float) -> None:
    assert Rows([ROW, replace(ROW, base_value=10, ratio=1.5)]).are_finite
    assert not Rows([ROW, altered(ROW, **{name: value})]).are_finite


@given(
    st.lists(st.tuples(st.sampled_from(VERDICTS), st.sampled_from(["latency", "copies", "compile-time"]))),
    st.lists(st.sampled_from(VERDICTS), unique=True),
)
def test_rows_of_a_verdict_or_a_metric(made: list[tuple[Verdict, str]], verdicts: list[Verdict]) -> None:
    rows = Rows(
        replace(ROW, case=str(number), verdict=verdict, metric=metric) for number, (verdict, metric) in enumerate(made)
    )
    assert rows.of_verdict(*verdicts) == [row for row in rows if row.verdict in verdicts]
    assert rows.by_metric.get("copies", []) == [row for row in rows if row.metric == "copies"]
    assert rows.counted == [row for row in rows if row.metric not in TIMED]
