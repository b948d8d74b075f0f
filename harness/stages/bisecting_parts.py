"""The line of `harness bisect --over flags`: two variants -> their parts -> sets of them, compiled -> causes.

Each set of parts is a variant of a suite of its own, a file beside the measurements, which can be run like any other's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from harness.bisect.search import Cause, Effect, Measured, Unusable, edge_of, minimal_causes, nearer_end
from harness.bisect.trials import Place, as_measured
from harness.bisect.variants import CompileConfig, Part, parts_between, parts_of_level, with_parts
from harness.errors import UsageError
from harness.progress import Progress
from harness.records.bisection import Bisection, FoundCause, Nearer, OpenStretch, Trial
from harness.stages.bisect_session import BisectSession
from harness.stages.derived_suites import config_of, derived_suite
from harness.stages.options import BisectOptions
from harness.stages.prepare import require_name
from harness.stages.session import toolchain_named
from harness.store.search_directory import SUITES_FOLDER, BisectDirectory, KeptSentence
from harness.suite.load import load_suite
from harness.text import plural
from harness.toolchain import compiler_flags

NONE = "none"
_LONGEST_NAME = 60
# Of the whole, of the halves down to a part, and of each part alone: so many are planned for, a part.
_MEASUREMENTS_A_PART, _MEASUREMENTS_MORE = 4, 4
_EFFECTS: dict[Nearer, Effect] = {"head": "all", "base": "none", "between": "none", "unknown": "unknown"}
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

# Parts by name: `1`, and `1a` for the first of what part 1 sets.
Names = frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Question:
    """Two variants of a suite's model on a device, and the parts in which they differ."""

    model: str
    variant: str  # The case's; `base_variant` is the one that it is held against, and `head` and `base` what they are
    device: str
    base_variant: str
    base: CompileConfig
    head: CompileConfig
    parts: tuple[Part, ...]


def question_of(path: Path, case: str, base: str | None) -> Question:
    """What is searched where a case is held against a variant; None: the suite's baseline."""
    suite = load_suite(path).suite
    cells = product(suite.models, suite.variants, suite.devices)
    found = [cell for cell in cells if case == f"{cell[0].name}/{cell[1].name}@{cell[2].name}"]
    if not found:
        raise UsageError(f"{path}: {case} is no case of a variant, so it has no flags to search; name another case")
    ((model, variant, device),) = found
    base_variant = base or suite.baseline
    require_name(path, "variant", base_variant, [each.name for each in suite.variants])
    configs = {each.name: config_of(each) for each in suite.variants}
    parts = parts_between(configs[base_variant], configs[variant.name])
    if not parts:
        raise UsageError(
            f"{path}: variant {variant.name!r} has no part that {base_variant!r} does not have; give another variant "
            "with --base"
        )
    return Question(
        model=model.name,
        variant=variant.name,
        device=device.name,
        base_variant=base_variant,
        base=configs[base_variant],
        head=configs[variant.name],
        parts=parts,
    )


class PartSearch(BisectSession):
    """A bisect whose positions are sets of parts, added to the base variant."""

    def __init__(self, options: BisectOptions, directory: BisectDirectory, progress: Progress) -> None:
        super().__init__(options, directory, progress)
        self.question = question_of(*options.chosen, options.base)
        self.words = tuple(part.words for part in self.question.parts)
        self._parts = {str(number): part for number, part in enumerate(self.question.parts, start=1)}
        self._sets: dict[str, Names] = {}  # By the names of positions, in the order in which they were first asked for
        self._toolchain = toolchain_named(options.toolchain, progress.note)

    def search(self) -> Bisection:
        """Find the parts of a variant that make the difference to the base variant, alone or together.

        After the smallest sets that make all of it are found, what is left is held against the base with these; so
        parts that each add something are found one after the other.
        """
        left = [*self._parts]
        self.planned = _MEASUREMENTS_MORE + _MEASUREMENTS_A_PART * len(left)
        self.progress.note(f"{plural(len(left), 'part')} of {self.options.case}: {'; '.join(self.words)}")
        everything, beside = frozenset(left), Names()
        for names, who in ((beside, f"the base variant {self.question.base_variant!r}"), (everything, "the case")):
            end = self.place(self._named(names))
            if isinstance(end, Unusable):
                raise UsageError(f"{who} cannot be measured: {end.reason}")
        causes: list[FoundCause] = []
        unknown: list[OpenStretch] = []
        while left:
            whole = self._measured(beside, everything, self.floor)
            if isinstance(whole, Unusable) or whole.standing == "open":
                first, last = self._named(beside), self._named(everything)
                unknown.append(OpenStretch(first=first, last=last, reason=whole.reason))
            if isinstance(whole, Unusable) or not whole.differs:
                break
            found = minimal_causes(len(left), self._effects(left, beside, whole))
            causes += [self._found(cause, left, beside) for cause in found]
            explained = {left[part] for cause in found for part in cause.parts}
            beside |= explained
            left = [name for name in left if name not in explained]
        ends = self.question.base_variant, self.question.variant
        return self.concluded(ends, tuple(self._sets), causes=tuple(causes), open=tuple(unknown), parts=self.words)

    # --- sets of parts ---

    def _named(self, names: Names) -> str:
        """The name of a position: the parts that it has."""
        text = "+".join(sorted(names, key=_number)) or NONE
        if len(text) > _LONGEST_NAME:
            text = f"{len(names)}-parts-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        self._sets[text] = names
        return text

    def make(self, name: str) -> Place | Unusable:
        """The base variant with a set of parts."""
        asked, (path, case) = self.question, self.options.chosen
        chosen = [self._parts[part] for part in self._sets[name]]
        configs = {NONE: asked.base, name: with_parts(asked.base, asked.head, chosen) if chosen else asked.base}
        text = derived_suite(
            path,
            self.directory.path / SUITES_FOLDER,
            configs,
            models=[asked.model],
            devices=[asked.device],
            named=["parts"],
            description=f"Parts of {case}, added to {asked.base_variant}",
            keys=("ir", "floors"),
        )
        suite = self.directory.write_suite(name, text)
        label = asked.base_variant if name == NONE else f"{asked.base_variant} with part {name}"
        return self.compiled(name, suite, f"{asked.model}/{name}@{asked.device}", self._toolchain, label)

    def _measured(self, base: Names, head: Names, floor: float) -> Measured | Unusable:
        return self.measure(self._named(base), self._named(head), floor)

    # --- what they do ---

    def _effects(
        self, names: Sequence[str], beside: Names, whole: Measured, among: Names | None = None
    ) -> Callable[[Collection[int]], Effect]:
        """What some of these parts do beside others, of the whole difference, where they come among more."""

        def effect_of(chosen: Collection[int]) -> Effect:
            if len(chosen) == len(names) and among is None:
                return "all"
            head = beside | (among or Names()) | {names[part] for part in chosen}
            edge = edge_of(whole, self.floor)
            found = self._measured(beside, head, edge)
            nearer: Nearer = "unknown" if isinstance(found, Unusable) else nearer_end(found, whole)
            self.sort(self._named(beside), self._named(head), edge, nearer)
            return _EFFECTS[nearer]

        return effect_of

    def _found(self, cause: Cause, left: Sequence[str], beside: Names) -> FoundCause:
        """A cause with its size, what explains it, and of several parts what each does alone."""
        names = [left[part] for part in cause.parts]
        size = self._size(beside, beside | set(names))
        found, why, inside = as_measured(size), KeptSentence(), tuple[str, ...]()
        if isinstance(found, Measured) and found.differs:
            why = self.explained(size.base, size.head, size.verdict)
            inside = tuple(self._inside(names, beside, found))
        return FoundCause(
            parts=tuple(map(int, names)),
            beside=tuple(sorted(map(int, beside))),
            size=size,
            alone=tuple(self._size(beside, beside | {name}) for name in names if len(names) > 1),
            untold=cause.untold,
            inside=inside,
            explanation=why.text,
            explanation_id=why.explanation,
        )

    def _size(self, base: Names, head: Names) -> Trial:
        """One set of parts beside another, by the measurement that sorted it where that tells."""
        asked = self._named(base), self._named(head)
        if self.told(*asked, self.floor) is None:
            self.measure(*asked, self.floor)
        return self.trial(*asked)

    def _inside(self, names: Sequence[str], beside: Names, size: Measured) -> Iterable[str]:
        """Of an optimisation level among the parts of a cause: the levels that it sets which do the same."""
        for name in names:
            levels = parts_of_level(self._parts[name], compiler_flags(self._toolchain))
            keys = [f"{name}{letter}" for letter in _LETTERS[: len(levels)]]
            self._parts |= dict(zip(keys, levels, strict=True))
            others = frozenset(other for other in names if other != name)
            for found in minimal_causes(len(levels), self._effects(keys, beside, size, others)):
                yield ", ".join(levels[part].text for part in found.parts)


def _number(name: str) -> tuple[int, str]:
    """By which parts are ordered: their number, and then the letter of what they set."""
    digits = name.rstrip(_LETTERS)
    return int(digits), name.removeprefix(digits)
