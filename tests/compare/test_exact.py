"""What needs no statistics: equal is unchanged, larger is worse, and a value that one side lacks is left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compare.exact import exact_rows
from harness.metrics import BUILD_FACTS, EXACT
from harness.records.comparison import Row
from harness.records.run import Build, Failure, Reference, Sizes, Statistics
from tests.builders import make_case

CASE = make_case("tiled")


def a_build(copies: int = 1, transient: int = 0, dispatches: int = 2, fills: int = 0, size: int = 4096) -> Build:
    return Build(
        case=CASE.name,
        command=("iree-compile",),
        cache_key="ab",
        sizes=Sizes(module_bytes=size, vm_bytes=512, constant_bytes=0, dispatch_bytes={"a.so": size - 1024, "b.so": 1}),
        statistics=Statistics(
            dispatches=dispatches,
            copies=copies,
            fills=fills,
            awaits=1,
            submissions=1,
            executables=1,
            transient_bytes=transient,
            constant_bytes=0,
            variable_bytes=0,
        ),
    )


def a_reference(host: int | None = 1000, device: int | None = 2000) -> Reference:
    return Reference(case=CASE.name, command=("iree-benchmark-module",), host_peak_bytes=host, device_peak_bytes=device)


def row_of(metric: str, base: Build, head: Build) -> Row:
    (row,) = [row for row in exact_rows(CASE, base, head, None, None) if row.metric == metric]
    return row


def test_every_exact_metric_that_both_sides_have_is_a_row() -> None:
    rows = exact_rows(CASE, a_build(), a_build(), a_reference(), a_reference())
    assert [row.metric for row in rows] == [metric.name for metric in EXACT]
    assert {row.verdict for row in rows} == {"unchanged"}


def test_a_row_says_all_there_is_to_say() -> None:
    assert row_of("copies", a_build(copies=13), a_build(copies=1)) == Row(
        case="net/tiled@cpu",
        model="net",
        variant="tiled",
        device="cpu",
        metric="copies",
        verdict="improved",
        ratio=1 / 13,
        base_value=13,
        head_value=1,
        unit="count",
        reason="1 copy where there were 13",
    )


@pytest.mark.parametrize(
    ("base", "head", "verdict", "reason"),
    [
        (19_796_992, 10_235_904, "improved", "10,235,904 bytes where there were 19,796,992"),
        (10_235_904, 19_796_992, "regressed", "19,796,992 bytes where there were 10,235,904"),
        (4096, 4097, "regressed", "4,097 bytes where there were 4,096"),
        (1, 2, "regressed", "2 bytes where there was 1"),
        (4096, 4096, "unchanged", "4,096 bytes on both sides"),
    ],
)
def test_any_difference_is_a_change(base: int, head: int, verdict: str, reason: str) -> None:
    row = row_of("transient-memory", a_build(transient=base), a_build(transient=head))
    assert (row.verdict, row.reason, row.ratio) == (verdict, reason, head / base)


@pytest.mark.parametrize(("head", "verdict"), [(0, "unchanged"), (1, "regressed")])
def test_nothing_is_no_base_for_a_ratio(head: int, verdict: str) -> None:
    row = row_of("fills", a_build(fills=0), a_build(fills=head))
    assert (row.verdict, row.ratio, row.base_value, row.head_value) == (verdict, None, 0, head)
    assert row_of("dispatches", a_build(dispatches=1), a_build(dispatches=0)).ratio == 0


def test_the_size_of_dispatches_is_that_of_all_executables() -> None:
    row = row_of("dispatch-size", a_build(size=4096), a_build(size=5096))
    assert (row.base_value, row.head_value) == (3073, 4073)


def test_what_one_side_does_not_have_is_left_out() -> None:
    bare = Build(case=CASE.name, command=(), cache_key="", failure=Failure(stage="compile", message="no"))
    assert exact_rows(CASE, None, None, None, None) == ()
    assert exact_rows(CASE, a_build(), None, None, a_reference()) == ()
    assert exact_rows(CASE, bare, a_build(), a_reference(), None) == ()
    rows = exact_rows(CASE, bare, bare, a_reference(host=None), a_reference(device=7))
    assert [(row.metric, row.verdict) for row in rows] == [("device-peak-memory", "improved")]


# ------------------------------------------------------------------------------------------------------- op counts


def test_op_counts_are_rows_after_the_other_figures_in_the_order_in_which_they_were_counted() -> None:
    counts = {"input/tensor.empty": 3, "flow/flow.tensor.update": 13, "bufferized/executables:memref.alloc*": 0}
    rows = exact_rows(CASE, a_build(), a_build(), None, None, counts, counts)
    assert [row.metric for row in rows] == [*(metric.name for metric in BUILD_FACTS), *counts]
    assert {row.verdict for row in rows} == {"unchanged"}


def test_a_row_of_an_op_count_says_all_there_is_to_say() -> None:
    before, after = {"flow/flow.tensor.update": 13}, {"flow/flow.tensor.update": 1}
    assert exact_rows(CASE, None, None, None, None, before, after) == (
        Row(
            case="net/tiled@cpu",
            model="net",
            variant="tiled",
            device="cpu",
            metric="flow/flow.tensor.update",
            verdict="improved",
            ratio=1 / 13,
            base_value=13,
            head_value=1,
            unit="count",
            reason="1 op where there were 13",
        ),
    )


@pytest.mark.parametrize(
    ("base", "head", "verdict", "reason"),
    [
        (0, 2, "regressed", "2 ops where there were 0"),
        (1, 0, "improved", "0 ops where there was 1"),
        (1200, 1200, "unchanged", "1,200 ops on both sides"),
    ],
)
def test_more_ops_are_worse(base: int, head: int, verdict: str, reason: str) -> None:
    key = "input/linalg.*"
    (row,) = exact_rows(CASE, None, None, None, None, {key: base}, {key: head})
    assert (row.verdict, row.reason) == (verdict, reason)


def test_a_count_that_one_side_did_not_take_gives_no_row() -> None:
    """A program that a plugin rewrote after a phase has no IR before it, and a suite may count other ops by now."""
    here, there = {"input/linalg.*": 1, "flow/flow.*": 2}, {"flow/flow.*": 2, "vm/vm.call": 3}
    rows = exact_rows(CASE, None, None, None, None, here, there)
    assert [row.metric for row in rows] == ["flow/flow.*"]
    assert exact_rows(CASE, None, None, None, None, here, {}) == ()


COUNTS = st.integers(min_value=0, max_value=2**40)
BUILDS = st.builds(a_build, copies=COUNTS, transient=COUNTS, dispatches=COUNTS, size=st.integers(1024, 2**40))
REFERENCES = st.builds(a_reference, host=st.none() | COUNTS, device=st.none() | COUNTS)
OPS = st.dictionaries(st.sampled_from(["input/linalg.*", "flow/tensor.empty", "vm/vm.call"]), COUNTS)


@given(builds=st.tuples(BUILDS, BUILDS), references=st.tuples(REFERENCES, REFERENCES), ops=st.tuples(OPS, OPS))
def test_swapping_the_sides_mirrors_every_row(
    builds: tuple[Build, Build], references: tuple[Reference, Reference], ops: tuple[dict[str, int], dict[str, int]]
) -> None:
    mirrored = {"regressed": "improved", "improved": "regressed", "unchanged": "unchanged"}
    there = exact_rows(CASE, *builds, *references, *ops)
    back = {row.metric: row for row in exact_rows(CASE, *builds[::-1], *references[::-1], *ops[::-1])}
    assert {row.metric for row in there} == back.keys()
    for one in there:
        other = back[one.metric]
        assert mirrored[one.verdict] == other.verdict
        assert (one.base_value, one.head_value) == (other.head_value, other.base_value)
        if one.ratio and other.ratio:
            assert one.ratio * other.ratio == pytest.approx(1)
