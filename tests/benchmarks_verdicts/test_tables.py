"""The tables of a small recording, and the constants that docs/statistics.md writes out."""

import re
from pathlib import Path

from benchmarks.verdicts.tables import BEGIN, END
from benchmarks.verdicts.trials import ROW_CAP_S
from harness.compare.samplers import GENERATION_S
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY
from harness.stats.rule import Rule

DOCUMENT = Path(__file__).parents[2] / "docs" / "statistics.md"


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
