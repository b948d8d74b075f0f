"""What a user asks `harness explain` for -> one case on two sides, both compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.compare.pairs import Pair, Side, pair_runs, require_whole, side_of
from harness.compare.sides import Named, resolve, what_is_named
from harness.errors import UsageError
from harness.records.case import Case
from harness.stages.options import ExplainOptions
from harness.stages.session import options_going_on
from harness.stages.sides_session import SidesSession, words_of
from harness.store.folders import find_folder
from harness.store.run_directory import load_run
from harness.store.sides_directory import ExplanationDirectory
from harness.suite.completion import case_meant, case_names
from harness.text import did_you_mean, such_as

_FORM = (
    "give two sides and a case, as in `harness explain iree==3.10.0 iree==3.12.0 CASE --suite SUITE`; each side is a "
    "run, a toolchain or a commit; or one run with --within and --variant"
)
_WHICH_CASE = "which case is not said; give --case"


@dataclass(frozen=True, kw_only=True)
class AskedPair:
    """What is explained."""

    base: Side  # Its run. head likewise; within one run, both are that run.
    head: Side
    pair: Pair  # The case on both sides
    within: bool  # Whether both are variants of one run


class ExplanationSession(SidesSession[ExplainOptions, ExplanationDirectory]):
    """An explanation from its first side to its last difference."""

    directory = ExplanationDirectory

    def __init__(
        self, options: ExplainOptions, words: Sequence[str] = (), folder: ExplanationDirectory | None = None
    ) -> None:
        """What is wrong with the options shows at once."""
        sides, case = _apart(options)
        if options.within:
            self.named: tuple[Named, ...] = (find_folder(sides[0], options.results, kind="run"),)
        else:
            self.named = tuple(what_is_named(word, options.results) for word in sides)
        kept = replace(options, words=words_of(self.named), case=case)  # said so that they mean the same tomorrow
        super().__init__(kept, self.named, words, folder)

    def asked(self) -> AskedPair:
        """Both sides with their runs; those of releases and commits are made now, of the one case."""
        options, named, case = self.options, self.named, self.options.case
        if options.within:
            side = side_of(load_run(Path(options.words[0]), rounds=False), options.words[0])
            require_whole(side)
            pair = pair_of_variants(side, options.variants, case)
            return AskedPair(base=side, head=side, pair=pair, within=True)
        first, second = named
        if not (isinstance(first, Path) and isinstance(second, Path)):
            case = self.case = case or _only_case(named, options.suite)
        if options.suite is not None and isinstance(first, str) and isinstance(second, str):
            case_meant(options.suite, case)
        base, head = resolve((first, second), options.suite, self, self.progress.note)
        for side in (base, head):
            require_whole(side)
        return AskedPair(base=base, head=head, pair=pair_of_runs(base, head, case), within=False)


def going_on(folder: ExplanationDirectory, options: ExplainOptions) -> ExplainOptions:
    """The options of an explanation that goes on."""
    assert folder.begun is not None  # noqa: S101 (else it could not be resumed)
    return options_going_on(options, folder.begun, folder.path, folder.kind)


def _apart(options: ExplainOptions) -> tuple[tuple[str, ...], str | None]:
    """The words of both sides, or of the run that has both, and the case; None: no case is said."""
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


def _only_case(sides: Sequence[Named], suite: Path | None) -> str:
    """The case of a suite that has one, which is that of a side's run where none is given."""
    runs = [side for side in sides if isinstance(side, Path)]
    if suite is not None:
        names = case_names(suite, peers=False)
    elif runs:
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
    known = list(dict.fromkeys(found.variant for found in cases))
    for variant in variants:
        if variant not in known:
            raise UsageError(f"{side.label}: has no variant {variant!r}{did_you_mean(variant, known)}")
    heads = [found for found in cases if not variants or found.variant == variants[-1]]
    if case is not None:
        # With two variants a user may name the case of either.
        groups = {found.group for found in cases if found.name == case}
        named = [found for found in heads if found.name == case] or [each for each in heads if each.group in groups]
        if not named:
            raise UsageError(f"{side.label}: there is no case {case!r}{_hint(case, [each.name for each in heads])}")
        heads = named
    elif not variants:
        heads = [found for found in heads if found is not side.baselines.get(found.group)]
    head = _one(side, heads, _WHICH_CASE if variants or case else "which variant is not said; give --variant or a case")
    base = side.baselines.get(head.group)
    if len(variants) == 2:
        alike = [found for found in cases if (found.group, found.toolchain) == (head.group, head.toolchain)]
        bases = [found for found in alike if found.variant == variants[0]]
        if not bases:
            such = such_as([found.name for found in alike])
            raise UsageError(f"{side.label}: there is no variant {variants[0]!r} beside it{such}")
        base = _one(side, bases, _WHICH_CASE)
    if base is None:
        raise UsageError(f"{side.label}: {head.group} has no baseline; name two variants with --variant")
    if base == head:
        raise UsageError(f"{side.label}: {head.name} is the baseline itself; name another variant with --variant")
    return Pair(name=head.name, base=base, head=head)


def _one(side: Side, found: Sequence[Case], lacking: str) -> Case:
    if len(found) != 1:
        raise UsageError(f"{side.label}: {lacking}{such_as([case.name for case in found])}")
    return found[0]


def _hint(case: str, names: Sequence[str]) -> str:
    return did_you_mean(case, names, f"; there {'is' if len(names) == 1 else 'are'} {such_as(names)[2:]}")
