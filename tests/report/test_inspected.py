"""What `harness ir` prints: one row an op, one column a phase."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.ir.op_counts import Inspected, OpCounts
from harness.metrics import PHASES
from harness.report.inspected import TELLING_OPS, render_counts, render_counts_json
from tests.builders import make_case

COUNTS = {
    "input": OpCounts(host={"linalg.fill": 2, "linalg.matmul": 1, "util.func": 1}, executables={}),
    "flow": OpCounts(
        host={"flow.dispatch": 3, "flow.tensor.update": 13},
        executables={"linalg.fill": 2, "linalg.matmul": 1, "func.func": 2},
    ),
    "bufferized": OpCounts(host={}, executables={"memref.alloca": 1_200, "linalg.matmul": 1}),
}


def inspected(counts: Mapping[str, OpCounts] = COUNTS) -> Inspected:
    return Inspected(case=make_case("tiled"), counts=dict(counts), texts={})


def shown(*ops: str, counts: Mapping[str, OpCounts] = COUNTS, width: int = 100) -> str:
    return render_counts(inspected(counts), ops or TELLING_OPS, width=width, color=False)


def test_ops_at_a_place_are_rows_of_their_own() -> None:
    lines = shown("executables:linalg.*", "host:linalg.fill", "memref.*").splitlines()
    assert lines[0] == "net/tiled@cpu"
    assert [line.split() for line in lines[1:-1] if not line.startswith("─")] == [
        ["operation", "input", "flow", "bufferized"],
        ["executables:linalg.fill", "-", "2", "-"],
        ["executables:linalg.matmul", "-", "1", "1"],
        ["host:linalg.fill", "2", "-", "-"],
        ["memref.alloca", "-", "-", "1,200"],
    ]
    place = "Inside executables and on the host together; --ops 'executables:*' and 'host:*' tell them apart."
    assert lines[-1] == place
    assert place not in shown("executables:linalg.*")  # every pattern names a place
    telling = [line.split()[0] for line in shown().splitlines()[3:-1]]
    assert telling == ["flow.dispatch", "flow.tensor.update", "linalg.fill", "linalg.matmul", "memref.alloca"]
    assert shown("linalg.fill", "*.fill", "linalg.fill").count("linalg.fill") == 1


def test_nothing_that_matches() -> None:
    assert shown("scf.*", "tosa.*") == "net/tiled@cpu\nNo operation matches scf.*, tosa.*; --ops '*' shows all.\n"


def test_phases_that_do_not_fit_are_named_the_last_ones_first() -> None:
    every = dict.fromkeys(PHASES, COUNTS["flow"])
    text = shown(counts=every, width=60)
    assert "start  input  abi" in text
    assert "No room at this width for " in text
    assert text.split("No room")[1].split(".\n")[0].split()[-1] == "vm"
    assert all(cell_len(line) <= 60 for line in text.splitlines())


@pytest.mark.parametrize("name", ["a | b", "two\nlines", "\x1b[31mred", "[bold]x[/bold]", "x." * 5_000])
@pytest.mark.parametrize("width", [40, 100])
def test_ops_of_any_name(name: str, width: int) -> None:
    text = shown("*", counts={"flow": OpCounts(host={name: 7}, executables={})}, width=width)
    assert all(cell_len(line) <= width and line.isprintable() for line in text.splitlines())
    assert len(text) < 1_000
    assert width == 40 or "7" in text


@settings(max_examples=25)
@given(
    st.dictionaries(
        st.sampled_from(PHASES),
        st.builds(
            OpCounts,
            host=st.dictionaries(st.sampled_from(["a.b", "a.c", "d.e"]), st.integers(1, 499)),
            executables=st.dictionaries(st.sampled_from(["a.b", "d.e"]), st.integers(1, 499)),
        ),
        min_size=1,
    )
)
def test_the_table_has_every_count_and_json_tells_places_apart(counts: dict[str, OpCounts]) -> None:
    text = shown("*", counts=counts, width=400)
    table = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith(("a.", "d."))}
    every = {name for found in counts.values() for name in found.total}
    assert table == {
        name: [str(found.total[name]) if name in found.total else "-" for found in counts.values()]
        for name in sorted(every)
    }
    document = json.loads(render_counts_json(inspected(counts)))
    assert {phase: OpCounts(**found) for phase, found in document["phases"].items()} == counts


def test_json_says_what_it_is_of() -> None:
    document = json.loads(render_counts_json(inspected()))
    case = make_case("tiled")
    assert {key: document[key] for key in ("schema_version", "case", "id")} == {
        "schema_version": 1,
        "case": case.name,
        "id": case.id,
    }
    assert list(document["phases"]) == list(COUNTS)
