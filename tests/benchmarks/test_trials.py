"""Playing back reads what was recorded, in order, once; other tools' rules; and the constants of the document."""

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.verdicts.others import OTHERS, Named, Samples
from benchmarks.verdicts.recorded_runs import count
from benchmarks.verdicts.tables import BEGIN, END
from benchmarks.verdicts.trials import ROW_CAP_S, overlapping_starts, play_disjoint, play_overlapping
from harness.compare.samplers import GENERATION_S
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY
from harness.stats.rule import Rule
from tests.compare.scripted import generations

RANDOM = np.random.default_rng(0)
EQUAL, SLOWER = (RANDOM.normal(centre, 0.002, 84).tolist() for centre in (0.0, np.log(1.05)))


def test_disjoint_trials_share_no_generation_and_use_all() -> None:
    recorded = generations(*EQUAL[:60], seconds=0.5)
    trials = play_disjoint(recorded, budget_s=15)
    used = [one for outcome in trials.outcomes for one in outcome.generations]
    assert used == recorded[: len(used)]
    assert trials.size == 7  # of eight generations each; the last four are too few
    assert trials.left_out == 1
    assert trials.false_alarms == 0
    assert trials.bounds == pytest.approx((0.0, 1 - 0.05 ** (1 / 7)))


def test_overlapping_trials_start_only_where_the_longest_fits() -> None:
    recorded = generations(*SLOWER, seconds=0.5)
    starts = overlapping_starts(recorded, budget_s=10)
    assert list(starts) == [0, 4, 8, 12, 16, 20]  # 20 generations and one, three times
    trials = play_overlapping(recorded, budget_s=10)
    assert (trials.size, trials.left_out) == (6, 0)
    assert trials.found() == 6
    assert trials.found(within_s=8.0) == 6
    assert trials.found(within_s=7.9) == 0
    assert trials.disjoint == 84 / 16 < trials.size
    assert trials.estimate == pytest.approx(0.05, abs=0.002)


def test_runs_judged_together_have_fewer_false_alarms_than_rows_judged_alone() -> None:
    alone, together = (count(20, 5, 0.2, together=way, runs=60) for way in (False, True))
    assert together.alarms < alone.alarms
    assert together.alarms <= 0.05
    assert together.found > 0.85


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


@pytest.mark.parametrize("one", OTHERS, ids=lambda one: one.name)
def test_no_rule_finds_what_is_not_there_and_all_find_a_half(one: Named) -> None:
    times = np.random.default_rng(1).normal(1e6, 1e3, (30, 12))
    base, head = Samples(processes=tuple(times)), Samples(processes=tuple(1.5 * times))
    assert one.rule(base, head) == 1
    assert one.rule(base, base) == 0
