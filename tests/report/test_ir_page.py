"""What `harness ir` prints of one case and of two."""

import json
from collections.abc import Mapping
from dataclasses import replace

from syrupy.assertion import SnapshotAssertion

from harness.ir.counts import Inspected, OpCounts
from harness.ir.differences import ComparedCase, Executable, ProgramParts, canonical_lines, compare_ir
from harness.records.run import Sizes
from harness.report.ir_page import TELLING_OPS, comparison_json, comparison_page, counts_page
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


def shown(*ops: str) -> str:
    inspected = Inspected(case=make_case("tiled"), counts=COUNTS, texts={})
    return to_terminal(counts_page(inspected, ops or TELLING_OPS))


def test_ops_at_a_place_are_rows_of_their_own() -> None:
    lines = shown("executables:linalg.*", "host:linalg.fill", "memref.*").splitlines()
    assert lines[0] == "net/tiled@cpu"
    assert [line.split() for line in lines[1:] if not line.startswith("─")] == [
        ["operation", "input", "flow", "bufferized"],
        ["executables:linalg.fill", "-", "2", "-"],
        ["executables:linalg.matmul", "-", "1", "1"],
        ["host:linalg.fill", "2", "-", "-"],
        ["memref.alloca", "-", "-", "1,200"],
    ]
    assert "No operation matches nothing; --ops '*' shows all." in shown("nothing")


CONFIGURED = "executable-configurations"
SIZES = Sizes(module_bytes=5_000, vm_bytes=1_000, constant_bytes=2_000, dispatch_bytes={"linked.so": 2_000})


def an_executable(number: int, name: str, flow: str, configured: str = "") -> Executable:
    texts = {"flow": flow, CONFIGURED: configured or flow}
    phases = {phase: canonical_lines([text]) for phase, text in texts.items()}
    return Executable(name=f"main_dispatch_{number}_{name}", phases=phases, dispatches=1)


def a_case(
    label: str,
    *executables: Executable,
    linalg: Mapping[str, int] | None = None,
    program: str = "call",
    target: str = 'cpu = "a"',
    sizes: Sizes | None = SIZES,
) -> ComparedCase:
    host = {"flow.dispatch": 3, "util.x": len(label)}
    counts = {"flow": OpCounts(host=host, executables=linalg or {"linalg.fill": 2})}
    parts = ProgramParts(program={"flow": canonical_lines([program])}, executables=executables, target=target)
    texts = {"flow": f"module\n{program}\n"}
    return ComparedCase(
        name="net/stock@cpu", label=label, toolchain=label, counts=counts, parts=parts, sizes=sizes, texts=texts
    )


def convolution(number: int, pipeline: str) -> Executable:
    return an_executable(number, "conv_4x4_f32", f"conv {number}", f"conv {number}\npipeline = {pipeline}, x")


BASE = a_case("3.10.0", convolution(0, "CPUOld"), an_executable(1, "copy_4", "mov"), convolution(2, "CPUOld"))
HEAD = a_case(
    "3.12.0",
    convolution(0, "New"),
    an_executable(1, "copy_4", "mov"),
    convolution(2, "New"),
    an_executable(3, "pack_4", "pack"),
    linalg={"linalg.fill": 1},
    program="call twice",
    target='cpu = "b"',
    sizes=replace(SIZES, module_bytes=5_100),
)


def shown_pair(base: ComparedCase, head: ComparedCase) -> str:
    return to_terminal(comparison_page(compare_ir(base, head), TELLING_OPS), width=140)


def test_what_differs_is_told_first_and_then_shown(snapshot: SnapshotAssertion) -> None:
    compared = compare_ir(BASE, HEAD, unread={"encodings": "bad shape"})
    assert to_terminal(comparison_page(compared, TELLING_OPS), width=140) == snapshot


def test_equal_code_is_said_to_be_equal() -> None:
    same = "the code of all 3 executables is the same; what is outside executables is the same."
    assert same in " ".join(shown_pair(BASE, BASE).split())
    one = a_case("a", BASE.parts.executables[0])
    assert "the code of the one executable is the same;" in shown_pair(one, one)
    neither = replace(BASE, parts=ProgramParts(program={}, executables=()))
    assert "at these phases only operations are compared." in shown_pair(neither, neither)
    assert "There are no executables at these phases." in shown_pair(a_case("a"), a_case("b"))


def test_json_has_all_of_both() -> None:
    document = json.loads(comparison_json(compare_ir(BASE, HEAD, unread={"encodings": "bad shape"})))
    assert (document["schema_version"], document["unread"]) == (1, {"encodings": "bad shape"})
    assert [document[side]["toolchain"] for side in ("base", "head")] == ["3.10.0", "3.12.0"]
    assert document["head"]["phases"]["flow"]["executables"] == {"linalg.fill": 1}
    assert document["program"] == {"phase": "flow", "lines": ["- call", "+ call twice"]}
    first, copy, _, alone = document["executables"]
    lines = ["  conv 0", "- pipeline = CPUOld, x", "+ pipeline = New, x"]
    assert first["difference"] == {"phase": CONFIGURED, "lines": lines}
    assert (copy["matched_by"], copy["difference"]) == ("same code", None)
    assert (alone["base"], alone["head"], alone["matched_by"]) == (None, "main_dispatch_3_pack_4", None)
