"""The benchmark of searches: what a run beside a result says, what is counted, and that the tables say no more."""

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.tune.defaults import defaults
from benchmarks.tune.measuring import ROOT
from benchmarks.tune.outcomes import Outcome, measured
from benchmarks.tune.searches import SEARCHES, Search
from benchmarks.tune.tables import render
from harness.records.run import Run
from harness.records.tuning import same_bytes
from harness.suite.load import load_suite
from tests.report.builders import make_build, make_case, make_header, make_rounds
from tests.report.tunings import make_tuning, single

ALL = [search for searches in SEARCHES.values() for search in searches]
NETWORK = SEARCHES["networks"][0]
TUNED = "tuned-rdb"


def outcome(search: Search, ms: dict[str, float]) -> Outcome:
    """What the tables get of a search and of a run of variants of one model; `onnxruntime` is another engine."""
    cases = [make_case("rdb", name, peer=name if name == "onnxruntime" else None) for name in ms]
    times = {case.name: ms[case.variant] * 1e6 for case in cases}
    run = Run(
        header=make_header(tuple(cases)),
        builds=tuple(make_build(case, code=case.variant) for case in cases if case.peer is None),
        rounds=tuple(make_rounds(cases[0].group, times, instructions=False)),
        finished=True,
    )
    contenders, _ = measured(run, TUNED)
    return Outcome(search=search, tuning=make_tuning(), head=TUNED, baseline="stock", contenders=contenders)


def test_the_tables_have_the_goals_and_a_line_for_each_model() -> None:
    one, other = (replace(search, model=name) for search, name in zip(SEARCHES["networks"], "ab", strict=False))
    failed = Outcome(search=replace(NETWORK, model="c"), tuning=None, why="c/stock@cpu cannot be measured")
    times = {"stock": 8.0, "by-hand": 3.0, TUNED: 2.0, "onnxruntime": 1.5}
    text = render([outcome(one, times), outcome(other, times | {TUNED: 0.5}), failed], [])
    assert "| networks: geometric mean of their ratios to stock | at most 0.36 | 0.125 (2) |" in text
    assert "| networks within 1.1 of the best other engine's time | 9 of 10 | 1 of 2 |" in text
    assert "| `a` |" in text and "not measured: c/stock@cpu cannot be measured" in text.replace("&#8203;", "")
    assert "ESRGAN" not in text  # nothing of it was measured


def test_a_change_is_judged_as_a_default_over_all_models() -> None:
    faster: Any = {"ratio": 0.5, "low": 0.49, "high": 0.51}
    slower: Any = {"ratio": 1.1, "low": 1.09, "high": 1.11}
    one = (single("nhwc", "best", **faster), single("o2", "lost", **slower), single("o3", "inert", same_bytes("o2")))
    other = (single("nhwc", "inert", same_bytes("start")), single("o2", "failed"), single("o3", "untried"))
    found = {
        default.name: default
        for default in defaults([make_tuning(model="a", singles=one), make_tuning(model="b", singles=other)])
    }
    assert found["nhwc"].ratios == {"a": 0.5, "b": 1.0} and found["nhwc"].mean == pytest.approx(0.5**0.5)
    assert (found["nhwc"].faster, found["nhwc"].slower, found["nhwc"].refused) == (1, 0, 0)
    assert (found["o2"].ratios, found["o2"].slower, found["o2"].refused) == ({"a": 1.1}, 1, 1)
    assert "o3" not in found  # one model says nothing of a default
    again = defaults([make_tuning(model=model, singles=one) for model in "ab"])
    assert next(default.ratios for default in again if default.name == "o3") == {"a": 1.1, "b": 1.1}


@pytest.mark.parametrize("search", ALL, ids=lambda search: search.name)
def test_searches_name_what_their_suites_have(search: Search) -> None:
    suite = load_suite(ROOT / search.suite).suite
    variants = {variant.name for variant in suite.variants}
    assert search.model in {model.name for model in suite.models}
    assert {search.start or suite.baseline, *search.judged} <= variants
