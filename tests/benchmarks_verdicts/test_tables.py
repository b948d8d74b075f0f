"""The tables of a small recording, and the constants that docs/statistics.md writes out."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.verdicts import facts
from benchmarks.verdicts.tables import BEGIN, END, Recording, render
from benchmarks.verdicts.trials import ROW_CAP_S, Streams
from harness.compare.samplers import GENERATION_S
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY
from harness.stats.rule import Rule
from tests.benchmarks_verdicts.conftest import scripted

DOCUMENT = Path(__file__).parents[2] / "docs" / "statistics.md"
MACHINE = facts.Facts(cpu="Processor X", cores=4, system="System Y, kernel 1", virtual=True, iree="3.13.0 (abc)")


@pytest.fixture(scope="module")
def streams() -> Streams:
    every = (
        scripted("matmul A/A", generations=90, seed=1, seconds=0.7),
        scripted("loop A/A", generations=90, seed=2, spread=0.02, seconds=0.7),
        scripted("loop +3 %", generations=60, change=0.03, seed=3, seconds=0.7),
        scripted("matmul A/A beside two hogs a core", generations=60, seed=4, seconds=0.7, preempted=1.5),
        scripted(
            "threads A/A beside two hogs a core",
            generations=60,
            seed=6,
            seconds=0.7,
            rounds=16,
            preempted=1.5,
            has_own_time=False,
        ),
        scripted("matmul A/A beside hogs that come and go", generations=30, seed=7, seconds=0.7),
        scripted("slow +100 %", generations=30, change=1.0, seed=8, seconds=9.0),
        scripted("loop +3 % (sleep)", generations=60, change=0.03, seed=5, seconds=0.7),
    )
    return {stream[0].stream: stream for stream in every}


@pytest.fixture(scope="module")
def text(streams: Streams) -> str:
    """All tables of these streams; making them takes seconds."""
    here = Recording(streams=streams, facts=MACHINE)
    elsewhere = Recording(streams={"loop A/A": streams["loop A/A"]}, facts=replace(MACHINE, cores=16))
    return render(here, elsewhere)


def rows_of(text: str, heading: str) -> dict[str, list[str]]:
    """The rows of all tables below a heading, by their first cell; the first of each name."""
    section = text.split(f"### {heading}\n")[1].split("\n### ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return {row[0]: row[1:] for row in reversed(cells)}


def test_equal_modules_are_not_flagged_and_slowed_ones_are_found(text: str) -> None:
    alarms = rows_of(text, "False alarms: a module against itself")
    assert alarms["matmul A/A"][:3] == ["11", "0", "0"]
    assert set(alarms) >= {"loop A/A", "matmul A/A beside two hogs a core", "all quiet ones", "all"}
    power = rows_of(text, "Power: heads that are slower by a known share")
    assert power["loop +3 %"][0] == "100 %"
    goals = rows_of(text, "The goals")
    assert goals["2-fold on 3 s calls, default settings"][1] == "100.0 % (4 of 4) in the end (worth 2 disjoint ones)"
    assert goals["+3 % on 200 ms, 30 s with confirmation, quiet"][1] == "not recorded"
    waits = goals["a head that waits instead of computing (+3 %), quiet"][1]
    assert waits.split(" found; by wall time ")[0] == waits.split(" found; by wall time ")[1]
    ((_, *equal),) = [cells for name, cells in goals.items() if name.startswith("equal modules")]
    assert [bool(re.match(r"0 of \d+ \(0.00 % to \d", cell)) for cell in equal] == [True, True]
    assert goals["2-fold on 3 s calls, default settings"][2] == "not recorded", "elsewhere"


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
    assert table["cap of a plain row"] == f"{ROW_CAP_S:,.0f} s"
