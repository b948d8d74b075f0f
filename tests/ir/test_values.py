"""Op counts as values, and the choice of those that a suite asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.ir import OpCounts, check_wanted, select_counts

COUNTS = {
    "flow": OpCounts(
        host={"flow.dispatch": 10, "arith.constant": 3}, executables={"arith.constant": 5, "linalg.fill": 2}
    ),
    "bufferized": OpCounts(host={}, executables={"memref.alloc": 2, "memref.alloca": 15, "linalg.fill": 2}),
}

names = st.from_regex(r"(arith|linalg|memref)\.[a-c]{1,2}", fullmatch=True)
ops = st.dictionaries(names, st.integers(1, 1000))
op_counts = st.builds(OpCounts, host=ops, executables=ops)


def test_the_total_is_of_both_places() -> None:
    assert COUNTS["flow"].total == {"flow.dispatch": 10, "arith.constant": 8, "linalg.fill": 2}


@pytest.mark.parametrize(
    ("phase", "pattern", "count"),
    [
        ("flow", "flow.dispatch", 10),
        ("flow", "arith.constant", 8),
        ("flow", "host:arith.constant", 3),
        ("flow", "executables:arith.constant", 5),
        ("flow", "host:linalg.*", 0),
        ("flow", "*", 20),
        ("bufferized", "memref.alloc", 2),
        ("bufferized", "memref.alloc*", 17),
        ("bufferized", "memref.alloc[a]", 15),
        ("bufferized", "executables:memref.alloc?", 15),
        ("bufferized", "memref", 0),
        ("bufferized", "Memref.alloc", 0),
        ("bufferized", "mystery.op", 0),
    ],
)
def test_a_wanted_op_may_have_a_place_and_wildcards(phase: str, pattern: str, count: int) -> None:
    assert select_counts(COUNTS, {phase: [pattern]}) == {f"{phase}/{pattern}": count}


def test_the_ops_behind_a_count_are_told_by_name() -> None:
    assert COUNTS["bufferized"].matching("memref.alloc*") == {"memref.alloc": 2, "memref.alloca": 15}
    assert COUNTS["flow"].matching("arith.*") == {"arith.constant": 8}
    assert COUNTS["flow"].matching("host:arith.*") == {"arith.constant": 3}
    assert COUNTS["flow"].matching("executables:flow.*") == {}


def test_what_is_not_wanted_is_left_out() -> None:
    wanted = {"bufferized": ["memref.alloca"], "flow": ["tensor.pad", "flow.dispatch"]}
    selected = select_counts(COUNTS, wanted)
    assert list(selected.items()) == [
        ("bufferized/memref.alloca", 15),
        ("flow/tensor.pad", 0),
        ("flow/flow.dispatch", 10),
    ]
    assert select_counts(COUNTS, {}) == {}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"flwo": ["linalg.*"]}, "there is no phase 'flwo'; name one of start, input, abi, preprocessing, "),
        ({"flow": ["device:linalg.*"]}, "there is no place 'device', as in 'device:linalg.*'; write host:... or "),
    ],
)
def test_a_phase_or_place_that_there_is_not_is_refused(wanted: Mapping[str, Sequence[str]], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_wanted(wanted)
    assert str(refused.value).startswith(said)
    with pytest.raises(UsageError):
        select_counts(COUNTS, wanted)


@given(op_counts, names)
def test_the_places_add_up(counts: OpCounts, name: str) -> None:
    for pattern in (name, "*", name.partition(".")[0] + ".*"):
        places = counts.count(f"host:{pattern}") + counts.count(f"executables:{pattern}")
        assert counts.count(pattern) == places
    assert counts.count(name) == counts.total.get(name, 0)


@given(op_counts)
def test_dialects_add_up_to_all_ops(counts: OpCounts) -> None:
    patterns = ["arith.*", "linalg.*", "memref.*"]
    selected = select_counts({"input": counts}, {"input": patterns})
    assert list(selected) == [f"input/{pattern}" for pattern in patterns]
    assert sum(selected.values()) == counts.count("*") == sum(counts.total.values())
