"""What a user asks `harness explain` for -> one case on two sides, both compiled."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from harness.compare.commits import Commit
from harness.compare.options import CompareOptions
from harness.compare.pairs import Pair, Side, pair_runs, require_whole, side_of
from harness.compare.sides import Named, resolve, what_is_named
from harness.errors import UsageError
from harness.progress import Progress
from harness.records.case import Case
from harness.stages.options import ExplainOptions
from harness.stages.side_runs import SideRuns, SidesUnderway, begun_options
from harness.store.files import adapter
from harness.store.folders import find_folder
from harness.store.run_directory import load_run
from harness.store.sides_directory import ExplanationDirectory
from harness.suite.completion import case_meant, case_names
from harness.text import did_you_mean, such_as

_FORM = (
    "give two sides and a case, as in `harness explain iree==3.10.0 iree==3.12.0 CASE --suite SUITE`; each side is a "
    "run, a toolchain or a commit; or one run with --within and --variant"
)


@dataclass(frozen=True, kw_only=True)
class AskedPair:
    """What is explained."""

    base: Side  # Its run. head likewise; within one run, both are that run.
    head: Side
    pair: Pair  # The case on both sides
    within: bool  # Whether both are variants of one run


def asked_words(options: ExplainOptions) -> tuple[tuple[str, ...], str | None]:
    """Both sides of a command line, or the run that has both, and the case; None: no case is said."""
    words, number = options.words, 1 if options.within else 2
    if len(words) > number + 1:
        form = "a run and the case with --within" if options.within else "base, head and the case"
        raise UsageError(f"{len(words)} words are given, and harness explain takes {form}; leave out {words[-1]}")
    if len(words) == number + 1 and options.case is not None:
        raise UsageError(f"{words[-1]} and --case {options.case} both say which case is meant; leave one of them out")
    if options.variants and not options.within:
        raise UsageError("--variant is for variants of one run; give --within too, or leave --variant out")
    if len(words) < number:
        raise UsageError(_FORM)
    if len(options.variants) > 2:
        raise UsageError(f"--variant is given {len(options.variants)} times, and there are two sides; leave one out")
    return words[:number], words[number] if len(words) > number else options.case


def named_sides(options: ExplainOptions) -> tuple[Named, ...]:
    """What the words of both sides mean, or of the run that has both."""
    words, _ = asked_words(options)
    if options.within:
        return (find_folder(words[0], options.results, kind="run"),)
    return tuple(what_is_named(word, options.results) for word in words)


# Options of an explanation that goes on; all others are those that it was begun with.
_ANEW = ("resume", "results", "wait", "quiet", "verbose")


def going_on(folder: ExplanationDirectory, options: ExplainOptions) -> ExplainOptions:
    """The options of an explanation that goes on; see `begun_options`."""
    begun = begun_options(folder, options, _ANEW)
    anew = {name: getattr(options, name) for name in ("wait", "quiet", "verbose")}
    return replace(begun, results=folder.path.parent, **anew)


class ExplainUnderway(SidesUnderway[ExplanationDirectory]):
    """An explanation from its first side to its last difference."""

    def __init__(
        self,
        options: ExplainOptions,
        sides: Sequence[Named],
        command: Sequence[str] = (),
        folder: ExplanationDirectory | None = None,
    ) -> None:
        self.named = tuple(sides)
        kept = [side.sha if isinstance(side, Commit) else str(side) for side in sides]
        case = asked_words(options)[1]
        self.asked = replace(options, words=tuple(kept), case=case)
        as_compared = CompareOptions(
            suite=options.suite,
            results=options.results,
            compile_timeout_s=options.compile_timeout_s,
            call_timeout_s=options.call_timeout_s,
            wait=options.wait,
            quiet=options.quiet,
            verbose=options.verbose,
        )
        super().__init__(as_compared, kept, command, folder)

    def _new_folder(self, suite: str) -> ExplanationDirectory:
        begun = self._begun(adapter(ExplainOptions).dump_python(self.asked, mode="json"))
        return ExplanationDirectory.create(self.asked.results, suite, self.created, begun)


def find_asked(underway: ExplainUnderway, progress: Progress, trees: ExitStack) -> AskedPair:
    """Both sides with their runs; those of releases and commits are made now, of the one case."""
    options, named, case = underway.asked, underway.named, underway.asked.case
    if options.within:
        side = side_of(load_run(Path(options.words[0]), rounds=False), options.words[0])
        require_whole(side)
        pair = pair_of_variants(side, options.variants, case)
        return AskedPair(base=side, head=side, pair=pair, within=True)
    first, second = named
    if not (isinstance(first, Path) and isinstance(second, Path)):
        case = case or _only_case((first, second), options.suite)
        underway.options = replace(underway.options, patterns=(glob.escape(case),))
    if options.suite is not None and isinstance(first, str) and isinstance(second, str):
        case_meant(options.suite, case)
    maker = SideRuns(underway=underway, progress=progress, trees=trees)
    sides = resolve((first, second), options.suite, maker, progress.note)
    for side in sides:
        require_whole(side)
    base, head = sides
    return AskedPair(base=base, head=head, pair=pair_of_runs(base, head, case), within=False)


def _only_case(sides: tuple[Named, Named], suite: Path | None) -> str:
    """The case of a suite that has one, which is that of a side's run where none is given."""
    names: list[str] = []
    if suite is not None:
        names = case_names(suite, peers=False)
    elif runs := [side for side in sides if isinstance(side, Path)]:
        names = [case.name for case in load_run(runs[0], rounds=False).header.cases if case.peer is None]
    else:
        raise UsageError(
            "neither side is a run, so the case needs a suite; give --suite, as in --suite suites/esrgan.toml"
        )
    if len(names) != 1:
        raise UsageError(f"which case is not said; give it behind the sides{such_as(names)}")
    return names[0]


# --- Which case ---


def pair_of_runs(base: Side, head: Side, case: str | None) -> Pair:
    """The case of two runs; by its name, though they define it differently."""
    pairs = {pair.name: pair for pair in pair_runs(base, head, by_name=True)}
    both = [name for name, pair in pairs.items() if pair.base is not None and pair.head is not None]
    where = f"{base.label} and {head.label}"
    if case is None:
        if len(both) > 1:
            raise UsageError(f"{where}: which case is not said; give it behind the sides{such_as(both)}")
        case = both[0]
    if case not in pairs:
        raise UsageError(f"{where}: there is no case {case!r}{_hint(case, both)}")
    if case not in both:
        lacks = base.label if pairs[case].base is None else head.label
        raise UsageError(
            f"{lacks} has no case {case!r}, so there is nothing to hold the other one against; name another"
        )
    return pairs[case]


def pair_of_variants(side: Side, variants: Sequence[str], case: str | None) -> Pair:
    """A variant of a run and its baseline, or two variants of it."""
    cases = [found for found in side.run.header.cases if found.peer is None]
    head = _head_within(side, cases, variants, case)
    base: Case | None
    if len(variants) == 2:
        alike = [found for found in cases if (found.group, found.toolchain) == (head.group, head.toolchain)]
        base = _one(side, [found for found in alike if found.variant == variants[0]], f"variant {variants[0]!r}", alike)
    else:
        base = side.baselines.get(head.group)
    if base is None:
        raise UsageError(f"{side.label}: {head.group} has no baseline; name two variants with --variant")
    if base == head:
        raise UsageError(f"{side.label}: {head.name} is the baseline itself; name another variant with --variant")
    return Pair(name=head.name, base=base, head=head)


def _head_within(side: Side, cases: Sequence[Case], variants: Sequence[str], case: str | None) -> Case:
    if not variants and case is None:
        others = [found for found in cases if found is not side.baselines.get(found.group)]
        if len(others) == 1:
            return others[0]
        such = such_as([found.name for found in others])
        raise UsageError(f"{side.label}: which variant is not said; give --variant or a case{such}")
    known = dict.fromkeys(found.variant for found in cases)
    for variant in variants:
        if variant not in known:
            raise UsageError(f"{side.label}: has no variant {variant!r}{did_you_mean(variant, list(known))}")
    found = [candidate for candidate in cases if not variants or candidate.variant == variants[-1]]
    if case is not None:
        named = [candidate for candidate in found if candidate.name == case]
        # With two variants a user may name the case of either.
        named = named or [
            candidate
            for candidate in found
            if any(other.name == case and other.group == candidate.group for other in cases)
        ]
        if not named:
            raise UsageError(
                f"{side.label}: there is no case {case!r}{_hint(case, [candidate.name for candidate in found])}"
            )
        found = named
    return _one(side, found, "case", found)


def _one(side: Side, found: Sequence[Case], what: str, others: Sequence[Case]) -> Case:
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"{side.label}: there is no {what} beside it{such_as([case.name for case in others])}")
    raise UsageError(f"{side.label}: which case is not said; give --case{such_as([case.name for case in found])}")


def _hint(case: str, names: Sequence[str]) -> str:
    return did_you_mean(case, names, f"; there {'is' if len(names) == 1 else 'are'} {such_as(names)[2:]}")
