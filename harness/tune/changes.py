"""The changes of a variant that a search tries, and which of them it tries together."""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import combinations

import numpy as np

from harness.bisect.variants import CompileConfig, Use, parts_between, uses_of
from harness.errors import SuiteError, UsageError
from harness.files import shipped
from harness.plugins import PLUGINS, Applied, Plugin, apply_plugin
from harness.plugins.chain import arrange, place_of
from harness.plugins.options import check_options, options_of, switches_of
from harness.stats.pairing import FloatArray
from harness.suite.cases import covers
from harness.suite.flags import find_trap, normalised
from harness.suite.load import Device, FlagSet, Suite, load_flag_sets
from harness.text import did_you_mean, shown
from harness.toolchain.tools import flag_name, merge_flags

# The most promising first: what a flag's name has of these decides. Plugins are as promising as layouts, and with a
# switch the other way as what is fused.
_PROMISE = (
    re.compile(r"preprocessing|transpose|im2col"),
    re.compile(r"opt-level"),
    re.compile(r"data-tiling|encoding|ukernel|mmt4d|inner-tiled|tile-bytes"),
    re.compile(r"dispatch-creation|flow|fus|generalize"),
    re.compile(r"llvmcpu-(vector|target-vector|reassociate|disable-distribution|distribution|number-of-threads)"),
)
_PLUGINS, _SWITCHED = 0, 3
# Flags that ask for more of what the compiler can do by itself. A set of these alone comes before all else.
_LEVELS = ("iree-opt-level", "iree-opt-data-tiling", "iree-dispatch-creation-data-tiling")
# Plugins that rewrite after the phase `input`, where the phases do not tell their order: what later ones look for, the
# earlier ones make. Those of other packages come between.
_FIRST = ("ingress-canonicalize", "channels-last", "share-concat")
_LAST = ("isolate", "tuned")
_NO_PART_OF_A_NAME = re.compile(r"[^A-Za-z0-9._+-]+")


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that a search adds to a variant, or changes in it."""

    name: str  # Unique among the changes of a search, and fit for a variant: `o3`, `channels-last`, `isolate.depthwise`
    parts: tuple[str, ...]  # What it is made of, for people: `--iree-opt-level=O3`, `plugin channels-last`
    purpose: str  # What it is for, in a phrase; "": nobody said
    config: CompileConfig  # The flags and plugins that it brings; a plugin that is there already gets these options
    excludes: frozenset[str] = frozenset()  # Names of the changes that it cannot go together with
    is_level: bool = False  # Whether it is an optimisation level of the compiler's, or its data tiling


def changes_for(
    suite: Suite, start: CompileConfig, device: Device, toolchain: str, *, without: Collection[str] = ()
) -> tuple[Change, ...]:
    """All changes of a way to compile and run that are worth a try on a device, the most promising first.

    They are the flag sets of the suite's variants, those that come with the harness, and the registered plugins that
    need no option, each as it is and with each of its switches the other way.
    """
    rules = _Rules(start, device)
    known, found = {rules.identity(start)}, dict[str, Change]()
    offered = [*_of_plugins(start, device, toolchain), *_of_flag_sets(suite, device, toolchain)]
    for pattern in without:
        if not any(is_unwanted(change, [pattern]) for _, change in offered):
            hint = did_you_mean(pattern, [change.name for _, change in offered])
            raise UsageError(f"--without {shown(pattern)} leaves out nothing that would be tried{hint}")
    for _, change in sorted(offered, key=lambda pair: pair[0]):
        config = rules.together(change)
        if is_unwanted(change, without) or config is None or rules.identity(config) in known:
            continue
        known.add(rules.identity(config))
        parts = tuple(part.words for part in parts_between(start, config))
        found[change.name] = replace(change, parts=parts)
    excluded: dict[str, set[str]] = {name: set() for name in found}
    for one, other in combinations(found.values(), 2):
        if rules.together(one, other) is None:
            excluded[one.name].add(other.name)
            excluded[other.name].add(one.name)
    return tuple(replace(change, excludes=frozenset(excluded[name])) for name, change in found.items())


def groups(changes: Sequence[Change]) -> tuple[tuple[Change, ...], ...]:
    """The changes as alternatives: those of one group exclude each other, so at most one of them can be chosen."""
    found: list[list[Change]] = []
    for change in changes:
        fitting = (group for group in found if all(other.name in change.excludes for other in group))
        group = next(fitting, None)
        if group is None:
            found.append(group := [])
        group.append(change)
    return tuple(map(tuple, found))


def combine(start: CompileConfig, changes: Sequence[Change]) -> CompileConfig | None:
    """The start with some changes, whatever their order; None where two of them exclude each other."""
    if any(one.name in other.excludes for one, other in combinations(changes, 2)):
        return None
    return _joined(start, changes)


def is_unwanted(change: Change, without: Collection[str]) -> bool:
    """Whether one of some shell patterns matches a change's name or that of its plugin."""
    names = {change.name, *(use.name for use in change.config.plugins)}
    return any(fnmatchcase(name, pattern) for name in names for pattern in without)


# --------------------------------------------------------------------------------------------------- what there is


def _of_flag_sets(suite: Suite, device: Device, toolchain: str) -> Iterator[tuple[float, Change]]:
    """The flag sets of the suite and of the harness that fit, each with its promise; the suite's win."""
    sets = load_flag_sets(sorted(shipped("flagsets").glob("*.toml")))
    sets |= {flag_set.name: flag_set for variant in suite.variants for flag_set in variant.flag_sets}
    for name, flag_set in sets.items():
        if _fits(flag_set, device, toolchain):
            label = f"{name}-flags" if name in PLUGINS.names else name
            config = CompileConfig(flags=flag_set.compile, run_flags=flag_set.run)
            promise = _promise(flag_set.compile)
            change = Change(name=label, parts=(), purpose=flag_set.description, config=config, is_level=promise < 0)
            yield promise, change


def _promise(flags: Sequence[str]) -> int:
    names = [flag_name(flag) for flag in flags]
    if names and set(names) <= set(_LEVELS):
        return min(map(_LEVELS.index, names)) - len(_LEVELS)
    hits = (place for place, pattern in enumerate(_PROMISE) if any(map(pattern.search, names)))
    return next(hits, len(_PROMISE))


def _of_plugins(start: CompileConfig, device: Device, toolchain: str) -> Iterator[tuple[float, Change]]:
    """The plugins that fit, and their switches, each with its promise."""
    for name in sorted(PLUGINS.names, key=_order_of):
        try:
            plugin = PLUGINS.find(name)
            options = options_of(plugin.options, name)
        except SuiteError:  # a package that is broken is no one's choice here
            continue
        uses = [use for use in start.plugins if use.name == name]
        if any(option.required for option in options) or len(uses) > 1 or not _fits(plugin, device, toolchain):
            continue
        given = dict(uses[0].options) if uses else {}
        usual = {option.name: option.default for option in options}
        label = _NO_PART_OF_A_NAME.sub("-", name)
        yield _PLUGINS, _of_plugin(label, plugin, given)
        for switch in switches_of(plugin.options):
            is_on = bool(given.get(switch, usual[switch]))
            change = _of_plugin(f"{label}.{'no-' if is_on else ''}{switch}", plugin, {**given, switch: not is_on})
            yield _SWITCHED, replace(change, purpose=f"{change.purpose}; {switch} = {str(not is_on).lower()}")


def _of_plugin(name: str, plugin: Plugin[object], options: dict[str, object]) -> Change:
    config = CompileConfig(plugins=uses_of([(plugin.name, options)]))
    return Change(name=name, parts=(), purpose=plugin.description, config=config)


def _fits(limited: FlagSet | Plugin[object], device: Device, toolchain: str) -> bool:
    return (not limited.backends or device.backend in limited.backends) and covers(limited.toolchains, toolchain)


# ------------------------------------------------------------------------------------------------ what goes together


class _Rules:
    """What can go together on a device, with a start."""

    def __init__(self, start: CompileConfig, device: Device) -> None:
        self._start = start
        self._device = device
        self._applied: dict[str, Applied] = {}

    def together(self, *changes: Change) -> CompileConfig | None:
        """The start with some changes; None where that cannot be, or would do nothing."""
        try:
            config = _joined(self._start, changes)
            if config is None:
                return None
            flags = merge_flags(self._device.compile_flags, config.flags)
            arrange([self._plugin(use) for use in config.plugins], flags, "plugins")
        except SuiteError:
            return None
        does_nothing = any(not self._plugin(use).steps for change in changes for use in change.config.plugins)
        return None if does_nothing or find_trap(flags) else config

    def identity(self, config: CompileConfig) -> str:
        """Equal for two ways that mean the same."""
        return json.dumps(
            [
                normalised(merge_flags(self._device.compile_flags, config.flags)),
                normalised(config.run_flags),
                [[use.name, self._plugin(use).options] for use in config.plugins],
            ],
            sort_keys=True,
        )

    def _plugin(self, use: Use) -> Applied:
        """A plugin with options, which costs a look at all of its sources."""
        key = json.dumps([use.name, dict(use.options)], sort_keys=True)
        if key not in self._applied:
            self._applied[key] = apply_plugin(use.name, use.options)
        return self._applied[key]


def _joined(start: CompileConfig, changes: Sequence[Change]) -> CompileConfig | None:
    """The start with some changes; None where two of them give a flag different values or a plugin other options."""
    configs = [change.config for change in sorted(changes, key=lambda change: change.name)]
    for one, other in combinations(configs, 2):
        both = ((one.flags, other.flags), (one.run_flags, other.run_flags))
        if any(normalised(merge_flags(a, b)) != normalised(merge_flags(b, a)) for a, b in both):
            return None
        if {use.name for use in one.plugins} & {use.name for use in other.plugins}:
            return None
    return CompileConfig(
        flags=merge_flags(start.flags, *(config.flags for config in configs)),
        run_flags=merge_flags(start.run_flags, *(config.run_flags for config in configs)),
        plugins=_with_plugins(start.plugins, [use for config in configs for use in config.plugins]),
    )


def _with_plugins(start: Sequence[Use], added: Sequence[Use]) -> tuple[Use, ...]:
    """A start's plugins in their order, with others at their places; one that is there already gets the new options."""
    chain = list(start)
    for use in sorted(added, key=_place_of):
        at = next((number for number, other in enumerate(chain) if other.name == use.name), None)
        if at is not None:
            chain[at] = use
            continue
        after = (number for number, other in enumerate(chain) if _place_of(other) > _place_of(use))
        chain.insert(next(after, len(chain)), use)
    return tuple(chain)


def _place_of(use: Use) -> tuple[float, int]:
    """Where a plugin stands in a chain: by its first step's place in the compiler, then by what it makes for others."""
    plugin = PLUGINS.find(use.name)
    options = check_options(plugin.options, use.options, where="plugins", owner=use.name, noun="option")
    places = (place for step in plugin.steps(options) if (place := place_of(step)) is not None)
    first = next(places, None)
    return math.inf if first is None else first[0], _order_of(use.name)


def _order_of(name: str) -> int:
    order = (*_FIRST, "", *_LAST)
    return order.index(name) if name in order else len(_FIRST)


Set = frozenset[str]

# Deviation of a told log ratio, and of the effect of a change about which nothing is known.
_NOISE = 0.012
_EFFECT = 0.2
# Deviation of an interaction: this, and a share of the smaller of the two effects.
_INTERACTION = 0.015
_OVERLAP = 0.5
# What a change has to gain to be worth having.
PRICE = 0.01
# Expected improvement below which nothing is asked for.
_WORTH = 0.0002
# Chance that two changes fail together, where neither this nor the opposite was seen.
_BROKEN = 0.02
# How many of the best known sets the next one may lie close to.
_CENTRES = 3


class Sampler:
    """Asks for sets of changes, most promising first, and never for the same one twice.

    What it asks for depends on nothing but the calls before, so a search that was killed can be played back.
    """

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        self._groups = [tuple(group) for group in groups]
        self._names = [name for group in self._groups for name in group]
        self._index = {name: index for index, name in enumerate(self._names)}
        pairs = [
            (self._index[name], self._index[other])
            for first, second in combinations(self._groups, 2)
            for name in first
            for other in second
        ]
        self._pairs = np.array(pairs, dtype=int).reshape(-1, 2)
        self._told: dict[Set, list[float]] = {frozenset(): [0.0]}
        self._failed: set[Set] = set()
        self._asked: set[Set] = set()

    def tell(self, changes: Iterable[str], log_ratio: float | None) -> None:
        """Take in what a set came to, whether or not it was asked for."""
        chosen = frozenset(changes)
        if log_ratio is None:
            self._failed.add(chosen)
        else:
            self._told.setdefault(chosen, []).append(log_ratio)

    def ask(self) -> Set | None:
        """The set to try next, of two changes or more; None: no other is expected to be worth its time."""
        mean, spread = self._fit()
        seen = sorted(self._told, key=lambda told: (float(np.dot(self._row(told), mean)), len(told), sorted(told)))
        best = float(np.dot(self._row(seen[0]), mean))
        centres = [*seen[:_CENTRES], self._climb(seen[0], mean)]
        one_step = {step for centre in centres for step in (centre, *self._steps(centre))}
        candidates = one_step.union(*map(self._steps, one_step))
        candidates -= self._told.keys() | self._asked
        possible = (each for each in candidates if len(each) > 1 and not any(failed <= each for failed in self._failed))
        fresh = sorted(possible, key=lambda chosen: (len(chosen), sorted(chosen)))
        if not fresh:
            return None
        rows = np.array([self._row(each) for each in fresh])
        expected = rows @ mean
        deviation = np.sqrt(np.maximum(((rows @ spread) * rows).sum(axis=1), 1e-12))
        fails = self._chances_to_fail()
        works = [
            math.prod(1 - fails.get(frozenset(two), _BROKEN) for two in combinations(sorted(each), 2)) for each in fresh
        ]
        worth = _improvement(best - expected, deviation) * np.array(works)
        chosen = fresh[int(np.argmax(worth))]
        if worth.max() < _WORTH:
            return None
        self._asked.add(chosen)
        return chosen

    def _chances_to_fail(self) -> dict[Set, float]:
        """Of each two changes together: none where they worked in a set, else little, or more where a set failed."""
        worked = {frozenset(two) for told in self._told for two in combinations(told, 2)}
        chances = dict.fromkeys(worked, 0.0)
        for failed in self._failed:
            suspects = {frozenset(two) for two in combinations(failed, 2)} - worked
            for two in suspects:
                chances[two] = max(chances.get(two, _BROKEN), 1 / len(suspects))
        return chances

    def _steps(self, chosen: Set) -> list[Set]:
        found = []
        for group in self._groups:
            without = chosen.difference(group)
            found += [step for step in (without, *(without | {name} for name in group)) if step != chosen]
        return found

    def _climb(self, chosen: Set, mean: FloatArray) -> Set:
        """What the model thinks best, from a set on in single steps."""
        value = float(np.dot(self._row(chosen), mean))
        while True:
            steps = [step for step in self._steps(chosen) if not any(failed <= step for failed in self._failed)]
            values = [float(np.dot(self._row(step), mean)) for step in steps]
            if not values or min(values) >= value - 1e-9:
                return chosen
            value = min(values)
            chosen = steps[values.index(value)]

    def _row(self, chosen: Set) -> FloatArray:
        alone = np.zeros(len(self._names))
        alone[[self._index[name] for name in chosen]] = 1
        return np.concatenate([alone, alone[self._pairs[:, 0]] * alone[self._pairs[:, 1]]])

    def _fit(self) -> tuple[FloatArray, FloatArray]:
        """Mean, with the price of each change, and covariance of the effects and interactions."""
        rows = np.array([self._row(told) for told, values in self._told.items() for _ in values])
        values = np.array([value for several in self._told.values() for value in several])
        size = len(self._names)
        effects = np.array([np.mean(self._told.get(frozenset({name}), [0.0])) for name in self._names])
        smaller = np.abs(effects[self._pairs]).min(axis=1)
        prior = np.concatenate([np.full(size, _EFFECT), _INTERACTION + _OVERLAP * smaller]) ** 2
        gain = (rows * prior).T @ np.linalg.inv((rows * prior) @ rows.T + _NOISE**2 * np.eye(len(rows)))
        covariance: FloatArray = np.diag(prior) - gain @ (rows * prior)
        mean: FloatArray = gain @ values
        mean[:size] += PRICE
        return mean, covariance


def _improvement(gain: FloatArray, deviation: FloatArray) -> FloatArray:
    """Expected improvement where the improvement is normal."""
    from scipy.special import ndtr  # scipy.stats takes a second to import

    score = gain / deviation
    density = np.exp(-(score**2) / 2) / math.sqrt(2 * math.pi)
    improvement: FloatArray = gain * ndtr(score) + deviation * density
    return improvement
