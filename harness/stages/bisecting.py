"""The line of `harness bisect` over releases: a history -> positions, compiled -> measurements -> steps.

A search asks for one release beside another. It is installed, compiled and checked once, as a side of a comparison is,
and measured by the judge of comparisons; each measurement is on disk before the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from packaging.version import Version

from harness.bisect.search import Measured, Step, Unusable, find_steps
from harness.bisect.trials import JUDGED_OF_SEARCH, Place
from harness.compare.pairs import TOOLCHAIN_PREFIX
from harness.errors import ToolchainError, UsageError
from harness.progress import Progress
from harness.records.bisection import Bisection, FoundStep, OpenStretch, Trial
from harness.stages.bisect_session import BisectSession, require_metric
from harness.stages.bisecting_parts import PartSearch, question_of
from harness.stages.options import BisectOptions
from harness.stages.session import begun_now, options_going_on, toolchain_named
from harness.store.folders import find_folder
from harness.store.kinds import BISECT
from harness.store.search_directory import BegunBisect, BisectDirectory
from harness.suite.completion import case_meant
from harness.suite.load import load_suite
from harness.text import plural
from harness.toolchain import Toolchain, release_named, releases_between

# --- beginning, and going on ---


def session_of(options: BisectOptions, command: Sequence[str], progress: Progress) -> BisectSession:
    """The bisect that the options ask for, new or to go on with; nothing is compiled yet.

    A folder for it is made once it is known that there is something to search, with releases that can be had.
    """
    if options.resume is not None:
        directory = BisectDirectory.resume(find_folder(options.resume, options.results, kind="bisect"))
        if_given = ("row_budget", "row_cap", "all_steps")
        options = options_going_on(
            options, directory.begun, directory.path, BISECT, stretch=("budget",), if_given=if_given
        )
    else:
        options, history = _begun(options, progress.note)
        begun = BegunBisect(**begun_now(options, command), history=history)
        directory = BisectDirectory.create(options.results, load_suite(options.chosen[0]).suite.name, begun)
    kind = PartSearch if options.over == "flags" else ReleaseSearch
    return kind(options, directory, progress)


def _begun(options: BisectOptions, note: Callable[[str], None]) -> tuple[BisectOptions, tuple[str, ...]]:
    """The options in words that mean the same tomorrow, and the releases that are searched; () of parts."""
    if options.suite is None:
        raise UsageError("say what is bisected, as in `harness bisect suites/esrgan.toml --case rdb/stock@cpu`")
    options = replace(options, case=case_meant(options.suite, options.case))
    require_metric(options.metric, options.suite)
    of_releases = {"--good": options.good, "--bad": options.bad, "--fixed": options.fixed}
    if options.over == "flags":
        if given := [name for name, value in of_releases.items() if value is not None]:
            raise UsageError(f"{given[0]} is a release, and --over flags searches one variant's parts; leave it out")
        question_of(*options.chosen, options.base)
        # Another release may be installed when it goes on.
        return replace(options, toolchain=toolchain_named(options.toolchain, note).version), ()
    if options.good is None or options.bad is None:
        raise UsageError("give two releases, as in --good iree==3.6.0 --bad iree==3.8.0; or --over flags")
    if options.base is not None or options.toolchain is not None:
        raise UsageError("--base and --toolchain are for --over flags; leave them out")
    ends: dict[str, Any] = {
        name.removeprefix("--"): release_named(value, note, name)
        for name, value in of_releases.items()
        if value is not None
    }
    options = replace(options, **ends)
    history = _history(options, note)
    for end in _ends(options):
        toolchain_named(end, note)
    return options, history


def _ends(options: BisectOptions) -> list[str]:
    """Good, bad, and fixed where it is given."""
    return [release for release in (options.good, options.bad, options.fixed) if release is not None]


def _history(options: BisectOptions, note: Callable[[str], None]) -> tuple[str, ...]:
    """The releases that are searched, the oldest first, the ends among them."""
    releases = _ends(options)
    ends = [Version(release) for release in releases]
    if len(set(ends)) < len(ends):
        raise UsageError(f"two ends of the search are one release ({', '.join(releases)}); give different ones")
    if len(ends) == 3 and not (ends[0] < ends[1] < ends[2] or ends[0] > ends[1] > ends[2]):
        good, bad, fixed = releases
        raise UsageError(f"--fixed {fixed} does not lie beyond --bad {bad}, seen from --good {good}; correct the order")
    low, high = min(ends), max(ends)
    if options.release:
        between: Sequence[str] = [release_named(text, note, "--release") for text in options.release]
    else:
        between = releases_between(str(low), str(high), pre=options.pre)
    skipped = {Version(release_named(text, note, "--skip")) for text in options.skip}
    if lost := skipped & set(ends):
        raise UsageError(f"--skip {min(lost)} is an end of the search; give another end")
    wanted = {Version(release): release for release in (*between, *releases)}
    return tuple(wanted[version] for version in sorted(wanted) if low <= version <= high and version not in skipped)


class ReleaseSearch(BisectSession):
    """A bisect whose positions are releases: each is installed, compiled and checked when it is first asked for."""

    def __init__(self, options: BisectOptions, directory: BisectDirectory, progress: Progress) -> None:
        super().__init__(options, directory, progress)
        self.releases, self._ends = directory.begun.history, _ends(options)
        self._toolchains: dict[str, Toolchain] = {}

    def search(self) -> Bisection:
        """Search the releases between the good and the bad one, and between the bad and the fixed one."""
        releases, ends, bad = self.releases, self._ends, self._ends[1]
        # Towards the bad one from either side: the good and the repaired end show nothing beside each other.
        stretches = [(releases.index(end), releases.index(bad)) for end in ends if end != bad]
        self.planned = JUDGED_OF_SEARCH * len(stretches)
        self.progress.note(
            f"{plural(len(releases), 'release')} from {releases[0]} to {releases[-1]}: the ends and the step are "
            f"judged by their {self.metric.name}, and what lies between the ends is placed by two generations where "
            "these tell"
        )
        for release in ends:
            end = self.place(release)
            if isinstance(end, Unusable):
                case = self.options.chosen[1]
                raise UsageError(f"{case} cannot be measured with IREE {release}, an end of the search: {end.reason}")
        steps: list[FoundStep] = []
        unknown: list[OpenStretch] = []
        for first, last in stretches:
            findings = find_steps(first, last, self._measured, self.floor, every=self.options.all_steps)
            for probe in findings.probes:
                self.sort(releases[probe.base], releases[probe.head], probe.floor, probe.nearer)
            steps += [self._found(step) for step in findings.steps]
            unknown += [
                OpenStretch(first=releases[one], last=releases[other], reason=reason, aside=told is findings.aside)
                for told in (findings.open, findings.aside)
                for (one, other), reason in told.items()
            ]
        steps.sort(key=lambda step: releases.index(step.before))
        return self.concluded(ends, releases, steps=tuple(steps), open=tuple(unknown))

    def _measured(self, base: int, head: int, floor: float, whole: float | None) -> Measured | Unusable:
        return self.measure(self.releases[base], self.releases[head], floor, whole)

    def make(self, name: str) -> Place | Unusable:
        """A release with the case compiled."""
        suite, case = self.options.chosen
        toolchain = self._toolchain(name)
        others = [other for end in self._ends if (other := self._toolchain(end)).version != toolchain.version]
        return self.compiled(name, suite, case, toolchain, f"{TOOLCHAIN_PREFIX}{name}", others)

    def _toolchain(self, release: str) -> Toolchain:
        """Installed where it is not here."""
        if release not in self._toolchains:
            try:
                self._toolchains[release] = toolchain_named(release, self.progress.note)
            except ToolchainError as error:
                without = "" if release in self._ends else f", or begin again with --skip {release}"
                raise ToolchainError(f"{error}; then {self.how_to_go_on}{without}") from None
        return self._toolchains[release]

    def _found(self, step: Step) -> FoundStep:
        """A step of a search, in the order of the history."""
        size = self.trial(self.releases[step.before], self.releases[step.after])
        if step.before > step.after:
            size = turned_round(size)
        why = self.explained(size.base, size.head, size.verdict)
        return FoundStep(
            before=size.base,
            after=size.head,
            size=size,
            passed_over=tuple(self.releases[number] for number in sorted(step.passed_over)),
            explanation=why.text,
            explanation_id=why.explanation,
        )


_TURNED: dict[Any, Any] = {"regressed": "improved", "improved": "regressed"}


def turned_round(trial: Trial) -> Trial:
    """The same measurement seen from the other side."""
    return replace(
        trial,
        base=trial.head,
        head=trial.base,
        verdict=_TURNED.get(trial.verdict, trial.verdict),
        ratio=_inverse(trial.ratio),
        ci_low=_inverse(trial.ci_high),
        ci_high=_inverse(trial.ci_low),
        base_value=trial.head_value,
        head_value=trial.base_value,
    )


def _inverse(ratio: float | None) -> float | None:
    return 1 / ratio if ratio else None
