"""The two lines of `harness bisect`: what is asked -> positions, compiled -> measurements -> steps, or causes.

Over releases, a search asks for one release beside another. It is installed, compiled and checked once, as a side of a
comparison is. Over commits, their builds take the place of releases. Over flags, it asks for sets of the parts in which
two variants differ. Each set is a variant of a suite of its own, a file beside the measurements, which can be run like
any other's. Each measurement is on disk before the next one begins.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from packaging.version import Version

from harness.bisect.search import Cause, Effect, Measured, Unusable, edge_of, find_steps, minimal_causes, nearer_end
from harness.bisect.trials import JUDGED_OF_SEARCH, Place, as_measured
from harness.bisect.variants import CompileConfig, Part, parts_between, parts_of_level, with_parts
from harness.compare.pairs import TOOLCHAIN_PREFIX
from harness.errors import NoToolchain, ToolchainError, UsageError
from harness.options import option_of
from harness.progress import Progress
from harness.records.bisection import Bisection, CommitPoint, FoundCause, FoundStep, Nearer, OpenStretch, Trial
from harness.stages.bisect_commits import with_commits
from harness.stages.bisect_session import BisectSession, Wanted, require_metric
from harness.stages.derived_suites import config_of, derived_suite
from harness.stages.options import BisectOptions
from harness.stages.prepare import find_named
from harness.stages.session import begun_now, options_going_on
from harness.store.files import adapter
from harness.store.folders import BISECT, find_folder
from harness.store.work_directory import SUITES_FOLDER, BisectDirectory, KeptSentence
from harness.suite.cases import case_meant
from harness.suite.load import Suite, load_suite
from harness.text import plural
from harness.toolchain import Toolchain, compiler_flags, release_named, releases_between, toolchain_named

# --- beginning, and going on ---


def session_of(options: BisectOptions, command: Sequence[str], progress: Progress) -> BisectSession:
    """The bisect that the options ask for, new or to go on with; nothing is compiled yet."""
    if options.resume is not None:
        directory = BisectDirectory.resume(find_folder(options.resume, options.results, kind="bisect"))
        if_given = ("row_budget", "row_cap")
        options = options_going_on(
            options, directory.begun, directory.path, BISECT, stretch=("budget",), if_given=if_given
        )
        suite = load_suite(options.chosen[0])
    else:
        if options.suite is None:
            raise UsageError("say what is bisected, as in `harness bisect suites/esrgan.toml --case rdb/stock@cpu`")
        suite = load_suite(options.suite)
        options, history, commits = _begun(options, suite, progress.note)
        begun = replace(begun_now(options, command), history=history, commits=commits)
        directory = BisectDirectory.create(options.results, suite.name, datetime.fromisoformat(begun.created), begun)
    is_over_commits = options.over == "commits"
    kind = PartSearch if options.over == "flags" else CommitSearch if is_over_commits else ReleaseSearch
    return kind(options, suite, directory, progress)


# Options that not every search has, and those that have them.
_OF_OVER = {
    **dict.fromkeys(("good", "bad", "fixed", "skip"), ("releases", "commits")),
    **dict.fromkeys(("release", "pre"), ("releases",)),
    **dict.fromkeys(("builds", "repo"), ("commits",)),
    **dict.fromkeys(("base", "toolchain"), ("flags",)),
}


def _begun(
    options: BisectOptions, suite: Suite, note: Callable[[str], None]
) -> tuple[BisectOptions, tuple[str, ...], tuple[CommitPoint, ...]]:
    """The options in words that mean the same tomorrow, and the releases or commits that are searched; () of parts."""
    options = replace(options, case=case_meant(suite.path, options.case))
    require_metric(options.metric, suite)
    for name, overs in _OF_OVER.items():
        if getattr(options, name) and options.over not in overs:
            raise UsageError(f"{option_of(BisectOptions, name)} is for --over {' or '.join(overs)}; leave it out")
    if options.over == "flags":
        question_of(suite, options.chosen[1], options.base)
        # Another release may be installed when it goes on.
        return replace(options, toolchain=toolchain_named(options.toolchain, note).version), (), ()
    if options.good is None or options.bad is None:
        raise UsageError("give two releases, as in --good iree==3.6.0 --bad iree==3.8.0; or --over commits or flags")
    if options.over == "commits":
        options, commits, history = with_commits(options, note)
        return options, history, commits
    named: dict[str, Any] = {name: release_named(getattr(options, name), note, f"--{name}") for name in options.ends}
    options = replace(options, **named)
    history = _history(options, [*named.values()], note)
    for end in named.values():
        toolchain_named(end, note)
    return options, history, ()


def _history(options: BisectOptions, ends: Sequence[str], note: Callable[[str], None]) -> tuple[str, ...]:
    """The releases that are searched, the oldest first, the ends among them."""
    given = [*map(Version, ends)]
    low, high = min(given), max(given)
    if len(set(given)) < len(given) or (len(given) == 3 and given[1] in (low, high)):
        raise UsageError(f"the ends of the search are {', '.join(ends)}; --bad has to differ, and lie before --fixed")
    if options.release:
        between: Sequence[str] = [release_named(text, note, "--release") for text in options.release]
    else:
        between = releases_between(str(low), str(high), pre=options.pre)
    skipped = {Version(release_named(text, note, "--skip")) for text in options.skip}
    if lost := skipped & set(given):
        raise UsageError(f"--skip {min(lost)} is an end of the search; give another end")
    wanted = {Version(release): release for release in (*between, *ends)}
    return tuple(wanted[version] for version in sorted(wanted) if low <= version <= high and version not in skipped)


# --- releases ---


class ReleaseSearch(BisectSession):
    """A bisect whose positions are releases: each is installed, compiled and checked when it is first asked for."""

    def __init__(self, options: BisectOptions, suite: Suite, directory: BisectDirectory, progress: Progress) -> None:
        super().__init__(options, suite, directory, progress)
        self.releases = directory.begun.history
        self._ends = [str(getattr(options, name)) for name in options.ends]
        self._toolchains: dict[str, Toolchain] = {}

    def search(self) -> Bisection:
        """Search the releases from the oldest to the newest; of three ends, either side of the bad one by itself."""
        releases, ends = self.releases, self._ends
        bounds = sorted(map(releases.index, ends))
        self.planned = JUDGED_OF_SEARCH * (len(bounds) - 1)
        self.progress.note(
            f"{plural(len(releases), self.options.over[:-1])} from {releases[0]} to {releases[-1]}: the ends and the "
            f"step are judged by their {self.metric.name}, and what lies between is placed by two generations where "
            "these tell"
        )
        for release in ends:
            end = self.place(release)
            if isinstance(end, Unusable):
                case = self.options.chosen[1]
                raise UsageError(f"{case} cannot be measured with {release}, an end of the search: {end.reason}")

        def measured(base: int, head: int, floor: float, whole: float | None) -> Measured | Unusable:
            return self.measure(releases[base], releases[head], floor, whole)

        found = [find_steps(first, last, measured, self.floor) for first, last in pairwise(bounds)]
        for probe in (probe for findings in found for probe in findings.probes):
            self.sort(releases[probe.base], releases[probe.head], probe.floor, probe.nearer)
        steps = []
        for step in (step for findings in found for step in findings.steps):
            size = self.trial(releases[step.before], releases[step.after])
            why = self.explained(size)
            passed_over = tuple(releases[number] for number in step.passed_over)
            told = FoundStep(before=size.base, after=size.head, size=size, passed_over=passed_over)
            steps.append(replace(told, explanation=why.text, explanation_id=why.explanation))
        unknown = [
            OpenStretch(first=releases[first], last=releases[last], reason=reason)
            for findings in found
            for (first, last), reason in findings.open.items()
        ]
        return self.concluded(ends, releases, steps=tuple(steps), open=tuple(unknown))

    def wanted(self, name: str) -> Wanted:
        """The case under a release, or a commit."""
        suite, case = self.options.chosen
        toolchain = self._toolchain(name)
        others = [other for end in self._ends if (other := self._toolchain(end)).version != toolchain.version]
        label = f"{TOOLCHAIN_PREFIX}{name}" if self.options.over == "releases" else name
        return Wanted(name=name, suite=suite, case=case, toolchain=toolchain, label=label, others=others)

    def _toolchain(self, release: str) -> Toolchain:
        """Installed where it is not here."""
        if release not in self._toolchains:
            try:
                self._toolchains[release] = toolchain_named(self._word(release), self.progress.note)
            except ToolchainError as error:
                how = f"{self.how_to_go_on}, or begin again with --skip {release}"
                raise ToolchainError(f"{error}; then {how}") from None
        return self._toolchains[release]

    def _word(self, release: str) -> str:
        """What the toolchain of a position is named by."""
        return release


class CommitSearch(ReleaseSearch):
    """A bisect whose positions are commits of IREE; one whose build is no toolchain is passed over."""

    def search(self) -> Bisection:
        """The same, but what may be published does not say where the builds' folder is."""
        builds, kept = str(self.options.builds), adapter(Bisection)
        text = kept.dump_json(super().search()).decode()
        text = re.sub(rf"{re.escape(builds)}(?![\w.-])", lambda _: Path(builds).name, text)
        told: Bisection = kept.validate_json(text)
        return told

    def place(self, name: str) -> Place | Unusable:
        """A commit, compiled once, or why it cannot be measured."""
        try:
            self._word(name)
        except NoToolchain as error:
            self._places.setdefault(name, Unusable(reason=str(error)))
        return super().place(name)

    def explained(self, size: Trial) -> KeptSentence:
        """The same, with commits called as everywhere else."""
        said = super().explained(size)
        text = said.text
        for name in (size.base, size.head):
            text = text.replace(f"IREE {self._word(name)}", name)
        return replace(said, text=text)

    def _word(self, release: str) -> str:
        """The label of its build: what is built again, while the bisect lasts, is another one."""
        kept = self.directory.remembered(f"toolchain/{release}")
        if kept is None:
            word = next(point.toolchain for point in self.directory.begun.commits if point.name == release)
            label = release_named(word, self.progress.note, f"commit {release}:")
            kept = self.directory.remember(f"toolchain/{release}", label)
        return str(kept.value)


# --- parts of a variant ---

NONE = "none"
_LONGEST_NAME = 60
# Of the whole, of the halves down to a part, and of each part alone: so many are planned for, a part.
_MEASUREMENTS_A_PART, _MEASUREMENTS_MORE = 4, 4
_EFFECTS: dict[Nearer, Effect] = {"head": "all", "base": "none", "between": "none", "unknown": "unknown"}

Numbers = frozenset[int]  # Of parts, from 1


@dataclass(frozen=True, kw_only=True)
class Question:
    """Two variants of a suite's model on a device, and the parts in which they differ."""

    model: str
    device: str
    variants: tuple[str, str]  # That the case's is held against, and the case's
    base: CompileConfig
    head: CompileConfig
    parts: tuple[Part, ...]


def question_of(suite: Suite, case: str, base: str | None) -> Question:
    """What is searched where a case is held against a variant; None: the suite's baseline."""
    path = suite.path
    cells = product(suite.models, suite.variants, suite.devices)
    cell = next((cell for cell in cells if case == f"{cell[0].name}/{cell[1].name}@{cell[2].name}"), None)
    if cell is None:
        raise UsageError(f"{path}: {case} is no case of a variant, so it has no flags to search; name another case")
    names = base or suite.baseline, cell[1].name
    of_base, of_head = (config_of(find_named(path, "variant", name, suite.variants)) for name in names)
    parts = parts_between(of_base, of_head)
    if not parts:
        where = f"{path}: variant {names[1]!r} has no part that {names[0]!r} does not have"
        raise UsageError(f"{where}; give another variant with --base")
    return Question(model=cell[0].name, device=cell[2].name, variants=names, base=of_base, head=of_head, parts=parts)


class PartSearch(BisectSession):
    """A bisect whose positions are sets of parts, added to the base variant."""

    def __init__(self, options: BisectOptions, suite: Suite, directory: BisectDirectory, progress: Progress) -> None:
        super().__init__(options, suite, directory, progress)
        self.question = question_of(suite, options.chosen[1], options.base)
        self._parts = [*self.question.parts]  # Those of levels that are taken apart come behind
        # By the names of positions, in the order in which they were first asked for.
        self._sets: dict[str, Numbers] = {}
        self._toolchain = toolchain_named(options.toolchain, progress.note)

    def search(self) -> Bisection:
        """Find the smallest sets of parts that make all the difference, then those of what is left beside them."""
        left = [*range(1, len(self._parts) + 1)]
        self.planned = _MEASUREMENTS_MORE + _MEASUREMENTS_A_PART * len(left)
        self.progress.note(f"{plural(len(left), 'part')} of {self.options.case}: {'; '.join(self._words)}")
        everything, beside = frozenset(left), Numbers()
        for numbers, who in ((beside, f"the base variant {self.question.variants[0]!r}"), (everything, "the case")):
            end = self.place(self._named(numbers))
            if isinstance(end, Unusable):
                raise UsageError(f"{who} cannot be measured: {end.reason}")
        causes: list[FoundCause] = []
        unknown: list[OpenStretch] = []
        while left:
            first, last = self._named(beside), self._named(everything)
            whole = self.measure(first, last, self.floor)
            if isinstance(whole, Unusable) or whole.standing == "open":
                unknown.append(OpenStretch(first=first, last=last, reason=whole.reason))
            if isinstance(whole, Unusable) or not whole.differs:
                break
            found = minimal_causes(len(left), self._effects(left, beside, whole))
            causes += [self._found(cause, left, beside) for cause in found]
            explained = {left[part] for cause in found for part in cause.parts}
            beside |= explained
            left = [number for number in left if number not in explained]
        ends = self.question.variants
        return self.concluded(ends, tuple(self._sets), causes=tuple(causes), open=tuple(unknown), parts=self._words)

    @property
    def _words(self) -> tuple[str, ...]:
        return tuple(part.words for part in self._parts)

    def _named(self, numbers: Numbers) -> str:
        """The name of a position: the parts that it has."""
        text = "+".join(map(str, sorted(numbers))) or NONE
        if len(text) > _LONGEST_NAME:
            text = f"{len(numbers)}-parts-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        self._sets[text] = numbers
        return text

    def wanted(self, name: str) -> Wanted:
        """The base variant with a set of parts."""
        asked, (path, case), base = self.question, self.options.chosen, self.question.variants[0]
        chosen = [self._parts[number - 1] for number in self._sets[name]]
        configs = {NONE: asked.base, name: with_parts(asked.base, asked.head, chosen) if chosen else asked.base}
        text = derived_suite(
            path,
            self.directory.path / SUITES_FOLDER,
            configs,
            models=[asked.model],
            devices=[asked.device],
            named=["parts"],
            description=f"Parts of {case}, added to {base}",
            keys=("ir", "floors"),
        )
        return Wanted(
            name=name,
            suite=self.directory.write_suite(name, text),
            case=f"{asked.model}/{name}@{asked.device}",
            toolchain=self._toolchain,
            label=base if name == NONE else f"{base} with part {name}",
        )

    def _effects(
        self, left: Sequence[int], beside: Numbers, whole: Measured, among: Numbers | None = None
    ) -> Callable[[Collection[int]], Effect]:
        """What some of these parts do beside others, of the whole difference, where they come among more."""

        def effect_of(chosen: Collection[int]) -> Effect:
            if len(chosen) == len(left) and among is None:
                return "all"
            head = self._named(beside | (among or Numbers()) | {left[part] for part in chosen})
            base = self._named(beside)
            edge = edge_of(whole, self.floor)
            found = self.measure(base, head, edge)
            nearer: Nearer = "unknown" if isinstance(found, Unusable) else nearer_end(found, whole)
            self.sort(base, head, edge, nearer)
            return _EFFECTS[nearer]

        return effect_of

    def _found(self, cause: Cause, left: Sequence[int], beside: Numbers) -> FoundCause:
        """A cause with its size, what explains it, and of several parts what each does alone."""
        numbers = [left[part] for part in cause.parts]
        size, why, inside = self._size(beside, beside | set(numbers)), KeptSentence(), list[str]()
        found = as_measured(size)
        if isinstance(found, Measured) and found.differs:
            why = self.explained(size)
            inside = [words for number in numbers for words in self._inside(number, numbers, beside, found)]
        return FoundCause(
            parts=tuple(numbers),
            beside=tuple(sorted(beside)),
            size=size,
            alone=tuple(self._size(beside, beside | {number}) for number in numbers if len(numbers) > 1),
            untold=cause.untold,
            inside=tuple(inside),
            explanation=why.text,
            explanation_id=why.explanation,
        )

    def _inside(self, number: int, numbers: Sequence[int], beside: Numbers, size: Measured) -> Iterator[str]:
        """Of an optimisation level among the parts of a cause: the levels that it sets which do the same."""
        levels = parts_of_level(self._parts[number - 1], compiler_flags(self._toolchain))
        own = [*range(len(self._parts) + 1, len(self._parts) + len(levels) + 1)]
        self._parts += levels
        effect_of = self._effects(own, beside, size, frozenset(numbers) - {number})
        for found in minimal_causes(len(levels), effect_of):
            yield ", ".join(levels[part].text for part in found.parts)

    def _size(self, base: Numbers, head: Numbers) -> Trial:
        """One set of parts beside another, by the measurement that sorted it where that tells."""
        asked = self._named(base), self._named(head)
        if self.told(*asked, self.floor) is None:
            self.measure(*asked, self.floor)
        return self.trial(*asked)
