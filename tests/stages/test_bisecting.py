"""Bisects whose times are known, and verdicts of counts: nothing is installed, compiled or timed."""

import math
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from harness.bisect.search import Unusable
from harness.bisect.trials import Place
from harness.compare import sides as compare_sides
from harness.compare.samplers import MeasurementPolicy
from harness.errors import Interrupted, NothingSelected, NoToolchain, RunError, SuiteError, ToolchainError, UsageError
from harness.progress import Progress
from harness.records.bisection import Bisection, CommitPoint, Trial
from harness.records.comparison import Verdict
from harness.records.run import Failure, ToolchainRecord
from harness.stages import bisect_commits, bisect_session, bisecting
from harness.stages.bisect_session import BisectSession, Judged, Wanted, judge_now
from harness.stages.bisecting import session_of
from harness.stages.explaining import AskedPair
from harness.stages.options import BisectOptions, VerdictOptions
from harness.store.run_directory import RunDirectory
from harness.store.work_directory import RECORD_FILE
from harness.suite.load import load_suite
from harness.toolchain import Toolchain, install
from tests.builders import Notes, make_case, make_header
from tests.compare.runs import a_side
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.report.builders import make_build
from tests.stages.conftest import FILE, lay_out_suite

# Instead of parts of the small suite's text.
CHANGES = {
    "[variants.tiled]": """[variants.fast]
flags = ["--c", "--d"]
plugins = [{ name = "tuned", options = { width = 16 } }]""",
    FILE: '[flagsets.tiling]\ncompile = ["--a", "--b"]\n',
}
RELEASES = tuple(f"3.{number}.0" for number in range(9))
Times = Callable[[Place], float]


class Machine:
    """Measures exactly, what places take by a rule of the test's; it stops after so many measurements."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.toolchain: Toolchain = make_fake_toolchain(folder / "tools")
        self.times: Times = lambda _: 1.0
        self.broken: dict[str, str] = {}  # Why positions cannot be measured
        self.noisy: set[str] = set()  # Those on which no measurement is decided
        self.lost: set[str] = set()  # Releases that cannot be installed
        self.asked: list[tuple[str, str]] = []  # Each pair that was measured, in order
        self.judged: list[tuple[str, str]] = []  # Those that were not just placed
        self.compiled: list[str] = []
        self.stop_after: int | None = None
        monkeypatch.setenv("HARNESS_CACHE", str(folder / "cache"))
        monkeypatch.setattr(bisect_session, "make_place", self._compile)
        monkeypatch.setattr(bisect_session, "try_pair", self._measure)
        monkeypatch.setattr(install, "get_toolchains", self._install)
        monkeypatch.setattr(install, "find_toolchain", lambda: self.toolchain)
        monkeypatch.setattr(bisecting, "compiler_flags", lambda _: frozenset({"a-opt-level", "b-opt-level"}))

    def _install(self, versions: Sequence[str], **_: object) -> tuple[Toolchain, ...]:
        for version in versions:
            if version in self.lost:
                raise ToolchainError(f"IREE {version} cannot be installed: the disk is full; make room")
        return tuple(replace(self.toolchain, version=version) for version in versions)

    def _compile(self, wanted: Wanted, *_: object, **__: object) -> Place | Unusable:
        name, toolchain = wanted.name, wanted.toolchain
        self.compiled.append(name)
        if name in self.broken:
            return Unusable(reason=self.broken[name])
        variants = load_suite(wanted.suite).variants
        variant = next(variant for variant in variants if wanted.case == f"net/{variant.name}@cpu")
        record = ToolchainRecord(version=toolchain.version, revision="12" * 20, compiler_sha256="")
        flags = (*variant.flags, *(use.with_options for use in variant.plugins))
        found = replace(make_case(variant.name, compile_flags=flags), toolchain=toolchain.version)
        side = a_side(found, toolchains=(record,), label=name)
        return Place(name=name, side=side, case=found, toolchain=toolchain)

    def _measure(
        self, base: Place, head: Place, _: object, policy: MeasurementPolicy, *__: object, whole: Any, **___: Any
    ) -> Trial:
        if self.stop_after is not None and len(self.asked) >= self.stop_after:
            raise KeyboardInterrupt
        self.asked.append((base.name, head.name))
        ratio, floor = self.times(head) / self.times(base), policy.rule.floor
        log, is_noisy = math.log(ratio), head.name in self.noisy
        trial = Trial(base=base.name, head=head.name, floor=floor, verdict="inconclusive", ratio=ratio)
        if whole is not None and not is_noisy and min(abs(log / whole), abs(log / whole - 1)) < 0.25:
            return replace(trial, placed=True)
        self.judged.append((base.name, head.name))
        verdict: Verdict = "unchanged" if abs(log) <= math.log1p(floor) else "regressed" if log > 0 else "improved"
        wide = 3.0 if is_noisy else 1.001
        return replace(
            trial,
            verdict="inconclusive" if is_noisy else verdict,
            reason="it is so",
            ci_low=ratio / wide,
            ci_high=ratio * wide,
            p=1e-6,
            generations=22,
            seconds=5.0,
        )


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.chdir(tmp_path)
    lay_out_suite(CHANGES)
    return Machine(tmp_path, monkeypatch)


def begun(progress: Progress | None = None, **options: Any) -> BisectSession:
    given: dict[str, Any] = {"case": "net/stock@cpu", "release": RELEASES, **options}
    return session_of(BisectOptions(Path("suite.toml"), **given), ("harness", "bisect"), progress or Progress())


def over_releases(progress: Progress | None = None, **options: Any) -> Bisection:
    return begun(progress, **{"good": "iree==3.0", "bad": "3.8.0", **options}).run()


def over_parts() -> Bisection:
    return begun(case="net/fast@cpu", over="flags", release=()).run()


def gone_on(path: Path = Path("latest"), **options: Any) -> Bisection:
    return session_of(BisectOptions(resume=path, **options), (), Progress()).run()


def since(place: str, before: float, after: float) -> Times:
    """What releases take where one began a step."""
    return lambda found: after if RELEASES.index(found.name) >= RELEASES.index(place) else before


def having(*factors: tuple[set[str], float]) -> Times:
    """What variants take, of which these flags together have a factor."""
    return lambda place: math.prod(factor for flags, factor in factors if flags <= set(place.case.compile_flags))


# --- releases ---


def test_the_release_since_which_a_case_is_slower(machine: Machine) -> None:
    machine.times, notes = since("3.5.0", 1.0, 1.4), Notes()
    found = over_releases(notes)
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
    lines = (Path("results") / found.id / RECORD_FILE).read_text().splitlines()
    assert sum('"trial/' in line for line in lines) == len(machine.asked) == len(found.trials)
    assert notes.lines[0].startswith("9 releases from 3.0.0 to 3.8.0: the ends and the step are judged by their lat")
    assert notes.lines[1:3] == [
        "3.8.0 beside 3.0.0: regressed, 1.400 times (it is so)",
        "3.4.0 beside 3.0.0: placed, 1.000 times ()",
    ]
    backwards = over_releases(good="3.8.0", bad="3.0.0")
    assert (backwards.ends, backwards.steps) == (("3.8.0", "3.0.0"), found.steps), "a history goes one way"
    machine.times = lambda place: 1.5 if place.name in RELEASES[3:6] else 1.0
    repaired = over_releases(bad="3.4.0", fixed="3.8.0")
    assert repaired.ends == ("3.0.0", "3.4.0", "3.8.0")
    assert [(step.after, step.size.verdict) for step in repaired.steps] == [
        ("3.3.0", "regressed"),
        ("3.6.0", "improved"),
    ]
    machine.times = lambda _: 1.0
    assert (over_releases().steps, over_releases().open) == ((), ())
    machine.times = lambda place: {"3.8.0": 2.1}.get(place.name, 2.0 if place.name >= "3.3.0" else 1.0)
    assert [step.after for step in over_releases().steps] == ["3.3.0"], "a far smaller one is beside the question"


@pytest.mark.parametrize(("verdict", "words"), [("regressed", "It tiles otherwise."), ("unchanged", "")])
def test_a_step_is_explained_by_what_shows_it(
    verdict: Verdict, words: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides: list[tuple[str, str]] = []
    latency = SimpleNamespace(verdict=verdict, reason="too few generations")

    def explain(asked: AskedPair, *_: object, **__: object) -> tuple[object, Path]:
        of_base, of_head = asked.pair.both
        sides.append((of_base.toolchain, of_head.toolchain))
        if len(sides) == 1:
            raise KeyboardInterrupt
        return SimpleNamespace(id="an-explanation", sentence="It tiles otherwise.", latency=latency), Path("kept")

    monkeypatch.setattr(bisect_session, "explain_and_keep", explain)
    machine.times, notes = since("3.1.0", 1.0, 1.4), Notes()
    with pytest.raises(Interrupted):
        over_releases()
    (step,) = session_of(BisectOptions(resume=Path("latest")), (), notes).run().steps
    assert (step.after, step.size.verdict, step.explanation) == ("3.1.0", "regressed", words)
    assert step.size.ratio == pytest.approx(1.4), "it was measured beside the first release, at a farther edge"
    assert sides == [("3.0.0", "3.1.0")] * 2
    why = "measured with its parts it is unchanged (too few generations); see kept"
    assert [line for line in notes.lines if "not explained" in line] == (
        [] if words else [f"The step is not explained: {why}"]
    )


def test_releases_that_cannot_be_measured_are_passed_over_and_an_end_ends_it(machine: Machine) -> None:
    machine.times = since("3.5.0", 1.0, 1.4)
    machine.broken = {"3.4.0": "it does not compile", "3.5.0": "it gives other outputs"}
    found = over_releases()
    (step,) = found.steps
    assert (step.before, step.after, step.passed_over) == ("3.3.0", "3.6.0", ("3.4.0", "3.5.0"))
    assert {position.name: position.unusable for position in found.positions if position.unusable} == machine.broken
    assert {trial.head: trial.reason for trial in found.trials if trial.verdict == "failed"} == machine.broken
    machine.broken = {"3.8.0": "it does not compile"}
    with pytest.raises(UsageError, match=r"measured with 3\.8\.0, an end of the search: it does not compile$"):
        over_releases()


@pytest.mark.parametrize("search", [over_releases, over_parts])
def test_who_stops_it_goes_on_where_it_was(search: Callable[[], Bisection], machine: Machine) -> None:
    is_over_parts = search is over_parts
    machine.times = having(({"--b", "--d"}, 0.5)) if is_over_parts else since("3.5.0", 1.0, 1.4)
    whole = search()
    asked = list(machine.asked)
    machine.asked.clear()
    machine.stop_after = 3
    with pytest.raises(Interrupted) as caught:
        search()
    command = re.search(r"go on with `harness bisect --resume (\S+)`", str(caught.value))
    assert command is not None
    machine.stop_after = None
    again = gone_on(Path(command[1]))
    assert machine.asked == asked, "nothing is measured twice, and nothing else is measured"
    assert (again.steps, again.causes, again.trials) == (whole.steps, whole.causes, whole.trials)
    assert again.command == ("harness", "bisect")


def test_commits_are_searched_by_what_they_are_built_as(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    shas = [f"{number}{'a' * 39}" for number in range(8)]
    names = [sha[:10] for sha in shas]
    resolved: list[str] = []

    def resolve(word: str, *_: object) -> str:
        resolved.append(word)
        if word.endswith(shas[4]):
            raise NoToolchain(f"{word}: is for another Python")
        return f"3.0.0+local.{word[-40:]}"

    monkeypatch.setattr(bisect_commits, "commits_with_wheels", lambda *_: dict.fromkeys(shas, True))
    monkeypatch.setattr(bisecting, "release_named", resolve)
    machine.times, machine.stop_after = (lambda place: 1.4 if place.name >= "5" else 1.0), 2
    with pytest.raises(Interrupted):
        over_releases(over="commits", release=(), good=shas[0], bad="main")
    machine.stop_after = None
    sentence = f"IREE 3.0.0+local.{shas[5]} tiles otherwise than IREE 3.0.0+local.{shas[3]}."
    explanation = Mock(sentence=sentence, id="an-explanation")
    explanation.latency.verdict = "regressed"
    monkeypatch.setattr(bisect_session, "explain_and_keep", lambda *_, **__: (explanation, Path("kept")))
    found = gone_on()
    (step,) = found.steps
    assert (step.before, step.after, step.passed_over) == (names[3], names[5], (names[4],))
    assert step.explanation == f"{names[5]} tiles otherwise than {names[3]}."
    assert (found.over, found.ends, len(found.commits)) == ("commits", (names[0], names[7]), 8)
    lost = {position.name: position.unusable for position in found.positions if position.unusable}
    assert lost == {names[4]: f"iree-org/iree#commit:{shas[4]}: is for another Python"}
    once = [word for word in resolved if not word.endswith(shas[4])]
    assert len(once) == len(set(once)), "what is built again while it lasts is another toolchain"


def test_nobody_is_told_where_builds_lie(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    builds = Path("/home/me/builds")
    points = tuple(CommitPoint(name=name, toolchain=str(builds / name)) for name in "abc")
    asked = partial(BisectOptions, Path("suite.toml"), "net/stock@cpu", over="commits", builds=builds)

    def resolve(word: str, *_: object) -> str:
        if word.endswith("b"):
            raise NoToolchain(f"{word}: is for another Python")
        return f"3.0.0+local.{Path(word).name}"

    monkeypatch.setattr(bisecting, "with_commits", lambda *_: (asked(good="a", bad="c"), points, ("a", "b", "c")))
    monkeypatch.setattr(bisecting, "release_named", resolve)
    machine.times = lambda place: 1.4 if place.name == "c" else 1.0
    found = session_of(asked(good="a", bad="c"), ("harness", "bisect", f"--builds={builds}"), Progress()).run()
    assert (found.command[-1], found.settings["builds"]) == ("--builds=builds", "builds")
    assert [point.toolchain for point in found.commits] == ["builds/a", "builds/b", "builds/c"]
    assert [position.unusable for position in found.positions if position.unusable] == [
        "builds/b: is for another Python"
    ]
    assert not [file for file in Path("results").glob("*/bisection.json") if "/home/me" in file.read_text()]


def test_what_stayed_open_or_had_no_time_is_measured_later(machine: Machine) -> None:
    machine.times, machine.noisy = since("3.5.0", 1.0, 1.4), {"3.4.0", "3.5.0"}
    spent = over_releases(budget=1e-9)
    assert (spent.finished, len(machine.asked)) == (False, 1), "a measurement that began is ended"
    assert spent.notes[0].startswith("The budget of all measurements was spent; go on with `harness bisect --resume ")
    first = gone_on()
    assert (first.finished, [(step.before, step.after) for step in first.steps]) == (True, [("3.3.0", "3.6.0")])
    asked, judged = len(machine.asked), len(machine.judged)
    machine.noisy.clear()
    again = session_of(BisectOptions(resume=Path("latest"), row_budget=600.0), (), Progress())
    assert again.options.row_budget == 600
    second = again.run()
    assert [(step.before, step.after) for step in second.steps] == [("3.4.0", "3.5.0")]
    twice = {*machine.asked[:asked]} & {*machine.asked[asked:]}
    assert {head for _, head in twice} == {"3.4.0", "3.5.0"}, "what was decided is not measured again"
    assert second.error == pytest.approx(first.error * len(machine.judged) / judged), "all that was judged counts"
    with pytest.raises(RunError, match="this bisect has its answer"):
        gone_on()


def test_a_release_that_cannot_be_had_says_how_to_go_on(machine: Machine) -> None:
    machine.times, machine.lost = since("3.5.0", 1.0, 1.4), {"3.4.0"}
    full = r"IREE 3\.[48]\.0 cannot be installed: the disk is full; make room"
    how = r"; then go on with `harness bisect --resume \S+, or begin again with --skip 3\.4\.0"
    with pytest.raises(ToolchainError, match=f"^{full}{how}$"):
        over_releases()
    shutil.rmtree("results")
    machine.lost.add("3.8.0")
    with pytest.raises(ToolchainError, match=f"^{full}$"):
        over_releases()
    assert not Path("results").exists(), "without an end there is nothing to go on with"


def test_the_index_says_what_lies_between(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    between = Mock(return_value=("3.0.0", "3.1.0rc1", "3.1.0", "3.2.0"))
    monkeypatch.setattr(bisecting, "releases_between", between)
    session = begun(good="3.2", bad="3.0", release=(), pre=True, skip=("3.1.0",))
    assert session.directory.begun.history == ("3.0.0", "3.1.0rc1", "3.2.0")
    between.assert_called_once_with("3.0.0", "3.2.0", pre=True)


ENDS: dict[str, Any] = {"good": "3.1.0", "bad": "3.3.0"}
PARTS: dict[str, Any] = {"case": "net/fast@cpu", "over": "flags", "release": ()}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"good": "3.0.0"}, "give two releases, as in --good iree==3.6.0 --bad iree==3.8.0; or --over commits or"),
        ({"good": "3.1.0", "bad": "soon"}, "--bad soon: is no version; write the release, as in --bad 3.12.0"),
        ({**ENDS, "bad": "iree==3.1"}, "the ends of the search are 3.1.0, 3.1.0; --bad has to differ, and"),
        ({**ENDS, "fixed": "3.2.0"}, "the ends of the search are 3.1.0, 3.3.0, 3.2.0; --bad has to differ, and lie"),
        ({**ENDS, "skip": ("3.3.0",)}, "--skip 3.3.0 is an end of the search; give another end"),
        ({**ENDS, "case": "net/stok@cpu"}, "suite.toml: there is no case 'net/stok@cpu'; did you mean \"net/stock@cpu"),
        ({**ENDS, "metric": "latncy"}, '--metric latncy: there is no such metric; did you mean "latency"?'),
        ({**ENDS, "metric": "flow/x.y"}, "--metric flow/x.y: suite.toml does not count it; add 'x.y' to flow in [ir]"),
        ({"good": "3.1.0", **PARTS}, "--good is for --over releases or commits; leave it out"),
        ({**ENDS, "builds": Path("builds")}, "--builds is for --over commits; leave it out"),
        ({**ENDS, "base": "stock"}, "--base is for --over flags; leave it out"),
        ({**PARTS, "base": "fast"}, "suite.toml: variant 'fast' has no part that 'fast' does not have; give another"),
        ({**PARTS, "base": "fst"}, "suite.toml: there is no variant 'fst'; did you mean \"fast\"?"),
    ],
)
def test_what_does_not_go_together(options: dict[str, Any], words: str, machine: Machine) -> None:
    with pytest.raises(UsageError) as caught:
        begun(**options)
    assert str(caught.value).startswith(words)
    assert not Path("results").exists()


# --- parts ---


def test_parts_that_act_together_or_one_after_the_other(machine: Machine) -> None:
    machine.times = having(({"--b", "--d"}, 0.5))
    found = over_parts()
    assert found.parts == ("--a", "--b", "--c", "--d", "plugin tuned", "tuned: width = 16")
    (cause,) = found.causes
    assert (cause.parts, cause.beside, cause.untold) == ((2, 4), (), False)
    assert cause.size.ratio == pytest.approx(0.5)
    assert [(trial.head, trial.verdict) for trial in cause.alone] == [("2", "unchanged"), ("4", "unchanged")]
    assert found.ends == ("stock", "fast")
    machine.times = having(({"--a"}, 0.5), ({"--c"}, 0.9))
    first, second = over_parts().causes
    assert (first.parts, second.parts, second.beside) == ((1,), (3,), (1,))
    assert second.size.ratio == pytest.approx(0.9)
    machine.times = having(({"tuned(width = 16)"}, 0.7))
    assert over_parts().causes[0].parts == (5, 6), "a plugin and its option"
    machine.times, machine.broken = having(({"--b"}, 0.5)), {"2": "it is refused"}
    (cause,) = over_parts().causes
    assert 2 in cause.parts and cause.untold, "what a suite refuses alone cannot be told"


@pytest.mark.parametrize("does_it", [True, False])
def test_a_level_is_taken_apart_into_what_it_sets(does_it: bool, machine: Machine) -> None:
    level, inner = "--iree-opt-level=O3", "--b-opt-level=O3"
    suite = Path("suite.toml")
    suite.write_text(suite.read_text().replace('flags = ["--c", "--d"]', f'flags = ["{level}"]'))
    fast = {level, inner} if does_it else {level}
    machine.times = lambda place: 0.5 if fast & set(place.case.compile_flags) else 1.0
    (cause,) = over_parts().causes
    assert (cause.parts, cause.inside) == ((3,), (inner,) if does_it else ())


# --- `harness verdict`: good, bad, or not known ---


CASE = make_case()
RECORD = ToolchainRecord(version="0.0.0", revision="", compiler_sha256="fa" * 32)
ABORTS = Failure(stage="compile", message="it aborts")
Say = Callable[..., Judged]


def write_run(folder: Path, found: int | Failure) -> Path:
    """A run of one case with so many dispatches, or that failed; its folder."""
    header = make_header("20261121-035012-small", cases=(CASE,), toolchains=(RECORD,))
    if isinstance(found, Failure):
        build = make_build(CASE, module_sha256=None, failure=found)
    else:
        build = make_build(CASE, code=f"{found}", dispatches=found)
    with RunDirectory.create(folder, header) as directory:
        directory.append(build)
    return directory.path


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """What is said where the case has so many dispatches now, and 10 in the run that was good."""
    toolchain = make_fake_toolchain(tmp_path / "tools")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bisect_session, "toolchain_named", lambda *_: toolchain)
    monkeypatch.setattr(compare_sides, "get_toolchains", lambda *_, **__: (toolchain,))
    good = write_run(tmp_path / "results", 10)

    def said(now: int | Failure | Exception, **options: Any) -> Judged:
        def run_suite(*_: object, purpose: str, with_reference: bool, **__: object) -> Path:
            assert purpose == "compare"  # which the history leaves out, and `latest` too
            assert not with_reference, "no count needs a clock"
            if isinstance(now, Exception):
                raise now
            return write_run(tmp_path / "results", now)

        monkeypatch.setattr(bisect_session, "run_suite", run_suite)
        given = VerdictOptions(Path("suite.toml"), case=CASE.name, against=good, metric="dispatches")
        return judge_now(replace(given, results=tmp_path / "results", **options), Progress())

    return said


@pytest.mark.parametrize(
    ("now", "options", "word", "reason"),
    [
        (9, {}, "good", "10 and 9"),
        (11, {}, "bad", "10 and 11"),
        (11, {"floor": 0.2}, "good", "10 and 11"),
        (10, {"case": None}, "good", "same module bytes"),  # which may be left out where the run has one
        (ABORTS, {}, "cannot tell", "it fails at compile: it aborts"),
        (SuiteError("suite.toml: no variants"), {}, "cannot tell", "suite.toml: no variants"),
        (NothingSelected("--filter matches no case"), {}, "cannot tell", "--filter matches no case"),
    ],
)
def test_more_than_the_floor_allows_is_worse_and_what_fails_now_cannot_be_told(
    say: Say, now: int | Failure | Exception, options: dict[str, Any], word: str, reason: str
) -> None:
    judged = say(now, **options)
    assert (judged.word, judged.case, judged.reason[: len(reason)]) == (word, CASE.name, reason)
    assert (judged.trial is None) == (word == "cannot tell")


def test_a_wrong_question_is_refused(say: Say, tmp_path: Path) -> None:
    for options, words in (
        ({"case": "net/fast@cpu"}, r"--against \S+: there is no case 'net/fast@cpu'"),
        ({"metric": "dispatch"}, "--metric dispatch: there is no such metric"),
        ({"metric": "flow/tensor.empty"}, r"--metric flow/tensor.empty: --against \S+ did not count it"),
    ):
        with pytest.raises(UsageError, match=words):
            say(10, **options)
    broken = write_run(tmp_path / "other", ABORTS)
    with pytest.raises(RunError, match="cannot be measured there: it fails at compile: it aborts; give another run"):
        say(10, against=broken)
