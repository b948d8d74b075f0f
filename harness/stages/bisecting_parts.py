"""The line of `harness bisect --over flags`: two variants -> their parts -> sets of them, compiled -> causes.

Each set of parts is a variant of a suite of its own, a file beside the measurements, which can be run like any other's.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import tomli_w

from harness.bisect.minimal import Cause, Effect, minimal_causes
from harness.bisect.search import Measured, Unusable, nearer_end
from harness.bisect.trials import Place
from harness.bisect.variants import Way, parts_between, parts_of_level, uses_of, with_parts
from harness.cache import environments_root
from harness.errors import UsageError
from harness.records.bisection import Bisection, FoundCause, Nearer, OpenStretch
from harness.stages.ablating import joined_name, moved_model
from harness.stages.bisect_underway import BisectUnderway
from harness.stages.prepare import require_name
from harness.store.bisect_directory import SUITES_FOLDER
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

    Raises:
        UsageError: There is no such variant, the two do not differ, or one of them cannot be measured.
        Interrupted: The message says how to go on.
    """
    search = _Search(underway)
    left = [str(number) for number in range(1, len(search.words) + 1)]
    underway.planned = _MEASUREMENTS_MORE + _MEASUREMENTS_A_PART * len(left)
    underway.progress.note(f"{plural(len(left), 'part')} of {underway.options.case}: {'; '.join(search.words)}")
    everything, beside = frozenset(left), Names()
    for names, who in ((beside, f"the base variant {search.base_variant!r}"), (everything, "the case")):
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
        (search.base_variant, search.variant),
        search.order,
        causes=tuple(causes),
        open=tuple(unknown),
        parts=search.words,
    )


class _Search:
    """Sets of parts as positions.

    Attributes:
        words: The parts, for people.
        order: Names of positions, as they were first asked for.
    """

    def __init__(self, underway: BisectUnderway) -> None:
        self._underway = underway
        options = underway.options
        path, case = options.chosen
        suite = load_suite(path).suite
        self.model, self.variant, self.device = _cell(suite, case)
        self.base_variant = options.base or suite.baseline
        require_name(path, "variant", self.base_variant, [variant.name for variant in suite.variants])
        ways = {variant.name: way_of(variant) for variant in suite.variants}
        self._base, self._head = ways[self.base_variant], ways[self.variant]
        parts = parts_between(self._base, self._head)
        if not parts:
            raise UsageError(
                f"{path}: variant {self.variant!r} has no part that {self.base_variant!r} does not have; give another "
                "variant with --base"
            )
        self.words = tuple(part.words for part in parts)
        self._parts = {str(number): part for number, part in enumerate(parts, start=1)}
        self._sets: dict[str, Names] = {}
        self._toolchain = self._find_toolchain()

    @property
    def order(self) -> Sequence[str]:
        """Names of all positions that were asked for."""
        return tuple(self._sets)

    def _find_toolchain(self) -> Toolchain:
        wanted = self._underway.options.toolchain
        if wanted is None:
            return find_toolchain()
        (found,) = get_toolchains([wanted], root=environments_root(), on_install=self._underway.progress.note)
        return found

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
        ways = {NONE: self._base, name: with_parts(self._base, self._head, chosen) if chosen else self._base}
        file = self._underway.directory.write_suite(name, tomli_w.dumps(self._suite(ways)))
        return self._underway.compiled(name, file, f"{self.model}/{name}@{self.device}", self._toolchain)

    def _suite(self, ways: dict[str, Way]) -> dict[str, Any]:
        """A suite of these variants, of which `none` is the baseline."""
        path, case = self._underway.options.chosen
        table, _ = read_toml(path, SuiteFile)
        content = table.model_dump(exclude_none=True, exclude_defaults=True)
        model = {key: value for key, value in content["models"][self.model].items() if key != "expect"}
        return {
            "name": joined_name([table.name, "parts"]),
            "description": f"Parts of {case}, added to {self.base_variant}",
            "baseline": NONE,
            "models": {self.model: moved_model(model, path, self._underway.directory.path / SUITES_FOLDER)},
            "variants": {name: way.table() for name, way in ways.items()},
            "devices": {self.device: content["devices"][self.device]},
            **{key: content[key] for key in ("ir", "floors") if content.get(key)},
        }

    def causes(self, left: Sequence[str], beside: Names, whole: Measured) -> tuple[Cause, ...]:
        """The smallest sets of what is left that make the whole difference.

        Args:
            beside: Parts that both sides have.
            whole: All parts, measured beside these.
        """

        def effect_of(chosen: Collection[int]) -> Effect:
            if len(chosen) == len(left):
                return "all"
            return self._effect(beside, beside | {left[part] for part in chosen}, whole)

        return minimal_causes(len(left), effect_of)

    def _effect(self, base: Names, head: Names, whole: Measured) -> Effect:
        begin = len(self._underway.trials)
        found = self.measure(base, head, math.expm1(abs(whole.centre) / 2))
        nearer: Nearer = "unknown" if isinstance(found, Unusable) else nearer_end(found, whole)
        self._underway.say_where_they_belong(begin, iter([nearer]))
        return _EFFECTS[nearer]

    def cause(self, cause: Cause, left: Sequence[str], beside: Names) -> FoundCause:
        """A cause with its size, and of several parts with what each does alone."""
        names = [left[part] for part in cause.parts]
        size = self.measure(beside, beside | set(names), self._underway.floor)
        several = names if len(names) > 1 else []
        for name in several:
            self.measure(beside, beside | {name}, self._underway.floor)
        here = self.named(beside)
        return FoundCause(
            parts=tuple(map(int, names)),
            beside=tuple(sorted(map(int, beside))),
            size=self._underway.trial(here, self.named(beside | set(names)), self._underway.floor),
            alone=tuple(
                self._underway.trial(here, self.named(beside | {name}), self._underway.floor) for name in several
            ),
            untold=cause.untold,
            inside=tuple(self._inside(names, beside, size)) if isinstance(size, Measured) and size.differs else (),
        )

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


def way_of(variant: Variant) -> Way:
    """How a variant of a suite compiles and runs, its flag sets taken apart into their flags."""
    return Way(
        flags=merge_flags(*(flag_set.compile for flag_set in variant.flag_sets), variant.compile_flags),
        run_flags=merge_flags(*(flag_set.run for flag_set in variant.flag_sets), variant.run_flags),
        plugins=uses_of((plugin.name, plugin.options) for plugin in variant.plugins),
    )


def _cell(suite: Suite, case: str) -> tuple[str, str, str]:
    """The model, the variant and the device of a case.

    Raises:
        UsageError: It is a peer's, or the baseline itself.
    """
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
