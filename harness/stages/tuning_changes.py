"""Flags and plugins, each alone and then together -> the best form of the whole program.

Each change is compiled alone first, the compiler's own levels before all else: what gives bytes that are known already
is inert and leaves the search for nothing; what does not compile, or computes something else, leaves it with its
reason. The rest race beside the start. Then the best of them is tried with each of the next best, and a sampler, which
knows all of this, proposes combinations of what is left, a few at a time, which race beside the best so far.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from harness.records.tuning import Standing, Tried, same_bytes
from harness.stages.tune_session import START, Form, Raced, TuneSession, Untimed, digest
from harness.tune.changes import Change, Sampler, changes_for, combine, groups

# Shares of the budget by whose end a step has to be over; the rest is for dispatches and confirmations.
_COMPILED_ALONE, _RACED_ALONE, _COMBINED = 0.25, 0.31, 0.4
_COMBINED_WITHOUT_LOWERING = 0.75
# Of the budget, by whose end the levels are begun; and what the compile of one candidate may take, at least twice what
# the start's takes.
_LEVELS_BEGUN, _TAKEN_BY_ONE = 0.5, 0.05
# Of the budget, what a race may take where the ones before it took too much.
_LEAST_RACED = 0.03
_OVER = "the time for single changes was over"
# Compiled together, so that both a single core and many are kept busy between races.
_BATCH = 8
_ASKED_TOGETHER = 4
# Of the best single change and another one: what two changes do together is mostly less than what they do alone.
_PAIRS = 6
# What a change does alone is told to the sampler, so it has to be known, also where another one does far more.
_LEAST_GENERATIONS = 3
# What is so much slower alone than the start is not combined with others.
_WORTH_COMBINING = 1.3
# How much slower than the best a form may be that tuning may still make faster, and how many of them are kept.
_NEAR, _MOST_NEAR = math.log(1.3), 4
# Batches of combinations without a better one, after which there is no more to gain.
_MOST_IN_VAIN = 3
_LONGEST_NAME = 60
_CONTRADICTION = Untimed(reason="its changes contradict each other")


class ChangeSearch:
    """The search for the best form, and what it came to."""

    def __init__(self, session: TuneSession, start: Form) -> None:
        self._session, self._start, self._budget_s = session, start, session.options.budget
        self.best = start
        self.best_single: Form | None = None  # Of those with one change, where it is better than the start
        self.singles: dict[str, Tried] = {}  # What became of each change alone, by name
        self.combinations: list[Tried] = []  # What became of several together, in order
        self.untried_levels: list[str] = []  # The compiler's own levels that there was no time for
        self._by_code: dict[str, Form] = {start.code: start}
        self._forms: dict[str, Form] = {}  # Of single changes, those that are worth racing
        start_s = 2e-9 * (start.module.build.compile_ns or 0)
        self._limit_s = max(_TAKEN_BY_ONE * self._budget_s, start_s)

    def search(self) -> None:
        """Find the best form within the shares of the budget."""
        session, target = self._session, self._session.target
        changes = changes_for(
            target.suite, target.config, target.device, target.toolchain.version, without=session.options.without
        )
        levels = [change for change in changes if change.is_level]
        self._compile_alone(levels, "levels", _LEVELS_BEGUN)
        self._race_alone("optimisation levels")
        self._compile_alone([change for change in changes if not change.is_level], "alone", _COMPILED_ALONE)
        self._race_alone("changes alone")
        alone = {name: math.log(ratio) for name in self._forms if (ratio := self.singles[name].ratio)}
        better = [replace(self._forms[name], log_ratio=log) for name, log in alone.items() if log < 0]
        self.best_single = min(better, key=lambda form: form.log_ratio, default=None)
        self._combine([self._forms[name].changes[0] for name in alone], alone)
        self.untried_levels = [each.name for each in levels if self.singles[each.name].standing == "untried"]

    @property
    def near(self) -> list[Form]:
        """Others that are nearly as fast as the best, the fastest first."""
        known = [form for form in self._by_code.values() if form is not self.best and form is not self._start]
        close = [form for form in known if form.log_ratio and form.log_ratio - self.best.log_ratio < _NEAR]
        return sorted(close, key=lambda form: form.price)[:_MOST_NEAR]

    # --- alone ---

    def _compile_alone(self, changes: Sequence[Change], name: str, until: float) -> None:
        """Compile changes, and tell those apart that are worth racing."""
        for first in range(0, len(changes), _BATCH):
            batch, found = changes[first : first + _BATCH], dict[str, Form | Untimed]()
            if self._session.spent_s < until * self._budget_s:
                found = self._compiled(f"{name}-{first}", [(change,) for change in batch])
            for change in batch:
                form, self.singles[change.name] = self._sorted((change,), found.get(_name_of((change,))))
                if form is not None:
                    self._forms[change.name] = form

    def _race_alone(self, name: str) -> None:
        forms = {each: form for each, form in self._forms.items() if self.singles[each].ratio is None}
        if forms or not self._session.start_ns:
            raced = self._raced(name, forms.values(), self._start, until=_RACED_ALONE)
            self.singles |= {each: of_race(self.singles[each], raced) for each in forms}

    def _compiled(self, batch: str, sets: Sequence[tuple[Change, ...]]) -> dict[str, Form | Untimed]:
        """What a batch of sets of changes came to, by their names."""
        configs = {_name_of(changes): combine(self._start.config, changes) for changes in sets}
        found = dict[str, Form | Untimed].fromkeys(configs, _CONTRADICTION)
        wanted = {name: config for name, config in configs.items() if config is not None}
        return found | self._session.compile(batch, wanted, self._limit_s)

    def _sorted(self, changes: tuple[Change, ...], compiled: Form | Untimed | None) -> tuple[Form | None, Tried]:
        """A form to race, or None; and what is known of it before that."""
        parts = tuple(part for change in changes for part in change.parts)
        purpose = changes[0].purpose if len(changes) == 1 else ""
        tried = Tried(name=_name_of(changes), parts=parts, purpose=purpose, standing="lost")
        if compiled is None:
            return None, replace(tried, standing="untried", reason=_OVER)
        if isinstance(compiled, Untimed):
            standing: Standing = "untried" if compiled.late else "wrong" if compiled.wrong else "failed"
            return None, replace(tried, standing=standing, reason=compiled.reason)
        twin = self._by_code.get(compiled.code)
        if twin is not None:
            return None, replace(tried, standing="inert", reason=same_bytes(twin.name))
        form = self._by_code[compiled.code] = replace(compiled, changes=changes)
        return form, tried

    # --- together ---

    def _combine(self, changes: Sequence[Change], alone: Mapping[str, float]) -> None:
        worth = [change for change in changes if alone[change.name] < math.log(_WORTH_COMBINING)]
        by_name = {change.name: change for change in worth}
        sampler = Sampler([[change.name for change in group] for group in groups(worth)])
        for change in worth:
            sampler.tell([change.name], alone[change.name])
            for other in change.excludes & by_name.keys():
                sampler.tell([change.name, other], None)
        until = _COMBINED if self._session.options.lowering else _COMBINED_WITHOUT_LOWERING
        asked = _pairs_with_best(worth, alone)
        in_vain = number = 0
        while self._session.spent_s < until * self._budget_s and in_vain < _MOST_IN_VAIN:
            asked = asked or [names for _ in range(_ASKED_TOGETHER) if (names := sampler.ask()) is not None]
            if not asked:
                break
            number += 1
            before = self.best
            sets = [tuple(by_name[name] for name in sorted(names)) for names in dict.fromkeys(asked)]
            for set_, log in self._together(number, sets).items():
                sampler.tell([change.name for change in set_], log)
            in_vain = 0 if self.best is not before else in_vain + 1
            asked = []

    def _together(self, number: int, sets: Sequence[tuple[Change, ...]]) -> dict[tuple[Change, ...], float | None]:
        """Try a batch of combinations: log(its time / the start's) of each that has one."""
        found = self._compiled(f"together-{number}", sets)
        forms: dict[str, Form] = {}
        tried: dict[str, Tried] = {}
        for changes in sets:
            name = _name_of(changes)
            form, tried[name] = self._sorted(changes, found[name])
            if form is not None:
                forms[name] = form
        if forms:
            raced = self._raced(f"combinations {number}", forms.values(), self.best, until=1.0)
            tried |= {name: of_race(tried[name], raced) for name in forms}
        self.combinations += tried.values()
        logs: dict[tuple[Change, ...], float | None] = {}
        for changes in sets:
            name, logs[changes] = _name_of(changes), None
            compiled = found[name]
            if isinstance(compiled, Form) and (name not in forms or tried[name].ratio is not None):
                logs[changes] = self._by_code[compiled.code].log_ratio
        return logs

    # --- races ---

    def _raced(self, name: str, forms: Iterable[Form], reference: Form, *, until: float) -> Raced:
        """Race forms beside one that is known; the best of all is kept."""
        session, model = self._session, self._session.target.model
        contenders = {form.name: form for form in (reference, *forms)}
        seconds = max(until * self._budget_s - session.spent_s, _LEAST_RACED * self._budget_s)
        session.progress.stage(f"{model}: {name}", len(contenders))
        raced = session.race(
            name,
            {each: form.racer for each, form in contenders.items()},
            reference.name,
            stage="race",
            seconds=seconds,
            log_ratio=reference.log_ratio,
            least=_LEAST_GENERATIONS,
        )
        for form in contenders.values():
            ratio = raced.standings[form.name].ratio
            if form is reference or ratio is None:
                continue
            known = self._by_code[form.code] = replace(form, log_ratio=math.log(ratio))
            is_best = known.price < self.best.price
            if is_best:
                self.best = known
                session.progress.note(f"{model}: {ratio:.3f} of {START} with {', '.join(known.parts)}")
            session.timed_now(form.name, ratio, best=is_best)
        return raced


def _pairs_with_best(changes: Sequence[Change], alone: Mapping[str, float]) -> list[frozenset[str]]:
    """The best of some changes with each of the next best ones; [] where it does not help."""
    ranked = sorted(changes, key=lambda change: alone[change.name])
    if not ranked or alone[ranked[0].name] >= 0:
        return []
    first, *others = ranked
    return [frozenset((first.name, other.name)) for other in others if other.name not in first.excludes][:_PAIRS]


def _name_of(changes: Sequence[Change]) -> str:
    name = "+".join(change.name for change in changes) or START
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 9]}+{digest([name])[:8]}"


def of_race(tried: Tried, raced: Raced) -> Tried:
    """What became of one that raced."""
    name, found = tried.name, raced.standings[tried.name]
    if name in raced.lost:
        return replace(tried, standing="failed", reason=raced.lost[name])
    if found.ratio is None:
        return replace(tried, standing="untried", reason="its race gave no time of it")
    return replace(tried, standing="best" if name == raced.leader else "lost", **vars(found))
