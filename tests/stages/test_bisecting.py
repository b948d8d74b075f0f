"""Bisects of releases and of parts whose times are known: nothing is installed, compiled or timed."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness.bisect.search import Unusable
from harness.bisect.trials import Place
from harness.compare.pairs import Pair, Side, side_of
from harness.compare.samplers import MeasurementPolicy
from harness.errors import Interrupted, RunError, ToolchainError, UsageError
from harness.progress import Silent
from harness.records.bisection import Bisection, Trial
from harness.records.comparison import Verdict
from harness.records.explanation import Explanation
from harness.records.run import Run, ToolchainRecord
from harness.report.bisect_page import bisect_json
from harness.stages import bisect_underway, bisecting, bisecting_parts
from harness.stages.bisect_underway import BisectUnderway
from harness.stages.bisecting import bisect_releases, turned_round, underway_of
from harness.stages.bisecting_parts import bisect_parts
from harness.stages.explaining import Found
from harness.stages.options import BisectOptions
from harness.store.search_directory import TRIALS_FILE
from harness.suite.load import load_suite
from harness.toolchain import Toolchain
from tests.builders import Notes, make_case, make_header
from tests.fakes.fake_toolchain import make_fake_toolchain

SUITE = """\
name = "small"
baseline = "stock"
flagset_files = ["flags.toml"]

[models.net]
builder = "matmul"
params = { m = 4, n = 4, k = 4 }

[variants.stock]

[variants.fast]
flagsets = ["tiling"]
flags = ["--c", "--d"]
plugins = [{ name = "tuned", options = { width = 16 } }]

[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local"]
"""
FLAGS = '[flagsets.tiling]\ncompile = ["--a", "--b"]\n'
RELEASES = [f"3.{number}.0" for number in range(9)]
Times = Callable[[Place], float]


class Machine:
    """Measures exactly, what places take by a rule of the test's; it stops after so many measurements.

    Attributes:
        asked: Each pair that was measured, in order; judged are those that were not just placed.
        noisy: Positions on which no measurement is decided.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.toolchain: Toolchain = make_fake_toolchain(folder / "tools")
        self.times: Times = lambda _: 1.0
        self.broken: dict[str, str] = {}
        self.noisy: set[str] = set()
        self.asked: list[tuple[str, str]] = []
        self.judged: list[tuple[str, str]] = []
        self.compiled: list[str] = []
        self.stop_after: int | None = None
        monkeypatch.setenv("HARNESS_CACHE", str(folder / "cache"))
        monkeypatch.setattr(BisectUnderway, "compiled", lambda _, *args, **__: self._compile(*args))
        monkeypatch.setattr(bisect_underway, "try_pair", self._measure)
        monkeypatch.setattr(bisecting, "get_toolchains", self.install)
        monkeypatch.setattr(bisecting_parts, "get_toolchains", self.install)
        monkeypatch.setattr(bisecting_parts, "find_toolchain", lambda: self.toolchain)
        monkeypatch.setattr(bisecting_parts, "compiler_flags", lambda _: frozenset({"a-opt-level", "b-opt-level"}))

    def install(self, versions: Sequence[str], **_: object) -> tuple[Toolchain, ...]:
        """Give each release the same tools."""
        return tuple(replace(self.toolchain, version=version) for version in versions)

    def _compile(self, name: str, suite: Path, case: str, toolchain: Toolchain, *_: object) -> Place | Unusable:
        self.compiled.append(name)
        if name in self.broken:
            return Unusable(reason=self.broken[name])
        variant = next(variant for variant in load_suite(suite).suite.variants if case == f"net/{variant.name}@cpu")
        record = ToolchainRecord(version=toolchain.version, revision="12" * 20, compiler_sha256="")
        header = make_header(toolchains=(record,), suite=str(suite))
        flags = (*variant.compile_flags, *(use.with_options for use in variant.plugins))
        found = replace(make_case(variant.name, compile_flags=flags), toolchain=toolchain.version)
        return Place(name=name, side=side_of(Run(header=header), name), case=found, toolchain=toolchain)

    def _placed(self, log: float, whole: float | None) -> bool:
        return whole is not None and min(abs(log / whole), abs(log / whole - 1)) < 0.25

    def _measure(
        self,
        base: Place,
        head: Place,
        _metric: object,
        policy: MeasurementPolicy,
        *_: object,
        whole: float | None,
        **__: object,
    ) -> Trial:
        rule = policy.rule
        if self.stop_after is not None and len(self.asked) >= self.stop_after:
            raise KeyboardInterrupt
        self.asked.append((base.name, head.name))
        ratio = self.times(head) / self.times(base)
        placed = head.name not in self.noisy and self._placed(math.log(ratio), whole)
        self.judged += [] if placed else [(base.name, head.name)]
        log, edge = math.log(ratio), math.log1p(rule.floor)
        verdict: Verdict = "unchanged" if abs(log) <= edge else "regressed" if log > 0 else "improved"
        wide = 1.001
        if head.name in self.noisy:
            verdict, wide = "inconclusive", 3.0
        if placed:
            return Trial(
                base=base.name, head=head.name, floor=rule.floor, verdict="inconclusive", ratio=ratio, placed=True
            )
        return Trial(
            base=base.name,
            head=head.name,
            floor=rule.floor,
            verdict=verdict,
            reason="it is so",
            ratio=ratio,
            ci_low=ratio / wide,
            ci_high=ratio * wide,
            p=1e-6,
            generations=22,
            seconds=5.0,
        )


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    (tmp_path / "small.toml").write_text(SUITE)
    (tmp_path / "flags.toml").write_text(FLAGS)
    monkeypatch.chdir(tmp_path)
    return Machine(tmp_path, monkeypatch)


def begun(**options: Any) -> BisectUnderway:
    given: dict[str, Any] = {"case": "net/stock@cpu", "release": tuple(RELEASES), **options}
    return underway_of(BisectOptions(Path("small.toml"), **given), ("harness", "bisect"), Silent())


def over_releases(**options: Any) -> Bisection:
    with begun(good="iree==3.0", bad="3.8.0", **options) as underway:
        return bisect_releases(underway)


def since(place: str, before: float, after: float) -> Times:
    """What releases take where one began a step."""
    return lambda found: after if RELEASES.index(found.name) >= RELEASES.index(place) else before


# --- releases ---


def test_the_release_since_which_a_case_is_slower(machine: Machine) -> None:
    machine.times = since("3.5.0", 1.0, 1.4)
    found = over_releases()
    (step,) = found.steps
    assert (step.before, step.after, step.passed_over) == ("3.4.0", "3.5.0", ())
    assert step.size.ratio == pytest.approx(1.4)
    assert (found.ends, found.over, found.finished) == (("3.0.0", "3.8.0"), "releases", True)
    assert machine.asked[0] == ("3.0.0", "3.8.0")
    assert len(machine.asked) <= 6
    assert machine.judged == [("3.0.0", "3.8.0"), ("3.4.0", "3.5.0")], "the ends and the step"
    assert len(machine.compiled) == len(set(machine.compiled)), "each is compiled once"
    assert [position.name for position in found.positions] == sorted(machine.compiled)
    assert found.positions[0].revision == "12" * 20
    assert {trial.belongs for trial in found.trials} == {"base", "head"}
    assert 0 < found.error <= 0.01


def test_a_smaller_step_is_noted_and_searched_for_by_who_asks_for_it(machine: Machine) -> None:
    machine.times = lambda place: {"3.8.0": 2.1}.get(place.name, 2.0 if place.name >= "3.3.0" else 1.0)
    with begun(good="3.0.0", bad="3.8.0") as underway:
        found = bisect_releases(underway)
        underway.directory.finish(bisect_json(found), "")
    assert [step.after for step in found.steps] == ["3.3.0"]
    (stretch,) = found.open
    assert (stretch.last, stretch.aside, found.is_known) == ("3.8.0", True, True)
    with underway_of(BisectOptions(resume=underway.directory.path, all_steps=True), (), Silent()) as again:
        more = bisect_releases(again)
    assert ([step.after for step in more.steps], more.open) == (["3.3.0", "3.8.0"], ())


@dataclass(frozen=True, kw_only=True)
class Explained:
    """What an explanation across a step came to."""

    verdict: Verdict
    id: str = "an-explanation"

    @property
    def sentence(self) -> str:
        """As an explanation's."""
        return "It tiles otherwise."

    @property
    def latency(self) -> Explained:
        """As an explanation's row."""
        return self


@pytest.mark.parametrize(("verdict", "words"), [("regressed", "It tiles otherwise."), ("inconclusive", "")])
def test_a_step_is_explained_by_what_shows_it(
    verdict: Verdict, words: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides: list[tuple[str, str]] = []

    def explain(pair: Pair, base: Side, head: Side, *_: object, **__: object) -> Found:
        assert pair.base is not None and pair.head is not None
        sides.append((pair.base.toolchain, pair.head.toolchain))
        return Found(explanation=cast("Explanation", Explained(verdict=verdict)), is_stopped=False)

    monkeypatch.setattr(bisect_underway, "explain_pair", explain)
    monkeypatch.setattr(bisect_underway, "keep", lambda found, *_: (found, Path("results/an-explanation")))
    machine.times = since("3.1.0", 1.0, 1.4)
    notes = Notes()
    options = BisectOptions(
        Path("small.toml"), case="net/stock@cpu", good="3.0.0", bad="3.8.0", release=tuple(RELEASES)
    )
    with underway_of(options, (), notes) as underway:
        (step,) = bisect_releases(underway).steps
    assert (step.after, step.size.verdict, step.explanation) == ("3.1.0", "regressed", words)
    assert step.size.ratio == pytest.approx(1.4), "it was measured beside the first release, at a farther edge"
    assert sides == [("3.0.0", "3.1.0")]
    unseen = "The step is not explained: measured with its parts it is not seen again; see results/an-explanation"
    assert (unseen in notes.lines) == (not words)


def test_a_step_and_its_repair(machine: Machine) -> None:
    machine.times = lambda place: 1.5 if place.name in RELEASES[3:6] else 1.0
    with begun(good="3.0.0", bad="3.4.0", fixed="3.8.0") as underway:
        found = bisect_releases(underway)
    began, ended = found.steps
    assert (began.before, began.after, began.size.verdict) == ("3.2.0", "3.3.0", "regressed")
    assert (ended.before, ended.after, ended.size.verdict) == ("3.5.0", "3.6.0", "improved")
    assert ended.size.ratio == pytest.approx(1 / 1.5)
    assert (ended.size.base, ended.size.head) == ("3.5.0", "3.6.0")


def test_since_when_it_is_faster_is_found_too_and_from_the_newer_end(machine: Machine) -> None:
    machine.times = since("3.2.0", 2.0, 1.0)
    with begun(good="3.8.0", bad="3.0.0") as underway:
        (step,) = bisect_releases(underway).steps
    assert (step.before, step.after, step.size.verdict) == ("3.1.0", "3.2.0", "improved")


def test_releases_that_cannot_be_measured_are_passed_over(machine: Machine) -> None:
    machine.times = since("3.5.0", 1.0, 1.4)
    machine.broken = {"3.4.0": "it does not compile", "3.5.0": "it gives other outputs"}
    found = over_releases()
    (step,) = found.steps
    assert (step.before, step.after, step.passed_over) == ("3.3.0", "3.6.0", ("3.4.0", "3.5.0"))
    assert {position.name: position.unusable for position in found.positions if position.unusable} == machine.broken
    reasons = {trial.head: trial.reason for trial in found.trials if trial.verdict == "failed"}
    assert reasons == machine.broken


def test_an_end_that_cannot_be_measured_ends_it(machine: Machine) -> None:
    machine.broken = {"3.8.0": "it does not compile"}
    with pytest.raises(UsageError) as caught:
        over_releases()
    assert str(caught.value) == (
        "net/stock@cpu cannot be measured with IREE 3.8.0, an end of the search: it does not compile"
    )


def test_ends_that_do_not_differ_leave_nothing_to_search(machine: Machine) -> None:
    found = over_releases()
    assert (found.steps, found.open, machine.asked) == ((), (), [("3.0.0", "3.8.0")])


def test_who_stops_it_goes_on_where_it_was(machine: Machine) -> None:
    machine.times = since("3.5.0", 1.0, 1.4)
    whole = over_releases()
    asked = list(machine.asked)
    machine.asked.clear()
    machine.stop_after = 3
    with pytest.raises(Interrupted) as caught:
        over_releases()
    command = re.search(r"go on with `harness bisect --resume (\S+)`", str(caught.value))
    assert command is not None
    machine.stop_after = None
    with underway_of(BisectOptions(resume=Path(command[1])), (), Silent()) as underway:
        again = bisect_releases(underway)
    assert machine.asked == asked, "nothing is measured twice, and nothing else is measured"
    assert (again.steps, again.trials) == (whole.steps, whole.trials)
    assert again.command == ("harness", "bisect")


def test_a_budget_that_is_spent_leaves_the_rest_for_later(machine: Machine) -> None:
    machine.times = since("3.5.0", 1.0, 1.4)
    found = over_releases(budget=1e-9)
    assert not found.finished
    assert len(machine.asked) == 1, "a measurement that began is ended"
    assert found.notes[0].startswith("The budget of all measurements was spent; go on with `harness bisect --resume ")
    with underway_of(BisectOptions(resume=Path(found.id)), (), Silent()) as underway:
        again = bisect_releases(underway)
    assert again.finished
    assert [step.after for step in again.steps] == ["3.5.0"]


def test_what_stayed_open_is_measured_again_with_more_time(machine: Machine) -> None:
    machine.times, machine.noisy = since("3.5.0", 1.0, 1.4), {"3.4.0", "3.5.0"}
    with begun(good="3.0.0", bad="3.8.0") as underway:
        first = bisect_releases(underway)
        underway.directory.finish(bisect_json(first), "")
    assert [(step.before, step.after) for step in first.steps] == [("3.3.0", "3.6.0")]
    asked, judged = len(machine.asked), len(machine.judged)
    machine.noisy.clear()
    options = BisectOptions(resume=underway.directory.path, row_budget=600.0)
    with underway_of(options, (), Silent()) as again:
        assert again.options.row_budget == 600
        second = bisect_releases(again)
        again.directory.finish(bisect_json(second), "")
    assert [(step.before, step.after) for step in second.steps] == [("3.4.0", "3.5.0")]
    twice = {*machine.asked[:asked]} & {*machine.asked[asked:]}
    assert {head for _, head in twice} == {"3.4.0", "3.5.0"}, "what was decided is not measured again"
    assert second.error == pytest.approx(first.error * len(machine.judged) / judged), "all that was judged counts"
    with pytest.raises(RunError, match="this bisect has its answer"):
        underway_of(options, (), Silent())


def test_a_release_that_cannot_be_had_says_how_to_go_on(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = {"3.4.0"}

    def install(versions: Sequence[str], **_: object) -> tuple[Toolchain, ...]:
        for version in versions:
            if version in lost:
                raise ToolchainError(f"IREE {version} cannot be installed: the disk is full; make room")
        return machine.install(versions)

    machine.times = since("3.5.0", 1.0, 1.4)
    monkeypatch.setattr(bisecting, "get_toolchains", install)
    with pytest.raises(ToolchainError) as caught:
        over_releases()
    assert re.fullmatch(
        r"IREE 3\.4\.0 cannot be installed: the disk is full; make room; then go on with "
        r"`harness bisect --resume \S+`, or begin again with --skip 3\.4\.0",
        str(caught.value),
    )
    shutil.rmtree("results")
    lost.add("3.8.0")
    with pytest.raises(ToolchainError) as caught:
        over_releases()
    assert str(caught.value) == "IREE 3.8.0 cannot be installed: the disk is full; make room"
    assert not Path("results").exists(), "without an end there is nothing to go on with"


def test_the_index_says_what_lies_between(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, bool]] = []

    def between(first: str, last: str, *, pre: bool) -> tuple[str, ...]:
        asked.append((first, last, pre))
        return ("3.0.0", "3.1.0rc1", "3.1.0", "3.2.0")

    monkeypatch.setattr(bisecting, "releases_between", between)
    underway = begun(good="3.2", bad="3.0", release=(), pre=True, skip=("3.1.0",))
    assert underway.directory.begun.history == ("3.0.0", "3.1.0rc1", "3.2.0")
    assert asked == [("3.0.0", "3.2.0", True)]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"good": "3.0.0"}, "give two releases, as in --good iree==3.6.0 --bad iree==3.8.0; or --over flags"),
        ({"good": "3.1.0", "bad": "soon"}, "--bad soon: is no version; write the release, as in --bad 3.12.0"),
        (
            {"good": "3.1.0", "bad": "iree==3.1"},
            "two ends of the search are one release (3.1.0, 3.1.0); give different ones",
        ),
        (
            {"good": "3.1.0", "bad": "3.3.0", "fixed": "3.2.0"},
            "--fixed 3.2.0 does not lie beyond --bad 3.3.0, seen from --good 3.1.0; correct the order",
        ),
        (
            {"good": "3.1.0", "bad": "3.3.0", "skip": ("3.3.0",)},
            "--skip 3.3.0 is an end of the search; give another end",
        ),
        (
            {"good": "3.1.0", "bad": "3.3.0", "case": "net/stok@cpu"},
            "small.toml: there is no case 'net/stok@cpu'; did you mean \"net/stock@cpu\"?",
        ),
        (
            {"good": "3.1", "bad": "3.3", "metric": "latncy"},
            '--metric latncy: there is no such metric; did you mean "latency"?',
        ),
        (
            {"good": "3.1", "bad": "3.3", "metric": "flow/tensor.empty"},
            "--metric flow/tensor.empty: small.toml does not count it; add 'tensor.empty' to flow in [ir]",
        ),
        (
            {"good": "3.1.0", "over": "flags"},
            "--good is a release, and --over flags searches one variant's parts; leave it out",
        ),
        (
            {"good": "3.1.0", "bad": "3.3.0", "base": "stock"},
            "--base and --toolchain are for --over flags; leave them out",
        ),
    ],
)
def test_what_does_not_go_together(options: dict[str, Any], sentence: str, machine: Machine) -> None:
    with pytest.raises(UsageError) as caught:
        begun(**options)
    assert str(caught.value) == sentence
    assert not Path("results").exists()


def test_a_bisect_goes_on_with_its_own_settings_on_its_own_machine(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = begun(good="3.0.0", bad="3.8.0").directory.path
    with pytest.raises(UsageError, match="--resume goes on with the bisect's own settings; leave out suite, metric"):
        underway_of(BisectOptions(Path("x.toml"), resume=path, metric="copies"), (), Silent())
    monkeypatch.setattr(bisecting, "environment_here", lambda: {"machine": {"id": "another"}})
    with pytest.raises(RunError, match="was begun on another machine; go on there, or begin it again"):
        underway_of(BisectOptions(resume=path), (), Silent())


def test_each_measurement_is_a_line_and_a_note(machine: Machine) -> None:
    machine.times = since("3.5.0", 1.0, 1.4)
    notes = Notes()
    options = BisectOptions(
        Path("small.toml"), case="net/stock@cpu", good="3.0.0", bad="3.8.0", release=tuple(RELEASES)
    )
    with underway_of(options, (), notes) as underway:
        found = bisect_releases(underway)
    lines = (underway.directory.path / TRIALS_FILE).read_text().splitlines()
    assert len(lines) == len(machine.asked) == len(found.trials)
    assert notes.lines[0].startswith(
        "9 releases from 3.0.0 to 3.8.0: the ends and the step are judged by their latency"
    )
    assert notes.lines[1] == "3.8.0 beside 3.0.0: regressed, 1.400 times (it is so)"
    assert notes.lines[2] == "3.4.0 beside 3.0.0: placed, 1.000 times ()"


def test_a_measurement_seen_from_the_other_side() -> None:
    trial = Trial(base="a", head="b", floor=0.01, verdict="regressed", ratio=2.0, ci_low=1.6, ci_high=2.5, base_value=1)
    assert turned_round(trial) == replace(
        trial,
        base="b",
        head="a",
        verdict="improved",
        ratio=0.5,
        ci_low=0.4,
        ci_high=0.625,
        base_value=None,
        head_value=1,
    )
    assert turned_round(turned_round(trial)) == trial


# --- parts ---


def over_parts(**options: Any) -> Bisection:
    with begun(case="net/fast@cpu", over="flags", release=(), **options) as underway:
        return bisect_parts(underway)


def having(*factors: tuple[set[str], float]) -> Times:
    """What variants take, of which these flags together have a factor."""

    def times(place: Place) -> float:
        product = (factor for flags, factor in factors if flags <= set(place.case.compile_flags))
        return math.prod(product)

    return times


def test_two_parts_that_act_together(machine: Machine) -> None:
    machine.times = having(({"--b", "--d"}, 0.5))
    found = over_parts()
    assert found.parts == ("--a", "--b", "--c", "--d", "plugin tuned", "tuned: width = 16")
    (cause,) = found.causes
    assert (cause.parts, cause.beside, cause.untold) == ((2, 4), (), False)
    assert cause.size.ratio == pytest.approx(0.5)
    assert [(trial.head, trial.verdict) for trial in cause.alone] == [("2", "unchanged"), ("4", "unchanged")]
    assert found.ends == ("stock", "fast")


def test_parts_that_each_add_something_are_found_one_after_the_other(machine: Machine) -> None:
    machine.times = having(({"--a"}, 0.5), ({"--c"}, 0.9))
    first, second = over_parts().causes
    assert (first.parts, second.parts, second.beside) == ((1,), (3,), (1,))
    assert second.size.ratio == pytest.approx(0.9)


def test_a_plugin_and_its_option_are_found_together(machine: Machine) -> None:
    machine.times = having(({"tuned(width = 16)"}, 0.7))
    found = over_parts()
    assert found.causes[0].parts == (5, 6)
    assert len(found.trials) == len({trial.key for trial in found.trials}), "each is told once"


def test_variants_that_do_not_differ_in_the_figure_have_no_cause(machine: Machine) -> None:
    found = over_parts()
    assert (found.causes, found.open, machine.asked) == ((), (), [("none", "1+2+3+4+5+6")])


def test_a_set_that_a_suite_refuses_cannot_be_told(machine: Machine) -> None:
    machine.times = having(({"--b"}, 0.5))
    machine.broken = {"2": "it is refused"}
    (cause,) = over_parts().causes
    assert 2 in cause.parts
    assert cause.untold


def test_a_level_is_taken_apart_into_what_it_sets(machine: Machine) -> None:
    levelled = SUITE.replace('flags = ["--c", "--d"]', 'flags = ["--iree-opt-level=O3"]')
    Path("small.toml").write_text(levelled)
    level, inner = "--iree-opt-level=O3", "--b-opt-level=O3"
    machine.times = lambda place: 0.5 if {level, inner} & set(place.case.compile_flags) else 1.0
    (cause,) = over_parts().causes
    assert cause.parts == (3,)
    assert cause.inside == (inner,)


def test_variants_without_a_part_between_them(machine: Machine) -> None:
    with pytest.raises(UsageError, match="variant 'fast' has no part that 'fast' does not have; give another variant"):
        over_parts(base="fast")
    with pytest.raises(UsageError, match=r"small.toml: there is no variant 'fst'; did you mean \"fast\"\?"):
        over_parts(base="fst")
    assert not Path("results").exists()


def test_a_bisect_of_parts_goes_on_where_it_was(machine: Machine) -> None:
    machine.times = having(({"--b", "--d"}, 0.5))
    whole = over_parts()
    asked = list(machine.asked)
    machine.asked.clear()
    machine.stop_after = 4
    with pytest.raises(Interrupted):
        over_parts()
    machine.stop_after = None
    with underway_of(BisectOptions(resume=Path("latest")), (), Silent()) as underway:
        again = bisect_parts(underway)
    assert machine.asked == asked
    assert again.causes == whole.causes
