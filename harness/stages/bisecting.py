"""The line of `harness bisect` over releases: a history -> positions, compiled -> measurements -> steps.

A search asks for one release beside another. It is installed, compiled and checked once, as a side of a comparison is,
and measured by the judge of comparisons; each measurement is on disk before the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timezone
from typing import Any

from packaging.version import Version
from pydantic import ValidationError

from harness.bisect.search import Measured, Step, Unusable, find_steps
from harness.bisect.trials import JUDGED_OF_SEARCH, Place
from harness.cache import environments_root
from harness.compare.pairs import TOOLCHAIN_PREFIX
from harness.compare.sides import noise_of
from harness.errors import Interrupted, RunError, ToolchainError, UsageError
from harness.machine.identity import machine_id
from harness.metrics import Metric
from harness.progress import Progress
from harness.records.bisection import Bisection, FoundStep, OpenStretch, Trial
from harness.report.bisect_page import bisect_json, bisect_page
from harness.report.markdown import to_markdown
from harness.stages.bisect_underway import BisectUnderway, require_counted, require_metric
from harness.stages.bisecting_parts import bisect_parts, question_of, toolchain_of
from harness.stages.options import BisectOptions
from harness.store.files import adapter
from harness.store.folders import find_folder
from harness.store.search_directory import BegunBisect, BisectDirectory, KeptSentence
from harness.suite.completion import case_meant
from harness.suite.load import load_suite
from harness.text import plural
from harness.toolchain import Toolchain, get_toolchains, release_named, releases_between
from harness.toolchain.host_cpu import environment_here

# Options of a stretch of a bisect, which one that goes on may have anew; all others are those that it was begun with.
_OF_STRETCH = ("budget", "wait", "quiet", "verbose")
_IF_GIVEN = ("row_budget", "row_cap", "all_steps")
_ANEW = ("resume", "results", *_OF_STRETCH, *_IF_GIVEN)


# --- beginning, and going on ---


def underway_of(options: BisectOptions, command: Sequence[str], progress: Progress) -> BisectUnderway:
    """The bisect that the options ask for, new or to go on with; nothing is compiled yet.

    A folder for it is made once it is known that there is something to search, with releases that can be had.
    """
    environment = environment_here()
    machine = machine_id(environment)
    if options.resume is not None:
        directory = BisectDirectory.resume(find_folder(options.resume, options.results, kind="bisect"))
        if directory.begun.machine != machine:
            raise RunError(f"{directory.path}: was begun on another machine; go on there, or begin it again")
        options = _going_on(directory, options)
        metric = _require_sense(options)
        return BisectUnderway(options, directory, metric, floor_of(options, metric), progress)
    if options.suite is None:
        raise UsageError("say what is bisected, as in `harness bisect suites/esrgan.toml --case rdb/stock@cpu`")
    options = replace(options, case=case_meant(options.suite, options.case))
    metric = _require_sense(options)
    history: tuple[str, ...] = ()
    if options.over == "releases":
        options = _with_ends(options, progress.note)
        history = _history(options, progress.note)
        get_toolchains(_ends(options), root=environments_root(), on_install=progress.note)
    else:
        question_of(options)
        # Another release may be installed when it goes on.
        options = replace(options, toolchain=toolchain_of(options, progress.note).version)
    begun = BegunBisect(
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        machine=machine,
        noise=noise_of(environment),
        options=adapter(BisectOptions).dump_python(options, mode="json"),
        command=tuple(command),
        history=history,
    )
    directory = BisectDirectory.create(options.results, load_suite(options.chosen[0]).suite.name, begun)
    return BisectUnderway(options, directory, metric, floor_of(options, metric), progress)


def _going_on(directory: BisectDirectory, options: BisectOptions) -> BisectOptions:
    default = BisectOptions()
    given = [
        option.name for option in fields(options) if getattr(options, option.name) != getattr(default, option.name)
    ]
    if refused := [name for name in given if name not in _ANEW]:
        raise UsageError(f"--resume goes on with the bisect's own settings; leave out {', '.join(refused)}")
    try:
        begun: BisectOptions = adapter(BisectOptions).validate_python(directory.begun.options)
    except ValidationError:
        raise RunError(f"{directory.path}: is damaged; begin the bisect again") from None
    anew = {name: getattr(options, name) for name in (*_OF_STRETCH, *(name for name in _IF_GIVEN if name in given))}
    return replace(begun, results=directory.path.parent, **anew)


def _require_sense(options: BisectOptions) -> Metric:
    """The metric, once it is known that the options go together."""
    assert options.suite is not None  # noqa: S101 (whoever begins a bisect makes sure)
    metric = require_metric(options.metric)
    require_counted(metric, options.suite)
    of_releases = {"--good": options.good, "--bad": options.bad, "--fixed": options.fixed}
    if options.over == "flags":
        if given := [name for name, value in of_releases.items() if value is not None]:
            raise UsageError(f"{given[0]} is a release, and --over flags searches one variant's parts; leave it out")
        return metric
    if options.good is None or options.bad is None:
        raise UsageError("give two releases, as in --good iree==3.6.0 --bad iree==3.8.0; or --over flags")
    if options.base is not None or options.toolchain is not None:
        raise UsageError("--base and --toolchain are for --over flags; leave them out")
    return metric


def floor_of(options: BisectOptions, metric: Metric) -> float:
    """The user's, else the suite's, else the metric's own."""
    if options.floor is not None:
        return options.floor
    return load_suite(options.chosen[0]).suite.floors.get(metric.name, metric.floor)


# --- the history ---


def _with_ends(options: BisectOptions, note: Callable[[str], None]) -> BisectOptions:
    """The options with releases that mean the same tomorrow."""
    assert options.good is not None and options.bad is not None  # noqa: S101 (_require_sense made sure)
    return replace(
        options,
        good=release_named(options.good, note, "--good"),
        bad=release_named(options.bad, note, "--bad"),
        fixed=None if options.fixed is None else release_named(options.fixed, note, "--fixed"),
    )


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


class _History:
    """The positions of a history of releases: each is installed, compiled and checked when it is first asked for."""

    def __init__(self, underway: BisectUnderway) -> None:
        self.releases = underway.directory.begun.history
        self._underway = underway
        self._toolchains: dict[str, Toolchain] = {}

    def measure(self, base: int, head: int, floor: float, whole: float | None) -> Measured | Unusable:
        """As the search wants it."""
        return self._underway.measure(self.releases[base], self.releases[head], floor, self.place, whole)

    def place(self, release: str) -> Place | Unusable:
        """A release with the case compiled, or why there is none."""
        return self._underway.place(release, lambda: self._compiled(release))

    def _compiled(self, release: str) -> Place | Unusable:
        suite, case = self._underway.options.chosen
        ends = [self._toolchain(end) for end in _ends(self._underway.options)]
        toolchain = self._toolchain(release)
        others = [other for other in ends if other.version != toolchain.version]
        return self._underway.compiled(release, suite, case, toolchain, others, f"{TOOLCHAIN_PREFIX}{release}")

    def _toolchain(self, release: str) -> Toolchain:
        """Installed where it is not here."""
        if release not in self._toolchains:
            try:
                (found,) = get_toolchains([release], root=environments_root(), on_install=self._underway.progress.note)
            except ToolchainError as error:
                is_end = release in _ends(self._underway.options)
                without = "" if is_end else f", or begin again with --skip {release}"
                remedy = f"then {self._underway.how_to_go_on}{without}"
                raise ToolchainError(f"{error}; {remedy}") from None
            self._toolchains[release] = found
        return self._toolchains[release]


# --- the search ---


def bisected(underway: BisectUnderway) -> Bisection:
    """Search what the options ask for, and keep the answer."""
    search = bisect_parts if underway.options.over == "flags" else bisect_releases
    with underway:
        try:
            found = search(underway)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted; {underway.how_to_go_on}") from None
        underway.directory.finish(bisect_json(found), to_markdown(bisect_page(found)))
    return found


def bisect_releases(underway: BisectUnderway) -> Bisection:
    """Search the releases between the good and the bad one, and between the bad and the fixed one."""
    history, ends = _History(underway), _ends(underway.options)
    releases, bad = history.releases, ends[1]
    # Towards the bad one from either side: the good and the repaired end show nothing beside each other.
    stretches = [(releases.index(end), releases.index(bad)) for end in ends if end != bad]
    underway.planned = JUDGED_OF_SEARCH * len(stretches)
    underway.progress.note(
        f"{plural(len(releases), 'release')} from {releases[0]} to {releases[-1]}: the ends and the step are judged by "
        f"their {underway.metric.name}, and what lies between the ends is placed by two generations where these tell"
    )
    for release in ends:
        end = history.place(release)
        if isinstance(end, Unusable):
            case = underway.options.chosen[1]
            raise UsageError(f"{case} cannot be measured with IREE {release}, an end of the search: {end.reason}")
    steps: list[FoundStep] = []
    unknown: list[OpenStretch] = []
    for first, last in stretches:
        findings = find_steps(first, last, history.measure, underway.floor, every=underway.options.all_steps)
        for probe in findings.probes:
            underway.sort(releases[probe.base], releases[probe.head], probe.floor, probe.nearer)
        steps += [_found(step, history, underway) for step in findings.steps]
        unknown += [
            OpenStretch(first=releases[one], last=releases[other], reason=reason, aside=told is findings.aside)
            for told in (findings.open, findings.aside)
            for (one, other), reason in told.items()
        ]
    steps.sort(key=lambda step: releases.index(step.before))
    return underway.concluded(ends, releases, steps=tuple(steps), open=tuple(unknown))


def _found(step: Step, history: _History, underway: BisectUnderway) -> FoundStep:
    """A step of a search, in the order of the history."""
    releases = history.releases
    size = underway.trial(releases[step.before], releases[step.after], underway.floor)
    first, second = sorted((step.before, step.after))
    before, after = history.place(releases[first]), history.place(releases[second])
    size = size if step.before == first else turned_round(size)
    why = KeptSentence()
    if isinstance(before, Place) and isinstance(after, Place):
        why = underway.explained(before, after, size.verdict)
    return FoundStep(
        before=releases[first],
        after=releases[second],
        size=size,
        passed_over=tuple(releases[number] for number in sorted(step.passed_over)),
        explanation=why.text,
        explanation_id=why.explanation,
    )


_TURNED: Mapping[str, Any] = {"regressed": "improved", "improved": "regressed"}


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
