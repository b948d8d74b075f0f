"""A comparison from its first side on: what is kept of it, and how it goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cache import write_atomically
from harness.compare.comparison import Plan
from harness.compare.options import CompareOptions
from harness.compare.remeasure import Bench as RowBench
from harness.errors import Interrupted, PlaceGone, RunError, UsageError
from harness.progress import Silent
from harness.records.comparison import Row
from harness.stages import comparing as room
from harness.stages import underway
from harness.stages.comparing import Underway, compare_sides, going_on
from harness.stages.options import RunOptions
from harness.store.files import FINISHED_FILE
from harness.store.run_directory import RunDirectory
from harness.store.sides_directory import ComparisonDirectory
from tests.builders import make_header
from tests.compare.runs import a_case, a_side


class Runs:
    """Runs of sides that are made without compiling: how each ends is written down."""

    def __init__(self, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.results = results
        self.asked: list[Path | None] = []
        self.ends: list[BaseException | None] = []
        monkeypatch.setattr(underway, "run_suite", self._run)

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
