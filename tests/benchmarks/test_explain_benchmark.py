"""The benchmark of explanations: what its pairs differ in, what counts as right, and that a recording is its table."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.explain import __main__ as command
from benchmarks.explain.pairs import all_pairs
from benchmarks.explain.recording import read
from harness.report import render
from tests.report.explanations import make_explanation, make_part

PAIRS = all_pairs(releases=True)
LOOP, OTHER = "0_elementwise_24_f32", "1_matmul_64x64x64_f32"
SLOWER = PAIRS["loop-24-slower-1.5"]


def test_a_recording_is_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, document = tmp_path / "explain.jsonl", tmp_path / "explain.md"
    settings = {"budget_s": 20.0, "generations": 18}
    explanations = {
        SLOWER.name: make_explanation(make_part(LOOP, 2.0, 3.5, "regressed"), make_part(OTHER, 4.0, 4.0)),
        "same-module-1": make_explanation(make_part(LOOP, 2.0, 2.1, "regressed"), make_part(OTHER, 4.0, 4.0)),
    }
    with recording.open("w") as file:
        for name, explanation in explanations.items():
            said = json.loads(render(explanation, "json")) | {"settings": settings}
            file.write(json.dumps({"pair": name, "seconds": 30.0, "load": 0.5, "explanation": said}) + "\n")
    assert read(recording).keys() == explanations.keys()
    document.write_text(f"before\n{command.BEGIN}\nold\n{command.END}\nafter\n")
    monkeypatch.setattr(
        sys, "argv", ["explain", "--pairs", SLOWER.name, "--recording", str(recording), "--document", str(document)]
    )
    assert command.main() == 0  # the pair has its line, so nothing is measured
    text = document.read_text()
    assert "2 pairs" in text and "\nold\n" not in text and text.endswith("after\n")
    assert f"Of 3 parts that do not change, 1 is accused: `{LOOP}` in same-module-1" in text
