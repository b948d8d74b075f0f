"""The tables of a small recording, and the constants that docs/statistics.md writes out."""

from __future__ import annotations

import gzip
import json
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from benchmarks.verdicts import __main__ as command
from benchmarks.verdicts import facts
from benchmarks.verdicts.contest import Count, Score, beaten, contest
from benchmarks.verdicts.recording import Recorded
from benchmarks.verdicts.tables import BEGIN, END, render, write_tables
from benchmarks.verdicts.trials import Streams
from harness.compare.samplers import GENERATION_S
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY
from harness.stats.rule import Rule
from harness.toolchain import Toolchain
from tests.benchmarks_verdicts.conftest import Script

DOCUMENT = Path(__file__).parents[2] / "docs" / "statistics.md"
MACHINE = facts.Facts(cpu="Processor X", cores=4, system="System Y, kernel 1", virtual=True, iree="3.13.0 (abc)")

TOOLCHAIN = Toolchain(
    version="3.13.0",
    revision="89ece87b89852100",
    compiler_sha256="",
    python=Path("python"),
    compiler_tools=Path("tools"),
    runtime_tools=Path("tools"),
)


@pytest.fixture
def streams(script: Script) -> Streams:
    every = (
        script("matmul A/A", generations=90, seed=1, seconds=0.7),
        script("loop A/A", generations=90, seed=2, spread=0.02, seconds=0.7),
        script("loop +3 %", generations=60, change=0.03, seed=3, seconds=0.7),
        script("matmul A/A beside a hog", generations=40, seed=4, seconds=0.7),
    )
    return {stream[0].stream: stream for stream in every}


def test_all_tables(streams: Streams, snapshot: SnapshotAssertion) -> None:
    assert render(streams, MACHINE) == snapshot


def test_a_machine_that_was_not_noted_is_not_guessed(streams: Streams) -> None:
    assert "on a machine that was not noted" in render(streams, None)


def test_only_what_stands_between_the_marks_changes(streams: Streams, tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text(f"before\n{BEGIN}\nwhat stood here\n{END}\nafter\n")
    write_tables(document, streams, MACHINE)
    once = document.read_text()
    write_tables(document, streams, MACHINE)
    assert document.read_text() == once
    assert once.startswith(f"before\n{BEGIN}\n\n### What was recorded\n")
    assert once.endswith(f"\n\n{END}\nafter\n")
    assert "what stood here" not in once
    document.write_text("no marks")
    with pytest.raises(RuntimeError, match="has no lines"):
        write_tables(document, streams, MACHINE)


def test_the_harness_and_the_others_judge_the_same_stretches(streams: Streams) -> None:
    scores = contest(streams, budget_s=15)
    assert {tuple(one.alarms) for one in scores} == {("matmul", "loop")}
    assert {tuple((name, count.trials) for name, count in one.alarms.items()) for one in scores} == {
        (("matmul", 6), ("loop", 6))
    }
    own = scores[0]
    assert (own.alarm_rate, own.power(0.03)) == (0.0, 1.0)


def test_a_rule_that_finds_more_is_named_and_one_that_cries_is_not() -> None:
    def score(name: str, alarms: int, found: int, *, own: bool = False) -> Score:
        return Score(
            name=name,
            given="",
            alarms={"loop": Count(hits=alarms, trials=100)},
            found={("loop", 0.01): Count(hits=found, trials=10), ("loop", 0.02): Count(hits=10, trials=10)},
            seconds=None,
            own=own,
        )

    ours, better, crying = score("ours", 0, 3, own=True), score("better", 1, 4), score("crying", 2, 10)
    assert beaten([ours, better, crying], (0.01, 0.02)) == [
        "better finds more than `ours` at +1 % (40 % against 30 %)."
    ]


def test_replaying_reads_a_recording_and_writes_the_document(
    streams: Streams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, document = tmp_path / "verdicts.jsonl.gz", tmp_path / "document.md"
    mixed: list[Recorded] = sorted((one for stream in streams.values() for one in stream), key=lambda one: one.number)
    with gzip.open(recording, "wt") as file:
        file.writelines(json.dumps(asdict(one)) + "\n" for one in mixed)
    document.write_text(f"{BEGIN}\n{END}\n")
    facts.note(recording, TOOLCHAIN)
    arguments = ["verdicts", "--replay", "--recording", str(recording), "--document", str(document)]
    monkeypatch.setattr(sys, "argv", arguments)
    command.main()
    noted = facts.noted(recording)
    assert noted is not None
    assert document.read_text() == f"{BEGIN}\n\n{render(streams, noted)}\n\n{END}\n"
    facts.note(recording, replace(TOOLCHAIN, version="9.9.9"))
    assert facts.noted(recording) == noted, "what is noted stays"


def test_the_document_has_its_marks_and_the_constants_of_the_code() -> None:
    text = DOCUMENT.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    table = dict(re.findall(r"^\| ([^|]*?) \| ([^|]*?) \|", text, re.MULTILINE))
    rule = Rule()
    assert table["length of a generation"].startswith(f"{GENERATION_S:g} s")
    assert table["floor, latency"] == f"{LATENCY.floor * 100:g} %" == f"{rule.floor * 100:g} %"
    assert table["floor, instructions"] == f"{INSTRUCTIONS.floor * 100:g} %"
    assert table["floor, compile time"] == f"{COMPILE_TIME.floor * 100:g} %"
    assert table["alpha of the finding"] == f"{rule.alpha * 100:g} %"
    assert table["alpha of the confirmation"] == f"{rule.confirm_alpha * 100:g} %"
    assert table["confidence of the interval"] == f"{rule.confidence * 100:g} %"
    assert table["first look"] == f"{rule.first_look} generations"
