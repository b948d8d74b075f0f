"""What a run has to do, and how long that takes by the earlier runs of its results folder."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, ModelRecord, Reference
from harness.stages.build import requests_of
from harness.stages.context import COMPILE, REFERENCE, VERIFY, Done
from harness.stages.run import earlier_steps, foresee
from harness.store.run_directory import RunDirectory
from tests.builders import a_suite, a_variant, make_case, make_header
from tests.stages.conftest import UnderWay

STOCK, FAST = make_case(), make_case("fast", compile_flags=["--fast"])
SUITE = a_suite(a_variant("stock"), a_variant("fast"))
SECOND = 10**9


def a_run(results: Path, name: str, *cases: Case, seconds: float, model: str = "aa") -> None:
    """A run in which everything of each case took so long."""
    record = ModelRecord(name="net", mlir_sha256=model, mlir_bytes=1, function="main", inputs=())
    header = replace(make_header(), id=name, cases=cases, models=(record,))
    directory = RunDirectory.create(results, header)
    wall_ns = int(seconds * SECOND)
    for case in cases:
        directory.append(Build(case=case.name, command=(), cache_key=f"key of {case.name}", compile_ns=wall_ns))
        directory.append(a_check(case, wall_ns=wall_ns))
        directory.append(Reference(case=case.name, command=(), wall_ns=wall_ns))


def a_check(case: Case, wall_ns: int | None = None, failure: Failure | None = None) -> Check:
    return Check(
        case=case.name,
        against="",
        command=(),
        relative_tolerance=0,
        absolute_tolerance=0,
        wall_ns=wall_ns,
        failure=failure,
    )


def test_a_step_takes_the_mean_of_the_runs_of_these_models(tmp_path: Path) -> None:
    a_run(tmp_path, "20260101-000000-x", STOCK, seconds=3)
    a_run(tmp_path, "20260102-000000-x", FAST, seconds=5)
    a_run(tmp_path, "20260103-000000-x", STOCK, seconds=50, model="bb")
    a_run(tmp_path, "20260104-000000-x", STOCK, seconds=50)
    (tmp_path / "20260104-000000-x" / "builds.jsonl").write_text("{}\n")  # damaged
    a_run(tmp_path, "this", STOCK, seconds=50)
    found = earlier_steps(tmp_path, ["aa"], but=tmp_path / "this")
    assert found == {COMPILE: 4, VERIFY: 4, REFERENCE: 4}
    assert earlier_steps(tmp_path, ["cc"], but=tmp_path / "this") == {}


# --- What is to be done ---


ALL_KNOWN = {COMPILE: 100.0, VERIFY: 30.0, REFERENCE: 30.0}


def foreseen(
    under_way: UnderWay, step_s: Mapping[str, float], done: Done | None = None, cases: Sequence[Case] = (STOCK, FAST)
) -> tuple[str, float]:
    """The sentence, and the seconds of all stages as far as they are known."""
    context = under_way.context(cases, SUITE, done)
    sentence, planned_s = foresee(context, requests_of(context, {"net": under_way.artifact}), ["net"], step_s)
    return sentence, sum(seconds or 0.0 for seconds in planned_s.values())


def test_it_says_how_long_it_takes_where_earlier_runs_tell(under_way: UnderWay) -> None:
    budget_s = float(under_way.directory.header.settings["budget_s"])
    sentence, _ = foreseen(under_way, {})
    assert sentence.startswith(f"To do: 2 compiles, 2 checks, {budget_s:.0f} s of timed rounds; ")
    assert sentence.endswith("no earlier run here says how long the compiles and the checks take")
    sentence, seconds = foreseen(under_way, ALL_KNOWN)
    assert seconds == 100 + 2 * (30 + 30) + budget_s  # two compiles at once
    assert "about " in sentence and "no earlier" not in sentence


def test_what_is_cached_costs_nothing_and_cases_of_one_compile_are_compiled_once(under_way: UnderWay) -> None:
    under_way.artifact.mlir.write_text("module {}")
    (request,) = requests_of(under_way.context([STOCK], SUITE), {"net": under_way.artifact})
    build, _ = BuildCache(cache_root()).compile(request)
    assert build.failure is None
    sentence, _ = foreseen(under_way, {}, cases=[STOCK, FAST, replace(FAST, name="net/again@cpu")])
    assert sentence.startswith("To do: 1 compile (for 2 cases, 1 more is in the cache), 3 checks, ")


def test_a_run_that_goes_on_has_what_is_left_to_do(under_way: UnderWay) -> None:
    settings = under_way.directory.header.settings
    budget_s, generations = float(settings["budget_s"]), int(settings["generations"])
    done = Done(
        checks={STOCK.name: a_check(STOCK), FAST.name: a_check(FAST, failure=Failure(stage="verify", message="no"))},
        references={STOCK.name: Reference(case=STOCK.name, command=())},
        generations={(STOCK.group, 0): (budget_s, 5)},
    )
    sentence, seconds = foreseen(under_way, ALL_KNOWN, done)
    assert "check" not in sentence.partition(";")[0]
    assert seconds == pytest.approx(100 + (generations - 1) * budget_s / generations)
