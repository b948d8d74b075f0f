"""The benchmark of the built-in plugins: how ratios are taken, what its tables say, and that all compute the same."""

import sys
from pathlib import Path

import pytest

from benchmarks.plugins import __main__ as command
from benchmarks.plugins.recorded import Group, Header, Recording, Round, iree_program, line, read
from benchmarks.plugins.tables import render, write_tables
from harness.models import residual_dense_block
from harness.suite.load import load_suite

ROOT = Path(__file__).parents[2]
STOCK, TUNED = iree_program("block", "stock"), iree_program("block", "tuned")
HEADER = Header(
    benchmark="convolution",
    started="2026-01-02T03:04:05+00:00",
    machine="Processor X, 4 cores",
    baseline="stock",
    peer="Halide",
    versions={"IREE": "3.13.0", "Halide": "21.0.0", "sgemm": "OpenBLAS 0.3"},
    missing=(),
    programs=(STOCK, TUNED),
    groups=(Group(name="block", title="one block", gflop=2.0),),
)


@pytest.fixture
def recording() -> Recording:
    """Two generations: the second is slower for all, and `stock` has its turn in the first round only."""
    peers = {"Halide: tile 4x5": 25.0, "Halide: tile 4x4": 30.0, "sgemm: 9x9 by 9x9": 20.0}
    first = [{STOCK: 300.0, TUNED: 24.0, **peers}, {TUNED: 23.0, **peers}, {TUNED: 26.0, **peers}]
    second = [{name: 1.1 * ms for name, ms in times.items()} | {TUNED: 30.0} for times in first]
    rounds = [
        Round(group="block", generation=number, round=place, ns={name: ms * 1e6 for name, ms in times.items()})
        for number, several in enumerate((first, second))
        for place, times in enumerate(several)
    ]
    return Recording(header=HEADER, rounds=tuple(rounds))


def test_replaying_writes_the_table_between_the_marks_and_nowhere_else(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, document = tmp_path / "recording.jsonl", tmp_path / "document.md"
    file.write_text(line(recording.header) + "".join(map(line, recording.rounds)))
    assert read(file) == recording
    document.write_text("before\n<!-- convolution -->\nold\n<!-- /convolution -->\nafter\n")
    arguments = ["plugins", "convolution", "--replay", "--recording", str(file), "--document", str(document)]
    monkeypatch.setattr(sys, "argv", arguments)
    for _ in range(2):
        command.main()
        text = document.read_text()
        assert text == f"before\n<!-- convolution -->\n\n{render(recording)}\n\n<!-- /convolution -->\nafter\n"
    # In either generation the median of three rounds, and of stock the one that it has; 2 GFLOP in 27 ms.
    assert "| `stock` | 315.00 | 6.3 | 7 % | - | 12.0 (12.0 to 12.0) |" in text
    assert "| `tuned` | 27.00 | 74.1 | 78 % | 0.085 (0.080 to 0.091) | 1.023 (0.960 to 1.091) |" in text
    document.write_text("no marks")
    with pytest.raises(RuntimeError, match="has no lines <!-- convolution -->"):
        write_tables(document, recording)


def test_the_steps_are_variants_of_the_suite() -> None:
    steps = load_suite(command.SUITES["esrgan"]).suite
    suite = load_suite(ROOT / "suites" / "esrgan.toml").suite
    known = {one.name: (one.flag_sets, one.flags, one.plugins) for one in suite.variants}
    for one in steps.variants:
        if one.name in known:
            assert (one.flag_sets, one.flags, one.plugins) == known[one.name], one.name
    assert {one.name for one in steps.variants} - set(known) == {"maximum-nhwc-share-tuned"}
    (rdb,) = (one for one in suite.models if one.name == "rdb")
    ours = next(one for one in steps.models if one.name == "rdb")
    parameters = residual_dense_block.BUILDER.parameters
    assert parameters(**ours.params) == parameters(**rdb.params)
