"""What `harness ir` prints: one row an op, one column a phase."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ir.counts import Inspected, OpCounts
from harness.metrics import PHASES
from harness.report.inspected import TELLING_OPS, counts_page, render_counts_json
from harness.report.terminal import to_terminal
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
    return to_terminal(counts_page(inspected(counts), ops or TELLING_OPS), width=width)


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


def test_what_is_not_there_is_said() -> None:
    assert shown("scf.*", "tosa.*") == "net/tiled@cpu\nNo operation matches scf.*, tosa.*; --ops '*' shows all.\n"
    text = shown(counts=dict.fromkeys(PHASES, COUNTS["flow"]), width=60)  # the last phases do not fit
    assert "start  input  abi" in text
    assert text.split("No room at this width for ")[1].split(".\n")[0].split()[-1] == "vm"
    long = {"flow": OpCounts(host={"x." * 5_000: 7}, executables={})}
    assert len(shown("*", counts=long)) < 1_000


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
    case = make_case("tiled")
    assert (document["schema_version"], document["case"], document["id"]) == (1, case.name, case.id)
