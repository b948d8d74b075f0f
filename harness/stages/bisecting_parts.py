"""The line of `harness bisect --over flags`: two variants -> their parts -> sets of them, compiled -> causes.

Each set of parts is a variant of a suite of its own, a file beside the measurements, which can be run like any other's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tomli_w

from harness.bisect.search import Cause, Effect, Measured, Unusable, edge_of, minimal_causes, nearer_end
from harness.bisect.trials import Place, as_measured
from harness.bisect.variants import CompileConfig, Part, parts_between, parts_of_level, uses_of, with_parts
from harness.cache import environments_root
from harness.errors import UsageError
from harness.records.bisection import Bisection, FoundCause, Nearer, OpenStretch, Trial
from harness.stages.ablating import joined_name, moved_model
from harness.stages.bisect_underway import BisectUnderway
from harness.stages.options import BisectOptions
from harness.stages.prepare import require_name
from harness.store.search_directory import SUITES_FOLDER, KeptSentence
from harness.suite.load import Suite, Variant, load_suite
from harness.suite.schema import SuiteFile
from harness.suite.toml_file import read_toml
from harness.text import plural
from harness.toolchain import Toolchain, compiler_flags, find_toolchain, get_toolchains
from harness.toolchain.tools import merge_flags

NONE = "none"
_LONGEST_NAME = 60
# Of the whole, of the halves down to a part, and of each part alone: so many are planned for, a part.
_MEASUREMENTS_A_PART, _MEASUREMENTS_MORE = 4, 4
_EFFECTS: dict[Nearer, Effect] = {"head": "all", "base": "none", "between": "none", "unknown": "unknown"}
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

# Parts by name: `1`, and `1a` for the first of what part 1 sets.
Names = frozenset[str]


def bisect_parts(underway: BisectUnderway) -> Bisection:
    """Find the parts of a variant that make the difference to the base variant, alone or together.

    After the smallest sets that make all of it are found, what is left is held against the base with these; so parts
    that each add something are found one after the other.
    """
    search = _Search(underway)
    left = [str(number) for number in range(1, len(search.words) + 1)]
    underway.planned = _MEASUREMENTS_MORE + _MEASUREMENTS_A_PART * len(left)
    underway.progress.note(f"{plural(len(left), 'part')} of {underway.options.case}: {'; '.join(search.words)}")
    everything, beside = frozenset(left), Names()
    for names, who in ((beside, f"the base variant {search.question.base_variant!r}"), (everything, "the case")):
        end = search.place(search.named(names))
        if isinstance(end, Unusable):
            raise UsageError(f"{who} cannot be measured: {end.reason}")
    causes: list[FoundCause] = []
    unknown: list[OpenStretch] = []
    while left:
        whole = search.measure(beside, everything, underway.floor)
        if isinstance(whole, Unusable) or whole.standing == "open":
            ends = search.named(beside), search.named(everything)
            unknown.append(OpenStretch(first=ends[0], last=ends[1], reason=whole.reason))
        if isinstance(whole, Unusable) or not whole.differs:
            break
        found = search.causes(left, beside, whole)
        causes += [search.cause(cause, left, beside) for cause in found]
        explained = {left[part] for cause in found for part in cause.parts}
        beside |= explained
        left = [name for name in left if name not in explained]
    return underway.concluded(
        (search.question.base_variant, search.question.variant),
        search.order,
        causes=tuple(causes),
        open=tuple(unknown),
        parts=search.words,
    )


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


def question_of(options: BisectOptions) -> Question:
    """What is searched."""
    path, case = options.chosen
    suite = load_suite(path).suite
    model, variant, device = _cell(suite, case)
    base_variant = options.base or suite.baseline
    require_name(path, "variant", base_variant, [variant.name for variant in suite.variants])
    configs = {variant.name: config_of(variant) for variant in suite.variants}
    base, head = configs[base_variant], configs[variant]
    parts = parts_between(base, head)
    if not parts:
        raise UsageError(
            f"{path}: variant {variant!r} has no part that {base_variant!r} does not have; give another variant with "
            "--base"
        )
    return Question(
        model=model, variant=variant, device=device, base_variant=base_variant, base=base, head=head, parts=parts
    )


def toolchain_of(options: BisectOptions, note: Callable[[str], None]) -> Toolchain:
    """The toolchain under which parts are searched; a release that is not here is installed."""
    if options.toolchain is None:
        return find_toolchain()
    (found,) = get_toolchains([options.toolchain], root=environments_root(), on_install=note)
    return found


class _Search:
    """Sets of parts as positions.

    Attributes:
        question: What is searched.
        words: The parts, for people.
        order: Names of positions, as they were first asked for.
    """

    def __init__(self, underway: BisectUnderway) -> None:
        self._underway = underway
        self.question = question_of(underway.options)
        self.words = tuple(part.words for part in self.question.parts)
        self._parts = {str(number): part for number, part in enumerate(self.question.parts, start=1)}
        self._sets: dict[str, Names] = {}
        self._toolchain = toolchain_of(underway.options, underway.progress.note)

    @property
    def order(self) -> Sequence[str]:
        """Names of all positions that were asked for."""
        return tuple(self._sets)

    def named(self, names: Names) -> str:
        """The name of a position: the parts that it has."""
        text = "+".join(sorted(names, key=_number)) or NONE
        if len(text) > _LONGEST_NAME:
            text = f"{len(names)}-parts-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        self._sets[text] = names
        return text

    def measure(self, base: Names, head: Names, floor: float) -> Measured | Unusable:
        """One set of parts beside another."""
        return self._underway.measure(self.named(base), self.named(head), floor, self.place)

    def place(self, name: str) -> Place | Unusable:
        """The base variant with a set of parts, compiled, or why there is none."""
        return self._underway.place(name, lambda: self._compiled(name))

    def _compiled(self, name: str) -> Place | Unusable:
        chosen = [self._parts[part] for part in self._sets[name]]
        base, head = self.question.base, self.question.head
        configs = {NONE: base, name: with_parts(base, head, chosen) if chosen else base}
        file = self._underway.directory.write_suite(name, tomli_w.dumps(self._suite(configs)))
        case = f"{self.question.model}/{name}@{self.question.device}"
        base_variant = self.question.base_variant
        label = base_variant if name == NONE else f"{base_variant} with part {name}"
        return self._underway.compiled(name, file, case, self._toolchain, label=label)

    def _suite(self, configs: dict[str, CompileConfig]) -> dict[str, Any]:
        """A suite of these variants, of which `none` is the baseline."""
        path, case = self._underway.options.chosen
        table, _ = read_toml(path, SuiteFile)
        content = table.model_dump(exclude_none=True, exclude_defaults=True)
        asked = self.question
        model = {key: value for key, value in content["models"][asked.model].items() if key != "expect"}
        return {
            "name": joined_name([table.name, "parts"]),
            "description": f"Parts of {case}, added to {asked.base_variant}",
            "baseline": NONE,
            "models": {asked.model: moved_model(model, path, self._underway.directory.path / SUITES_FOLDER)},
            "variants": {name: config.table() for name, config in configs.items()},
            "devices": {asked.device: content["devices"][asked.device]},
            **{key: content[key] for key in ("ir", "floors") if content.get(key)},
        }

    def causes(self, left: Sequence[str], beside: Names, whole: Measured) -> tuple[Cause, ...]:
        """The smallest sets of what is left that make the whole difference."""

        def effect_of(chosen: Collection[int]) -> Effect:
            if len(chosen) == len(left):
                return "all"
            return self._effect(beside, beside | {left[part] for part in chosen}, whole)

        return minimal_causes(len(left), effect_of)

    def _effect(self, base: Names, head: Names, whole: Measured) -> Effect:
        edge = edge_of(whole, self._underway.floor)
        found = self.measure(base, head, edge)
        nearer: Nearer = "unknown" if isinstance(found, Unusable) else nearer_end(found, whole)
        self._underway.sort(self.named(base), self.named(head), edge, nearer)
        return _EFFECTS[nearer]

    def cause(self, cause: Cause, left: Sequence[str], beside: Names) -> FoundCause:
        """A cause with its size, what explains it, and of several parts what each does alone."""
        names = [left[part] for part in cause.parts]
        size = self._size(beside, beside | set(names))
        found, why, inside = as_measured(size), KeptSentence(), tuple[str, ...]()
        before, after = self.place(size.base), self.place(size.head)
        if isinstance(before, Place) and isinstance(after, Place) and isinstance(found, Measured) and found.differs:
            why = self._underway.explained(before, after, size.verdict)
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
        asked = self.named(base), self.named(head), self._underway.floor
        if self._underway.told(*asked) is None:
            self.measure(base, head, self._underway.floor)
        return self._underway.trial(*asked)

    def _inside(self, names: Sequence[str], beside: Names, size: Measured) -> Iterable[str]:
        """Of an optimisation level among the parts of a cause: the levels that it sets which do the same."""
        for name in names:
            levels = parts_of_level(self._parts[name], compiler_flags(self._toolchain))
            keys = [f"{name}{letter}" for letter in _LETTERS[: len(levels)]]
            self._parts |= dict(zip(keys, levels, strict=True))
            others = beside | {other for other in names if other != name}

            def effect_of(chosen: Collection[int], keys: Sequence[str] = keys, others: Names = others) -> Effect:
                return self._effect(beside, others | {keys[part] for part in chosen}, size)

            for found in minimal_causes(len(levels), effect_of):
                yield ", ".join(levels[part].text for part in found.parts)


def config_of(variant: Variant) -> CompileConfig:
    """How a variant of a suite compiles and runs, its flag sets taken apart into their flags."""
    return CompileConfig(
        flags=merge_flags(*(flag_set.compile for flag_set in variant.flag_sets), variant.compile_flags),
        run_flags=merge_flags(*(flag_set.run for flag_set in variant.flag_sets), variant.run_flags),
        plugins=uses_of((plugin.name, plugin.options) for plugin in variant.plugins),
    )


def _cell(suite: Suite, case: str) -> tuple[str, str, str]:
    for model in suite.models:
        for variant in suite.variants:
            for device in suite.devices:
                if case == f"{model.name}/{variant.name}@{device.name}":
                    return model.name, variant.name, device.name
    raise UsageError(f"{suite.path}: {case} is no case of a variant, so it has no flags to search; name another case")


def _number(name: str) -> tuple[int, str]:
    """By which parts are ordered: their number, and then the letter of what they set."""
    digits = name.rstrip(_LETTERS)
    return int(digits), name.removeprefix(digits)
