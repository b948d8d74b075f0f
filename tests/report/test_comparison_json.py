"""A comparison as a document: what other programs may rely on, and what can be rendered again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.errors import RunError
from harness.records.comparison import VERDICTS, Comparison, GeometricMean, MachineFacts, Row, SelfcheckFacts
from harness.report import Format, render
from harness.store.kinds import COMPARISON
from tests.report.builders import make_comparison, make_full_comparison, make_nasty_comparison

# The names of each record, which other programs rely on.
NAMES = {
    "comparison": "schema_version id created base head machine within mode rule rows tool_output summary means notes "
    "settings command explained hosts",
    "side": "label run suite started toolchains machine variants commit subject",
    "machine": "description selfcheck controls controls_flagged",
    "selfcheck": "flagged rows upper_bound detects seconds when suite",
    "row": "case model variant device metric verdict ratio ci_low ci_high p floor base_value head_value unit "
    "generations rounds seconds taken own_time reason lacked_time hosts hosts_disagree gate change control repro",
    "output": "row stderr",
    "mean": "kind name ratio rows low high",
}
FORMATS: tuple[Format, ...] = ("terminal", "markdown", "json", "csv")


def document(comparison: Comparison) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    read: dict[str, Any] = json.loads(render(comparison, "json"), parse_constant=refuse)
    return read


def test_names_and_all_verdicts() -> None:
    found = document(make_full_comparison())
    records = {
        "comparison": found,
        "side": found["base"],
        "machine": found["machine"],
        "selfcheck": found["machine"]["selfcheck"],
        "row": found["rows"][0],
        "output": found["tool_output"][0],
        "mean": found["means"][0],
    }
    assert {record: list(names) for record, names in records.items()} == {
        record: names.split() for record, names in NAMES.items()
    }
    counted = document(replace(make_comparison([]), summary={"new": 2}))["summary"]
    assert counted == {**dict.fromkeys(VERDICTS, 0), "new": 2}


FINITE = st.floats(allow_nan=False, allow_infinity=False)


def plain(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    """What settings may hold."""
    return st.recursive(
        st.none() | st.booleans() | st.integers() | numbers | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    )


def rows_of(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Row]:
    maybe = dict.fromkeys(["ratio", "ci_low", "ci_high", "p", "base_value", "head_value"], st.none() | numbers)
    return st.builds(
        Row,
        **maybe,
        floor=numbers,
        seconds=numbers,
        metric=st.sampled_from(["latency", "compile-time", "instructions", "copies", "module-size"]) | st.text(),
        unit=st.sampled_from(["ns", "bytes", "count", "instructions"]) | st.text(),
        generations=st.integers(0, 1000),
        rounds=st.integers(0, 1000),
        gate=st.sampled_from(["passed", "violated", None]),
        change=st.none() | st.text(),
        reason=st.text(),
        stderr=st.text(),
        control=st.booleans(),
        repro=st.lists(st.text(), max_size=3).map(tuple),
    )


def comparisons(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Comparison]:
    checks = st.builds(SelfcheckFacts, upper_bound=numbers, detects=st.none() | numbers, seconds=numbers)
    return st.builds(
        Comparison,
        rows=st.lists(rows_of(numbers), max_size=6).map(tuple),
        means=st.lists(st.builds(GeometricMean, ratio=numbers), max_size=3).map(tuple),
        machine=st.builds(MachineFacts, selfcheck=st.none() | checks),
        summary=st.fixed_dictionaries({verdict: st.integers(0, 99) for verdict in VERDICTS}),
        settings=st.dictionaries(
            st.text() | st.sampled_from(["alpha", "confidence", "row_budget_s"]), plain(numbers), max_size=3
        ),
        notes=st.lists(st.text(), max_size=3).map(tuple),
        command=st.lists(st.text(), max_size=3).map(tuple),
    )


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(comparisons(FINITE))
def test_what_is_written_is_what_is_read(comparison: Comparison) -> None:
    assert COMPARISON.parse(render(comparison, "json")) == comparison


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(comparisons(st.floats()), st.integers(20, 200), st.booleans())
@example(make_full_comparison(), 100, True)
@example(make_nasty_comparison(), 100, True)
def test_anything_can_be_rendered_kept_and_rendered_again(comparison: Comparison, width: int, full: bool) -> None:
    """A NaN reads as nothing, so that it is the same only as far as it says anything."""
    again = COMPARISON.parse(json.dumps(document(comparison)))
    for form in FORMATS:
        text = render(comparison, form, full=full, width=width)
        assert text == render(again, form, full=full, width=width)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not JSON"),
        ("[]", "is no comparison of schema version 1"),
        ('{"schema_version": 0}', "is no comparison of schema version 1"),
        ('{"schema_version": 1}', "is damaged at its rows"),
        ('{"schema_version": 1, "id": "\\ud800"}', r"is damaged \(half a surrogate pair\)"),
        ('{"schema_version": 1, "\\uDFFF": 1}', r"is damaged \(half a surrogate pair\)"),
        ('{"schema_version": 1, "id": "\ud800"}', r"is damaged \(half a surrogate pair\)"),
        ("[" * 200_000, r"is damaged \(nested too deep\)"),
    ],
)
def test_what_is_no_comparison_is_told_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(RunError, match=rf"^kept/comparison.json: {says}.*make the comparison again"):
        COMPARISON.parse(text, "kept/comparison.json")


def test_whole_pairs_are_text_like_any_other() -> None:
    text = json.dumps(document(make_comparison([], id="\N{FIRE}")))
    assert "\\ud83d" in text
    assert COMPARISON.parse(text).id == "\N{FIRE}"


def test_an_argument_that_is_no_utf_8_is_kept_so_that_it_can_be_read() -> None:
    kept = render(make_comparison([], command=("harness", "a\udcffb", "\N{FIRE} \\ud800")), "json")
    assert COMPARISON.parse(kept).command == ("harness", "a?b", "\N{FIRE} \\ud800")


def test_damage_is_located() -> None:
    broken = document(make_comparison([]))
    broken["base"]["run"] = 7
    with pytest.raises(RunError, match=r"comparison.json: is damaged at base.run; make the comparison again"):
        COMPARISON.parse(json.dumps(broken))
    broken = document(make_comparison([]))
    broken["tool_output"] = [{"row": 4, "stderr": ""}]
    with pytest.raises(RunError, match="is damaged at its rows"):
        COMPARISON.parse(json.dumps(broken))
