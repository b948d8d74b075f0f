"""The best form with its winners -> dropped where they do not help the whole, confirmed, and the variant of it."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.bisect.variants import Use
from harness.errors import CaseError
from harness.explain.profile import ProfiledTurns
from harness.records.bisection import Trial
from harness.records.tuning import Answer, Moment, TunedDispatch
from harness.stages.tune_underway import START, TuneUnderway, Untimed, digest
from harness.stages.tuning_changes import Form, FoundForms
from harness.stages.tuning_lowering import Lowered, Winner
from harness.stats.rule import Rule
from harness.tune.spec import spec_of

SPEC_PLUGIN = "tuning-spec"
# Forms with a spec have this name; that of a change would be taken for it, so not `tuned`, which is a plugin's.
WITH_SPEC = "with-spec"
# Profiles of both sides, by which a dispatch that does not help the whole is dropped.
_PROFILES = 3
_HELPS = 0.99
# Of what is left of the budget, what one confirmation may look for, and the least.
_SHARE_OF_CONFIRMATION, _LEAST_CONFIRMATION_S = 0.4, 20.0


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What the search came to."""

    answer: Answer
    form: Form | None  # What was confirmed; None: nothing was
    spec: str  # Of the form; "": it has none
    dispatches: tuple[TunedDispatch, ...]
    confirmations: tuple[Trial, ...]


class AnswerSearch:
    """From the best form and its dispatches' winners to a confirmed variant, or to none."""

    def __init__(self, underway: TuneUnderway, start: Form, found: FoundForms, rule: Rule) -> None:
        self._underway, self._start, self._found, self._rule = underway, start, found, rule
        self._confirmations: list[Trial] = []
        self._specs: dict[str, str] = {}

    def answer(self, form: Form, lowered: Lowered) -> Answered:
        """Try the form with its winners, then without, then the best single change."""
        dispatches = {each.name: each for each in lowered.dispatches}
        tuned = self._with_winners(form, lowered.winners, dispatches) if lowered.winners else None
        candidates = [each for each in (tuned, self._found.best) if each is not None and each.name != START]
        final = self._fastest(candidates)
        others = (self._found.best, self._found.best_single)
        for each in {form.name: form for form in (final, *others) if form is not None and form.name != START}.values():
            if self._is_confirmed(each):
                kept = tuned is not None and each.name == tuned.name
                return self._answered("faster", each, dispatches, kept=kept)
        return self._answered("nothing beats the start", None, dispatches, kept=False)

    def _answered(
        self, answer: Answer, form: Form | None, dispatches: Mapping[str, TunedDispatch], *, kept: bool
    ) -> Answered:
        listed = list(dispatches.values())
        if not kept:
            reason = "the whole program with it was not confirmed faster"
            listed = [replace(each, kept=False, reason=each.reason or reason) for each in listed]
        return Answered(
            answer=answer,
            form=form,
            spec=self._specs.get(form.name, "") if form is not None else "",
            dispatches=tuple(listed),
            confirmations=tuple(self._confirmations),
        )

    # --- the whole with its winners ---

    def _with_winners(
        self, form: Form, winners: Mapping[str, Winner], dispatches: dict[str, TunedDispatch]
    ) -> Form | None:
        """The form with a spec of the winners that help; `dispatches` learn what each is worth in the whole."""
        self._underway.progress.stage(f"{self._underway.sought.model} with tuned dispatches", 1)
        first: dict[tuple[str, ...], Winner] = {}
        for name, winner in winners.items():  # a spec has one configuration for equal operations
            shared = first.setdefault((winner.root.matcher, *winner.root.operands), winner)
            dispatches[name] = replace(dispatches[name], chosen=shared.configuration.text)
        tuned = self._compiled(WITH_SPEC, form, winners)
        if isinstance(tuned, Untimed):
            winners = self._without_culprits(form, winners, dispatches)
            tuned = self._compiled(f"{WITH_SPEC}-rest", form, winners) if winners else tuned
        if isinstance(tuned, Untimed):
            for name in winners:
                dispatches[name] = replace(dispatches[name], reason=f"together with others: {tuned.reason}")
            return None
        ratios = self._ratios_in_whole(form, tuned)
        helping = {}
        for name, winner in winners.items():
            places = winner.dispatch.places
            before = math.fsum(ratios[place][0] for place in places if place in ratios)
            after = math.fsum(ratios[place][1] for place in places if place in ratios)
            whole = after / before if before > 0 and after > 0 else None
            kept = whole is None or whole < _HELPS
            reason = "" if kept else "it does not help the whole"
            dispatches[name] = replace(dispatches[name], whole=whole, kept=kept, reason=reason)
            if kept:
                helping[name] = winner
        if not helping:
            return None
        if len(helping) < len(winners):
            again = self._compiled(f"{WITH_SPEC}-kept", form, helping)
            return tuned if isinstance(again, Untimed) else again
        return tuned

    def _compiled(self, name: str, form: Form, winners: Mapping[str, Winner]) -> Form | Untimed:
        spec = spec_of([(winner.root, winner.configuration) for winner in winners.values()])
        way = form.compiled.way
        way = replace(way, plugins=(*way.plugins, Use(name=SPEC_PLUGIN, options={"spec": spec})))
        found = self._underway.compile(name, {name: way})[name]
        if isinstance(found, Untimed):
            return found
        if found.code == form.compiled.code:
            return Untimed(reason="its tuning spec changes nothing in the whole program", wrong=False)
        self._specs[name] = spec
        return Form(changes=form.changes, compiled=found, log_ratio=form.log_ratio)

    def _without_culprits(
        self, form: Form, winners: Mapping[str, Winner], dispatches: dict[str, TunedDispatch]
    ) -> dict[str, Winner]:
        """The winners that compile and are right in the whole program, each alone."""
        left = {}
        for number, (name, winner) in enumerate(winners.items()):
            found = self._compiled(f"{WITH_SPEC}-of-{number}", form, {name: winner})
            if isinstance(found, Untimed):
                dispatches[name] = replace(dispatches[name], reason=f"in the whole program: {found.reason}")
            else:
                left[name] = winner
        return left

    def _ratios_in_whole(self, form: Form, tuned: Form) -> dict[str, tuple[float, float]]:
        """By dispatch, nanoseconds of a call without the spec and with it; {} where the device has no profile."""
        underway = self._underway
        folder = underway.directory.path / "dispatches" / "whole"

        def profiled() -> dict[str, list[float]]:
            shutil.rmtree(folder / tuned.name, ignore_errors=True)  # what a search that was killed has left
            turns = ProfiledTurns(form.compiled.module, tuned.compiled.module, folder / tuned.name, underway.limits)
            try:
                with underway.alone():
                    pairs = [turns(number) for number in range(_PROFILES)]
            except CaseError:
                return {}
            names = [name for name in pairs[0][0].dispatch_ns if all(name in each[1].dispatch_ns for each in pairs)]
            return {
                name: [float(np.median([each[side].dispatch_ns[name] for each in pairs])) for side in (0, 1)]
                for name in names
            }

        found = underway.remember("confirm", f"parts/{tuned.name}/{digest([form.code, tuned.code])}", profiled)
        return {name: (before, after) for name, (before, after) in found.items()}

    # --- confirmations ---

    def _fastest(self, forms: Sequence[Form]) -> Form | None:
        """By a race beside the start."""
        if len(forms) < 2:
            return forms[0] if forms else None
        underway = self._underway
        seconds = max(_LEAST_CONFIRMATION_S / 2, underway.left_s * (1 - 2 * _SHARE_OF_CONFIRMATION))
        contenders = {form.name: form for form in forms}
        raced = underway.race("whole", contenders, forms[-1].name, stage="confirm", seconds=seconds)
        for form in forms[:-1]:
            standing = raced.standings.get(form.name)
            if standing is not None and standing.ratio is not None:
                ratio = standing.ratio * math.exp(forms[-1].log_ratio)
                moment = Moment(
                    seconds=round(underway.spent_s, 1), name=form.name, ratio=ratio, best=raced.leader == form.name
                )
                underway.moments.append(moment)
        return contenders[raced.leader]

    def _is_confirmed(self, form: Form) -> bool:
        """Whether a form is faster than the start, and than the best single change where it is another one."""
        if not self._confirm(form, self._start, "the start"):
            return False
        single = self._found.best_single
        return single is None or single.name == form.name or self._confirm(form, single, "the best single change")

    def _confirm(self, head: Form, base: Form, role: str) -> bool:
        underway = self._underway
        budget_s = max(_LEAST_CONFIRMATION_S, _SHARE_OF_CONFIRMATION * underway.left_s)
        underway.progress.stage(f"{underway.sought.model}: is {head.name} faster than {base.name}?", 1)
        found = underway.confirm(head.compiled, base.compiled, self._rule, budget_s)
        named = base.name if base.name != START else underway.sought.start
        self._confirmations.append(replace(found, base=f"{role} ({named})"))
        if base.name == START and found.ratio is not None:
            is_best = all(found.ratio < moment.ratio for moment in underway.moments)
            moment = Moment(seconds=round(underway.spent_s, 1), name=head.name, ratio=found.ratio, best=is_best)
            underway.moments.append(moment)
        return found.verdict == "improved"
