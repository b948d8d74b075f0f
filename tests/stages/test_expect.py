"""What a run has to do, and how long that takes by the earlier runs of its results folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, ModelRecord, Reference, Round, Turn
from harness.stages.build import request_for
from harness.stages.context import COMPILE, MEASURE, REFERENCE, VERIFY, Done
from harness.stages.expect import Earlier, Expected, earlier_runs, expect
from harness.store.run_directory import RunDirectory
from tests.builders import a_suite, a_variant, make_case, make_header
from tests.stages.conftest import UnderWay

STOCK, FAST = make_case(), make_case("fast", compile_flags=["--fast"])
SUITE = a_suite(a_variant("stock"), a_variant("fast"))
SECOND = 10**9


def a_run(results: Path, name: str, *cases: Case, seconds: float, model: str = "aa") -> None:
    """A run in which everything of each case took so long, and a generation began a second after the last."""
    record = ModelRecord(name="net", mlir_sha256=model, mlir_bytes=1, function="main", inputs=())
    header = replace(make_header(), id=name, cases=cases, models=(record,))
    directory = RunDirectory.create(results, header)
    wall_ns = int(seconds * SECOND)
    for case in cases:
        directory.append(Build(case=case.name, command=(), cache_key=f"key of {case.name}", compile_ns=wall_ns))
        directory.append(a_check(case, wall_ns=wall_ns))
        directory.append(Reference(case=case.name, command=(), wall_ns=wall_ns))
    for generation in range(2):
        directory.append(
            Round(
                group=cases[0].group,
                generation=generation,
                round=0,
                started_unix_ns=generation * (len(cases) * wall_ns + SECOND),
                turns=tuple(Turn(case=case.name, calls=1, wall_ns=wall_ns, cpu_ns=0) for case in cases),
            )
        )


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


def earlier(results: Path, *models: str) -> Earlier:
    return earlier_runs(results, models, but=results / "this")


def test_figures_are_of_what_is_most_alike(tmp_path: Path) -> None:
    a_run(tmp_path, "20260101-000000-x", STOCK, seconds=3)
    a_run(tmp_path, "20260102-000000-x", FAST, seconds=5)
    found = earlier(tmp_path, "aa")
    assert found.find("compile", (f"key of {FAST.name}", FAST.id, "aa")) == 5
    assert found.find("compile", ("another key", STOCK.id, "aa")) == 3
    assert found.find("compile", ("another key", "another case", "aa")) == 4  # the median of the model's
    assert found.find("compile", ("another key", "another case", "bb")) is None
    assert found.find("check", (STOCK.id,)) == 3


def test_runs_of_other_models_and_damaged_ones_say_nothing(tmp_path: Path) -> None:
    a_run(tmp_path, "20260101-000000-x", STOCK, seconds=3, model="bb")
    a_run(tmp_path, "20260102-000000-x", STOCK, seconds=3)
    (tmp_path / "20260102-000000-x" / "builds.jsonl").write_text("{}\n")
    a_run(tmp_path, "this", STOCK, seconds=3)
    assert earlier(tmp_path, "aa").find("check", (STOCK.id,)) is None


def test_loading_is_the_time_between_two_generations(tmp_path: Path) -> None:
    a_run(tmp_path, "20260101-000000-x", STOCK, FAST, seconds=3)
    found = earlier(tmp_path, "aa")
    assert (found.find("turn", (STOCK.id,)), found.find("load", (STOCK.id,))) == (3, 0.5)


# --- What is to be done ---


def expected(under_way: UnderWay, earlier: Earlier | None = None, done: Done | None = None) -> Expected:
    context = under_way.context([STOCK, FAST], SUITE, done)
    return expect(context, {"net": under_way.artifact}, earlier or Earlier())


def seconds(expected: Expected, stage: str) -> list[float | None]:
    return [piece.seconds for piece in expected.pieces if piece.stage == stage]


def test_without_earlier_runs_it_says_so(under_way: UnderWay) -> None:
    of = expected(under_way)
    budget_s = float(under_way.directory.header.settings["budget_s"])
    assert of.sentence.startswith(f"To do: 2 compiles, 2 checks, {budget_s:.0f} s of timed rounds; ")
    assert of.sentence.endswith("no earlier run here says how long the compiles and the checks take")
    assert seconds(of, COMPILE) == seconds(of, VERIFY) == [None, None]


def test_with_earlier_runs_it_says_how_long(under_way: UnderWay) -> None:
    known = Earlier()
    for kind in ("compile", "check", "reference"):
        known.add(kind, (under_way.artifact.sha256,), 30)
    known.add("compile", (STOCK.id,), 100)
    of = expected(under_way, known)
    assert seconds(of, COMPILE) == [100, 30]
    assert seconds(of, REFERENCE) == [30, 30]
    assert "about " in of.sentence
    assert "no earlier" not in of.sentence


def test_turns_that_do_not_fit_their_share_take_what_two_rounds_take(under_way: UnderWay) -> None:
    known = Earlier()
    for case in (STOCK, FAST):
        known.add("turn", (case.id,), 1000)
        known.add("load", (case.id,), 7)
    assert set(seconds(expected(under_way, known), MEASURE)) == {2 * 2 * 1000 + 14}


def test_what_is_cached_costs_nothing_and_cases_of_one_compile_are_compiled_once(under_way: UnderWay) -> None:
    alike = replace(FAST, name="net/again@cpu")
    context = under_way.context([STOCK, FAST, alike], SUITE)
    under_way.artifact.mlir.write_text("module {}")
    request = request_for(context.prepared, STOCK, under_way.artifact, "", context.options.compile_limits)
    build, _ = BuildCache(cache_root()).compile(request)
    assert build.failure is None
    of = expect(context, {"net": under_way.artifact}, Earlier())
    assert of.sentence.startswith("To do: 1 compile (for 2 cases, 1 more is in the cache), 3 checks, ")


def test_a_run_that_goes_on_has_what_is_left_to_do(under_way: UnderWay) -> None:
    header = under_way.directory.header.settings
    done = Done(
        checks={STOCK.name: a_check(STOCK), FAST.name: a_check(FAST, failure=Failure(stage="verify", message="no"))},
        references={STOCK.name: Reference(case=STOCK.name, command=())},
        generations={(STOCK.group, 0): (float(header["budget_s"]), 5)},
    )
    of = expected(under_way, done=done)
    assert (seconds(of, VERIFY), seconds(of, REFERENCE)) == ([], [])
    assert "check" not in of.sentence.partition(";")[0]
    assert len(seconds(of, MEASURE)) == int(header["generations"]) - 1
