"""A comparison from its first side on: what is kept of it, and how it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cache import write_atomically
from harness.compare.comparison import Plan, plan_comparison
from harness.compare.options import CompareOptions
from harness.compare.pairs import Pair
from harness.compare.remeasure import Bench as RowBench
from harness.compare.samplers import MeasurementPolicy
from harness.errors import CaseError, Interrupted, PlaceGone, RunError, UsageError
from harness.process import Limits
from harness.progress import Silent
from harness.records.comparison import Comparison, Row
from harness.stages import comparing, side_runs
from harness.stages import comparing as room
from harness.stages.comparing import MOST_ROWS, Underway, compare_sides, explain_regressions, going_on
from harness.stages.explaining import Found
from harness.stages.options import RunOptions
from harness.stats.rule import Rule
from harness.store.files import FINISHED_FILE
from harness.store.kinds import EXPLANATION
from harness.store.run_directory import RunDirectory
from harness.store.sides_directory import ComparisonDirectory
from tests.builders import Notes, make_header
from tests.compare.runs import a_case, a_side
from tests.report.builders import make_comparison, make_timed
from tests.report.explanations import make_explanation


class Runs:
    """Runs of sides that are made without compiling: how each ends is written down."""

    def __init__(self, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.results = results
        self.asked: list[Path | None] = []
        self.ends: list[BaseException | None] = []
        monkeypatch.setattr(side_runs, "run_suite", self._run)

    def _run(self, options: RunOptions, *_: object, on_begin: Callable[[RunDirectory], None], **__: Any) -> Path:
        self.asked.append(options.resume)
        if options.resume is None:
            directory = RunDirectory.create(self.results, make_header())
        else:
            directory = RunDirectory.resume(options.resume)[0]
        on_begin(directory)
        if (error := self.ends.pop(0)) is not None:
            raise error
        write_atomically(directory.path / FINISHED_FILE, b"{}")
        return directory.path


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path, monkeypatch)


def sides(runs: Runs, **options: Any) -> None:
    """Make the runs of both sides, of a comparison that is stopped then if it was not before."""
    chosen = CompareOptions(**{"results": runs.results, **options})
    with Underway(chosen, command=["harness", "compare"]) as underway:
        make(underway)


def again(path: Path, **options: Any) -> Underway:
    folder = ComparisonDirectory.resume(path)
    return Underway(going_on(folder, CompareOptions(**options)), folder=folder)


def make(underway: Underway) -> None:
    for side in ("3.12.0", "3.13.0"):
        underway.run_of_side(side, RunOptions(Path("suite.toml")), Silent())
    raise Interrupted(underway.how_to_go_on)


def test_sides_that_are_made_are_not_made_again(runs: Runs) -> None:
    stopped = Interrupted("by the user")
    runs.ends = [None, stopped, stopped, None]
    with pytest.raises(Interrupted) as caught:
        sides(runs, seed=7)
    (path,) = runs.results.glob("*-compare")
    assert str(caught.value) == f"interrupted; go on with `harness compare --resume {path}`"
    for _ in range(2):
        with pytest.raises(Interrupted), again(path) as underway:
            make(underway)
    second = sorted(runs.results.glob("*-small*"))[1]
    assert runs.asked == [None, None, second, second]
    with again(path) as underway:
        assert (underway.options.seed, underway.command) == (7, ("harness", "compare"))
        assert underway.options.results == runs.results


def test_nothing_is_left_where_there_is_nothing_to_go_on_with(runs: Runs) -> None:
    with pytest.raises(UsageError), Underway(CompareOptions(results=runs.results)) as underway:
        underway.folder("small")
        raise UsageError("the two have no case in common")
    with pytest.raises(Interrupted) as caught, Underway(CompareOptions(results=runs.results)) as underway:
        underway.folder("small")
        raise Interrupted(underway.how_to_go_on)
    assert str(caught.value) == "interrupted"
    assert not list(runs.results.iterdir())


def test_one_on_a_fleet_goes_on_there_wherever_its_scheduler_is(runs: Runs) -> None:
    runs.ends = [Interrupted("by the user")]
    with pytest.raises(Interrupted):
        sides(runs, fleet="tls://bench:8786", spread=True)
    (path,) = runs.results.glob("*-compare")
    assert again(path).options.fleet == "tls://bench:8786"
    options = again(path, fleet="tls://other:1").options
    assert (options.fleet, options.spread) == ("tls://other:1", True)


def test_one_whose_hosts_have_gone_when_the_second_side_begins_is_kept(runs: Runs) -> None:
    class Bench:
        left = 1

        def following(self, _runs: object) -> Bench:
            if not self.left:
                raise PlaceGone("tls://bench:8786: no host has joined; start `harness fleet worker` on one")
            self.left -= 1
            return self

    runs.ends = [None]
    chosen = CompareOptions(results=runs.results, fleet="tls://bench:8786")
    with pytest.raises(PlaceGone) as caught, Underway(chosen) as underway:
        underway.bench = Bench()  # type: ignore[assignment]
        make(underway)
    (path,) = runs.results.glob("*-compare")
    assert str(caught.value).endswith(f"what has arrived is kept: go on with `harness compare --resume {path}`")
    assert again(path).finished_run("3.12.0") is not None


@pytest.mark.parametrize("fleet", ["", "tls://bench:8786"])
def test_compiles_may_take_most_of_this_machines_memory_and_on_a_fleet_what_each_host_gives(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, fleet: str
) -> None:
    given: list[int | None] = []

    def stop(_: Plan, bench: RowBench) -> list[Row]:
        given.append(bench.memory_bytes)
        raise Interrupted("by the user")

    monkeypatch.setattr(room, "remeasure", stop)
    side = a_side(a_case())
    with pytest.raises(Interrupted), Underway(CompareOptions(results=runs.results)) as underway:
        underway.bench = SimpleNamespace(address=fleet, rows=lambda *_: None)
        compare_sides(side, side, {}, underway, Silent())
    assert given == [None if fleet else RunOptions().compile_limits.memory_bytes]


@pytest.fixture
def stopped(runs: Runs) -> Path:
    """A comparison that was stopped when its first side was being made."""
    runs.ends = [Interrupted("by the user")]
    with pytest.raises(Interrupted):
        sides(runs)
    (path,) = runs.results.glob("*-compare")
    return path


def test_one_that_goes_on_takes_no_options_of_its_own(stopped: Path) -> None:
    with pytest.raises(UsageError) as caught:
        again(stopped, seed=1, within=Path("run"))
    assert str(caught.value) == "--resume goes on with the comparison's own settings; leave out within, seed"
    with pytest.raises(RunError) as refused:
        again(stopped, fleet="tls://bench:8786")
    assert str(refused.value) == f"{stopped}: one machine measured it; go on there, without --fleet"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda file: file.unlink(), "is no comparison that can go on"),
        (lambda file: file.write_text("{}"), "is damaged; compare the two sides again"),
        (lambda file: file.write_text(file.read_text().replace('"seed"', '"sed"').replace("0", '"x"')), "is damaged"),
        (lambda file: file.write_text(file.read_text().replace('"machine": "', '"machine": "not ')), "another machine"),
    ],
)
def test_what_cannot_go_on_says_why(stopped: Path, damage: Callable[[Path], object], words: str) -> None:
    damage(stopped / "unfinished.json")
    with pytest.raises(RunError, match=words):
        again(stopped)


def test_two_do_not_go_on_with_one_comparison_at_once(stopped: Path) -> None:
    first, second = (again(stopped) for _ in range(2))
    with first, pytest.raises(RunError, match="another harness is writing this comparison"), second:
        pass


POLICY = MeasurementPolicy(rule=Rule(floor=0.01), budget_s=1.0, cap_s=1.0, seed=0, call_limit_s=1.0, limits=Limits())
CASES = [a_case(f"v{number}", baseline=number == 0) for number in range(MOST_ROWS + 2)]


def compared(*ratios: float) -> Comparison:
    """A comparison in which the first cases regressed by so much."""
    rows = [make_timed(case.name, 1.0, ratio, "regressed") for case, ratio in zip(CASES, ratios, strict=False)]
    return make_comparison([*rows, make_timed(CASES[-1].name, 1.0, 0.5, "improved")])


def explain(
    comparison: Comparison, results: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch, failing: str = ""
) -> Any:
    def explain_pair(pair: Pair, *_: object, within: bool, **__: object) -> Found:
        assert not within
        if pair.name == failing:
            raise CaseError("ir", "its IR cannot be had")
        return Found(explanation=replace(make_explanation(), case=pair.name), is_stopped=pair.name == "stopped")

    monkeypatch.setattr(comparing, "explain_pair", explain_pair)
    base = a_side(*CASES, label="results/base", code={case.name: "old" for case in CASES})
    plan = plan_comparison(base, a_side(*CASES, label="results/head"), CompareOptions())
    return explain_regressions(comparison, plan, {}, POLICY, results, notes)


def test_the_largest_come_first_and_each_is_kept(tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    explained, said = explain(compared(1.1, 1.3), tmp_path, notes, monkeypatch)
    assert [each.case for each in explained] == ["net/v1@cpu", "net/v0@cpu"]
    assert said == ()
    for each in explained:
        assert EXPLANATION.load(tmp_path / each.explanation).case == each.case
        assert len(each.parts) == 3 and each.left_out == 1


def test_of_many_some_are_left(tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    explained, said = explain(compared(*[1.1] * (MOST_ROWS + 1)), tmp_path, notes, monkeypatch)
    assert len(explained) == MOST_ROWS
    assert said == ("1 regression less large is not explained; `harness explain` does that",)


def test_one_that_cannot_be_explained_says_why(tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    explained, _ = explain(compared(1.3, 1.1), tmp_path, notes, monkeypatch, failing="net/v0@cpu")
    assert explained[0].sentence == "It cannot be explained: its IR cannot be had."
    assert explained[1].parts
    assert "net/v0@cpu cannot be explained: its IR cannot be had" in notes.lines


@pytest.fixture
def notes() -> Notes:
    return Notes()
