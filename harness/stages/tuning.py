"""The line of `harness tune`: a model, a device and a variant -> changes -> dispatches -> what is confirmed -> files.

    start -> each change alone -> combinations -> the best form -> its dispatches, tuned -> the whole, confirmed

Read `tune_model` from top to bottom.
"""

import json
import math
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import tomli_w

from harness.bisect.variants import CompileConfig, Use, uses_of
from harness.errors import CaseError, Interrupted
from harness.explain.profile import ProfiledTurns
from harness.files import file_sha256
from harness.machine.environment import describe_machine
from harness.metrics import LATENCY
from harness.progress import Progress
from harness.records.bisection import Trial
from harness.records.tuning import Answer, TunedDispatch, Tuning
from harness.report import render
from harness.report.repro import repro_lines
from harness.stages.derived_suites import config_of
from harness.stages.options import TuneOptions
from harness.stages.prepare import find_named
from harness.stages.session import begun_now
from harness.stages.tune_session import RULE, START, Form, TuneSession, TuneTarget, Untimed, digest
from harness.stages.tuning_changes import ChangeSearch
from harness.stages.tuning_lowering import LoweringSearch, Winner
from harness.stats.rule import Rule
from harness.store.work_directory import SPEC_FILE, VARIANT_FILE, TuneDirectory
from harness.suite.load import load_suite
from harness.suite.model_files import read_suite_table
from harness.text import plural
from harness.toolchain import toolchain_named
from harness.toolchain.host_cpu import environment_here
from harness.tune.changes import Change, combine, is_unwanted
from harness.tune.tiles import spec_of

SPEC_PLUGIN = "tuning-spec"
# Forms with a spec have this name; that of a change would be taken for it, so not `tuned`, which is a plugin's.
WITH_SPEC = "with-spec"
# Profiles of both sides, by which a dispatch that does not help the whole is dropped.
_PROFILES = 3
_HELPS = 0.99
# Of what is left of the budget, what one confirmation may look for, and the least.
_SHARE_OF_CONFIRMATION, _LEAST_CONFIRMATION_S = 0.4, 20.0
# By the end of this share of the budget all dispatches are tuned; the rest is for confirmations.
_LOWERED = 0.85
_BESIDE = "It did not wait for other harnesses on this machine (--no-wait), which may have disturbed it"
# Of a model's table and a device's, what changes nothing that is compiled or timed.
_OF_READERS = ("description", "tags", "expect")
# Options that may change from one stretch of a search to the next.
_OF_STRETCH = ("budget", "wait", "quiet", "verbose", "report", "models", "out")
_ISOLATE = Change(
    name="isolate",
    parts=("plugin isolate", "isolate: depthwise = true"),
    purpose="convolutions in dispatches of their own, where tuning specs reach them",
    config=CompileConfig(plugins=uses_of([("isolate", {"depthwise": True})])),
)
# Pictures of what a search found, by file name.
Draw = Callable[[Tuning], dict[str, bytes]]


class NoStart(CaseError):
    """The variant that a search begins with cannot be measured."""


def tune(options: TuneOptions, command: Sequence[str], progress: Progress, draw: Draw) -> Iterator[Tuning | NoStart]:
    """Search for each of the models that are asked for; what each came to, as it ends."""
    assert options.suite is not None  # noqa: S101 (the command made sure)
    path, suite = options.suite, load_suite(options.suite)
    device = find_named(path, "device", options.device or suite.devices[0].name, suite.devices)
    start = find_named(path, "variant", options.start or suite.baseline, suite.variants)
    models = [find_named(path, "model", name, suite.models) for name in options.models] or suite.models
    toolchain, config = toolchain_named(options.toolchain, progress.note), config_of(start)
    for model in models:
        target = TuneTarget(
            suite=suite, model=model.name, device=device, start=start.name, config=config, toolchain=toolchain
        )
        try:
            yield _tuned(options, target, command, progress, draw)
        except NoStart as error:
            yield error


def _tuned(options: TuneOptions, target: TuneTarget, command: Sequence[str], progress: Progress, draw: Draw) -> Tuning:
    """The search for one model, begun, gone on with, or known already."""
    path, begun = options.out / target.name, begun_now(options, command)
    asked = {name: value for name, value in begun.options.items() if name not in _OF_STRETCH}
    asked |= {"toolchain": target.toolchain.version, "device": target.device.name, "start": target.start}
    directory = TuneDirectory.open(path, replace(begun, options={**asked, **_what_is_played_back(target)}))
    with directory:
        try:
            found = tune_model(TuneSession(options, target, directory, progress))
        except (KeyboardInterrupt, Interrupted):
            raise Interrupted(f"interrupted; {shlex.join(command)} goes on with {path}") from None
        directory.write_or_remove(VARIANT_FILE, _variant_file(found))
        directory.write_or_remove(SPEC_FILE, found.spec)
        for name, content in draw(found).items():
            directory.write(name, content)
        directory.finish(render(found, "json"), render(found, "markdown", full=True))
    return found


def _what_is_played_back(target: TuneTarget) -> dict[str, str]:
    """What decides how fast a module runs: the model's file and its table in the suite, and the device's."""
    model = next(model for model in target.suite.models if model.name == target.model)
    file = model.mlir or model.onnx  # of a builder's, the parameters are in the suite
    found = {"model file": file_sha256(file) if file is not None and file.is_file() else ""}
    content = read_suite_table(target.suite.path)[0].model_dump(mode="json", exclude_defaults=True, by_alias=True)
    for kind, name in (("models", target.model), ("devices", target.device.name)):
        table = {key: value for key, value in content[kind][name].items() if key not in _OF_READERS}
        found[f"[{kind}.{name}]"] = digest([json.dumps(table, sort_keys=True)])
    return found


def tune_model(session: TuneSession) -> Tuning:
    """The line itself, for one model."""
    options, target = session.options, session.target
    start = session.compile("start", {})[START]
    if isinstance(start, Untimed):
        remedy = "where that cannot be mended, choose another --variant or --device"
        raise NoStart("tune", f"{target.case(target.start)} cannot be measured ({start.reason}); {remedy}")
    session.case = start.place.case
    changes = ChangeSearch(session, start)
    changes.search()
    form, until_s = changes.best, _LOWERED * options.budget
    if options.lowering and session.spent_s < until_s and not is_unwanted(_ISOLATE, options.without):
        form = _isolated(session, changes)
    lowering = LoweringSearch(session, form, until_s)
    if options.lowering:
        lowering.search()
    else:
        lowering.note = "lowering configurations were left out (--no-lowering)"
    floor = options.floor or target.suite.floors.get(LATENCY.name, LATENCY.floor)
    answer = AnswerSearch(session, start, changes, Rule(floor=floor))
    answer.search(form, lowering)
    return _concluded(session, changes, lowering, answer)


def _isolated(session: TuneSession, found: ChangeSearch) -> Form:
    """The form whose dispatches are tuned: the best whose convolutions tuning specs can be made to reach, if one is."""
    for number, form in enumerate((found.best, *found.near), start=1):
        config = combine(form.config, [_ISOLATE])
        isolated = session.compile_one(f"isolated-{number}", config) if config is not None else None
        if isinstance(isolated, Form) and isolated.code != form.code:
            return replace(isolated, changes=(*form.changes, _ISOLATE), log_ratio=form.log_ratio)
    return found.best


# --- what is confirmed ---


class AnswerSearch:
    """From the best form and its dispatches' winners to a confirmed variant, or to none."""

    def __init__(self, session: TuneSession, start: Form, found: ChangeSearch, rule: Rule) -> None:
        self._session, self._start, self._found, self._rule = session, start, found, rule
        self.form: Form | None = None  # What was confirmed faster
        self.spec = ""  # Of the form, where it has one
        self.dispatches: dict[str, TunedDispatch] = {}  # Those that were looked at, by name
        self.confirmations: list[Trial] = []

    def search(self, form: Form, lowering: LoweringSearch) -> None:
        """Try the form with its winners, then without, then the best single change."""
        self.dispatches = {each.name: each for each in lowering.dispatches}
        tuned = self._with_winners(form, lowering.winners) if lowering.winners else None
        final = self._faster(tuned, self._found.best) if tuned is not None else self._found.best
        others = (final, self._found.best, self._found.best_single)
        candidates = {each.name: each for each in others if each is not None and each.name != START}
        self.form = next((each for each in candidates.values() if self._is_confirmed(each)), None)
        if tuned is not None and self.form is tuned:
            self.spec = str(tuned.config.plugins[-1].options["spec"])
            return
        for each in self.dispatches.values():
            self._drop(each.name, each.reason or "the whole program with it was not confirmed faster")

    def _drop(self, dispatch: str, reason: str) -> None:
        self.dispatches[dispatch] = replace(self.dispatches[dispatch], kept=False, reason=reason)

    # --- the whole with its winners ---

    def _with_winners(self, form: Form, winners: Mapping[str, Winner]) -> Form | None:
        """The form with a spec of the winners that help; of each is put down what it is worth there."""
        self._session.progress.stage(f"{self._session.target.model} with tuned dispatches", 1)
        first: dict[tuple[str, ...], Winner] = {}
        for name, winner in winners.items():  # a spec has one configuration for equal operations
            shared = first.setdefault((winner.root.matcher, *winner.root.operands), winner)
            self.dispatches[name] = replace(self.dispatches[name], chosen=shared.configuration.text, kept=True)
        tuned = self._compiled(WITH_SPEC, form, winners)
        if isinstance(tuned, Untimed):
            for name in winners:
                self._drop(name, f"in the whole program: {tuned.reason}")
            return None
        ratios, helping = self._ratios_in_whole(form, tuned), dict(winners)
        for name, winner in winners.items():
            times = [ratios[place] for place in winner.dispatch.places if place in ratios]
            before, after = (math.fsum(each[side] for each in times) for side in (0, 1))
            if before > 0 and after > 0:
                self.dispatches[name] = replace(self.dispatches[name], whole=after / before)
                if after / before >= _HELPS:
                    self._drop(name, "it does not help the whole")
                    del helping[name]
        if not helping:
            return None
        again = self._compiled(f"{WITH_SPEC}-kept", form, helping) if len(helping) < len(winners) else tuned
        return tuned if isinstance(again, Untimed) else again

    def _compiled(self, name: str, form: Form, winners: Mapping[str, Winner]) -> Form | Untimed:
        """The form with a spec, as its last plugin."""
        spec = spec_of([(winner.root, winner.configuration) for winner in winners.values()])
        plugins = (*form.config.plugins, Use(name=SPEC_PLUGIN, options={"spec": spec}))
        found = self._session.compile_one(name, replace(form.config, plugins=plugins))
        if isinstance(found, Untimed):
            return found
        if found.code == form.code:
            return Untimed(reason="its tuning spec changes nothing there")
        return replace(found, changes=form.changes, log_ratio=form.log_ratio)

    def _ratios_in_whole(self, form: Form, tuned: Form) -> dict[str, list[float]]:
        """By dispatch, nanoseconds of a call without the spec and with it; {} where the device has no profile."""
        session = self._session
        folder = session.directory.path / "dispatches" / "whole" / tuned.name

        def profiled() -> dict[str, list[float]]:
            shutil.rmtree(folder, ignore_errors=True)  # what a search that was killed has left
            turns = ProfiledTurns(form.module, tuned.module, folder, session.limits)
            try:
                with session.alone():
                    pairs = [turns(number) for number in range(_PROFILES)]
            except CaseError:
                return {}
            names = [name for name in pairs[0][0].dispatch_ns if all(name in each[1].dispatch_ns for each in pairs)]
            return {
                name: [float(np.median([each[side].dispatch_ns[name] for each in pairs])) for side in (0, 1)]
                for name in names
            }

        key = f"parts/{tuned.name}/{digest([form.code, tuned.code])}"
        return session.once("confirm", key, dict[str, list[float]], profiled)

    # --- confirmations ---

    def _faster(self, tuned: Form, best: Form) -> Form:
        """One of two, by a race beside the second."""
        session = self._session
        seconds = max(_LEAST_CONFIRMATION_S / 2, session.left_s * (1 - 2 * _SHARE_OF_CONFIRMATION))
        racers = {form.name: form.racer for form in (tuned, best)}
        raced = session.race("whole", racers, best.name, stage="confirm", seconds=seconds, log_ratio=best.log_ratio)
        if (ratio := raced.standings[tuned.name].ratio) is not None:
            session.timed_now(tuned.name, ratio, best=raced.leader == tuned.name)
        return tuned if raced.leader == tuned.name else best

    def _is_confirmed(self, form: Form) -> bool:
        """Whether a form is faster than the start and, while there is time, than another best single change."""
        if not self._confirm(form, self._start, "the start"):
            return False
        single = self._found.best_single
        if single is None or single.name == form.name or self._session.left_s <= 0:
            return True
        return self._confirm(form, single, "the best single change")

    def _confirm(self, head: Form, base: Form, role: str) -> bool:
        session = self._session
        budget_s = max(_LEAST_CONFIRMATION_S, _SHARE_OF_CONFIRMATION * session.left_s)
        session.progress.stage(f"{session.target.model}: is {head.name} faster than {base.name}?", 1)
        found = session.confirm(head, base, self._rule, budget_s)
        named = base.name if base.name != START else session.target.start
        self.confirmations.append(replace(found, base=f"{role} ({named})"))
        if base.name == START and found.ratio is not None:
            is_best = all(found.ratio < moment.ratio for moment in session.moments)
            session.timed_now(head.name, found.ratio, best=is_best)
        return found.verdict == "improved"


# --- what there is at the end ---


def _concluded(session: TuneSession, found: ChangeSearch, lowering: LoweringSearch, answered: AnswerSearch) -> Tuning:
    target, form, begun = session.target, answered.form, session.directory.begun
    config, by_hand = CompileConfig(), tuple[str, ...]()
    if form is not None:  # with the command lines that compile it with plain tools
        config, place = form.config, form.place
        by_hand = repro_lines(place.case, place.side.run.header.suite, form.module.build, None, None)
    seconds = session.stages.get("dispatches", 0.0)
    raced = bool(session.moments or lowering.candidates)
    is_open = form is None and (found.untried_levels or (session.left_s <= 0 and not raced))
    answer: Answer = "budget too small" if is_open else "nothing beats the start" if form is None else "faster"
    return Tuning(
        id=session.directory.path.name,
        created=begun.created,
        suite=target.suite.path.as_posix(),
        model=target.model,
        device=target.device.name,
        start=target.start,
        toolchain=target.toolchain.version,
        budget_s=session.options.budget,
        spent_s=round(session.spent_s, 1),
        answer=answer,
        sentence=_sentence(session, answer, found, answered),
        start_ns=session.start_ns or None,
        stages={name: round(spent, 1) for name, spent in session.stages.items()},
        singles=tuple(found.singles.values()),
        combinations=tuple(found.combinations),
        dispatches=tuple(answered.dispatches.values()),
        covered=lowering.covered,
        confirmations=tuple(answered.confirmations),
        variant="" if form is None else f"tuned-{target.model}",
        parts=() if form is None else form.parts,
        flags=config.flags,
        run_flags=config.run_flags,
        plugins=tuple((use.name, dict(use.options)) for use in config.plugins),
        spec=answered.spec,
        by_hand=by_hand,
        race_error=RULE.error,
        candidates_a_minute=60.0 * lowering.candidates / seconds if lowering.candidates and seconds else None,
        moments=tuple(session.moments),
        machine=describe_machine(environment_here()),
        notes=(*target.toolchain.remarks, *filter(None, (lowering.note, "" if session.options.wait else _BESIDE))),
        settings={**begun.options, "out": session.options.out.as_posix()},
        command=begun.command,
    )


def _sentence(session: TuneSession, answer: Answer, found: ChangeSearch, answered: AnswerSearch) -> str:
    target, options = session.target, session.options
    case, total = target.name, len(found.singles)
    tried = sum(each.standing != "untried" for each in found.singles.values())
    times = total / max(tried, 1) if tried < total else 2  # single changes have a share of the budget
    give = f"; give it {math.ceil(times * options.budget / 60)}m"
    left = f"; {tried} of {plural(total, 'change')} tried{give}" if tried < total else ""
    if answer == "budget too small":
        before = ", ".join(found.untried_levels) or "one candidate"
        return f"{case}: the budget of {options.budget:g} s ended before timing {before}{left or give}"
    if answered.form is None:
        seems = [each for each in answered.confirmations if each.verdict == "inconclusive" and (each.ratio or 1) < 1]
        if seems:
            left = f", though {seems[0].head} may take {seems[0].ratio:.3f} of its time{left or give}"
        return f"{case}: nothing that was tried is confirmed faster than {target.start}{left}"
    beside_start = next(each for each in answered.confirmations if each.head == answered.form.name)
    kept = sum(each.kept for each in answered.dispatches.values())
    tuned = f", {plural(kept, 'tuned dispatch', 'tuned dispatches')}" if kept else ""
    parts = ", ".join(answered.form.parts) or "no other flags"
    return (
        f"{case} takes {beside_start.ratio:.3f} [{beside_start.ci_low:.3f}, {beside_start.ci_high:.3f}] of the time of "
        f"{target.start} with {parts}{tuned}{left}"
    )


def _variant_file(found: Tuning) -> str:
    """A file of variants that any suite takes in with `variant_files`; "" where nothing is faster."""
    if not found.variant:
        return ""
    config = CompileConfig(flags=found.flags, run_flags=found.run_flags, plugins=uses_of(found.plugins))
    table = {"description": found.sentence, **config.table()}
    return tomli_w.dumps({"variants": {found.variant: table}}, multiline_strings=True)
