"""What a run has to do, and how long that takes by the earlier runs of its results folder."""

from dataclasses import replace
from pathlib import Path

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.records.case import Case
from harness.records.run import Build, Failure, ModelRecord, Run
from harness.stages.build import requests_of
from harness.stages.prepare import unchecked
from harness.stages.run import step_seconds, to_do
from harness.store.run_directory import RunDirectory
from tests.builders import a_suite, a_variant, make_case, make_header, make_round
from tests.stages.conftest import UnderWay

STOCK, FAST = make_case(), make_case("fast", compile_flags=["--fast"])
AGAIN = replace(FAST, name="net/again@cpu")
NO = Failure(stage="verify", message="no")
STEPS = {"Compile": 100.0, "Verify": 30.0}


def said(under_way: UnderWay, *cases: Case, step_s: dict[str, float] | None = None, done: Run | None = None) -> str:
    context = under_way.context(cases or (STOCK, FAST), a_suite(a_variant("stock"), a_variant("fast")), done)
    return to_do(context, requests_of(context), step_s or {})[0]


def test_it_says_what_is_left_to_do_what_of_it_is_in_the_cache_and_for_how_long(under_way: UnderWay) -> None:
    budget_s = float(under_way.directory.header.settings["budget_s"])
    timed = f"{budget_s:.0f} s of timed rounds"
    assert said(under_way) == f"To do: 2 compiles, 2 checks, {timed}", "no earlier run tells"
    assert said(under_way, step_s=STEPS).startswith(f"To do: 2 compiles, 2 checks, {timed}; about ")
    under_way.artifact.mlir.write_text("module {}")
    (request,) = requests_of(under_way.context([STOCK]))
    BuildCache(cache_root()).compile(request)
    assert said(under_way, STOCK, FAST, AGAIN) == f"To do: 1 compile (1 more is in the cache), 3 checks, {timed}"
    checks = replace(unchecked(STOCK, NO), failure=None), unchecked(FAST, NO)
    done = replace(under_way.begun, checks=checks, rounds=(make_round(0, wall_ns=350_000_000),))
    left = "To do: 1 compile (1 more is in the cache), 0 s of timed rounds; about 2 min"
    assert said(under_way, step_s=STEPS, done=done) == left


def test_a_step_takes_the_mean_of_the_runs_of_these_models(tmp_path: Path) -> None:
    for number, (seconds, model) in enumerate(((3, "aa"), (5, "aa"), (50, "bb"), (50, "aa"), (50, "aa"))):
        record = ModelRecord(name="net", mlir_sha256=model, mlir_bytes=1, function="main", inputs=())
        header = replace(make_header(), id=f"2026010{number}-000000-x", cases=(STOCK,), models=(record,))
        directory = RunDirectory.create(tmp_path, header)
        directory.append(Build(case=STOCK.name, command=(), cache_key="", compile_ns=seconds * 10**9))
        directory.append(replace(unchecked(STOCK, NO), wall_ns=seconds * 10**9, failure=None))
    (tmp_path / "20260103-000000-x" / "builds.jsonl").write_text("{}\n")  # damaged
    assert step_seconds(tmp_path, ["aa"], but=directory.path) == {"Compile": 4, "Verify": 4}
    assert step_seconds(tmp_path, ["cc"], but=directory.path) == {}
