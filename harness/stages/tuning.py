"""The line of `harness tune`: a model, a device and a variant -> changes -> dispatches -> what is confirmed -> files.

    start -> each change alone -> combinations -> the best form -> its dispatches, tuned -> the whole, confirmed

Read `tune_model` from top to bottom.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import tomli_w

from harness.bisect.variants import Way, uses_of
from harness.cache import environments_root
from harness.errors import CaseError, Interrupted, RunError
from harness.files import file_sha256
from harness.machine.identity import describe_machine, machine_id
from harness.metrics import LATENCY
from harness.progress import Progress
from harness.records.tuning import Answer, Tuning
from harness.report.markdown import to_markdown
from harness.report.repro import repro_lines
from harness.report.tune_page import markdown_page, tune_json
from harness.stages.bisecting_parts import way_of
from harness.stages.prepare import require_name
from harness.stages.tune_options import TuneOptions
from harness.stages.tune_underway import RULE, START, Compiled, Sought, TuneUnderway, Untimed, digest
from harness.stages.tuning_answer import Answered, AnswerSearch
from harness.stages.tuning_changes import ChangeSearch, Form, FoundForms
from harness.stages.tuning_lowering import WINNER, Lowered, LoweringSearch
from harness.stats.rule import Rule
from harness.store.files import adapter
from harness.store.journal import Begun
from harness.store.search_directory import SPEC_FILE, VARIANT_FILE, TuneDirectory, remembered_in
from harness.suite.load import Suite, load_suite
from harness.suite.schema import SuiteFile
from harness.suite.toml_file import read_toml
from harness.text import plural
from harness.toolchain import Toolchain, find_toolchain, get_toolchains
from harness.toolchain.host_cpu import environment_here
from harness.tune.changes import Change, combine, is_unwanted

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
    way=Way(plugins=uses_of([("isolate", {"depthwise": True})])),
)
# Pictures of what a search found, by file name.
Draw = Callable[[Tuning], dict[str, bytes]]


class NoStart(CaseError):
    """The variant that a search begins with cannot be measured."""


def tune(options: TuneOptions, command: Sequence[str], progress: Progress, draw: Draw) -> Iterator[Tuning | NoStart]:
    """Search for each of the models that are asked for; what each came to, as it ends."""
    assert options.suite is not None  # noqa: S101 (the command made sure)
    suite = load_suite(options.suite).suite
    device = options.device or suite.devices[0].name
    start = options.start or suite.baseline
    models = options.models or tuple(model.name for model in suite.models)
    require_name(options.suite, "device", device, [each.name for each in suite.devices])
    require_name(options.suite, "variant", start, [each.name for each in suite.variants])
    for model in models:
        require_name(options.suite, "model", model, [each.name for each in suite.models])
    toolchain = _toolchain(options, progress)
    variant = next(each for each in suite.variants if each.name == start)
    for model in models:
        sought = Sought(suite=suite, model=model, device=device, start=start, way=way_of(variant), toolchain=toolchain)
        try:
            yield _tuned(options, sought, command, progress, draw)
        except NoStart as error:
            yield error


def _toolchain(options: TuneOptions, progress: Progress) -> Toolchain:
    if options.toolchain is None:
        return find_toolchain()
    (found,) = get_toolchains([options.toolchain], root=environments_root(), on_install=progress.note)
    return found


def _tuned(options: TuneOptions, sought: Sought, command: Sequence[str], progress: Progress, draw: Draw) -> Tuning:
    """The search for one model, begun, gone on with, or known already."""
    path = options.out / f"{sought.model}@{sought.device}"
    environment = environment_here()
    begun = Begun(
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        machine=machine_id(environment),
        options={
            name: value
            for name, value in adapter(TuneOptions).dump_python(options, mode="json").items()
            if name not in _OF_STRETCH
        }
        | {"toolchain": sought.toolchain.version, "device": sought.device, "start": sought.start}
        | {"model file": _sha256_of(sought), **_tables(sought)},  # what is played back is of these
        command=tuple(command),
    )
    directory = TuneDirectory.create(path, begun)
    with TuneUnderway(options, sought, directory, progress) as underway:
        try:
            found = tune_model(underway)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted; {shlex.join(command)} goes on with {path}") from None
        directory.write_or_remove(VARIANT_FILE, _variant_file(found))
        directory.write_or_remove(SPEC_FILE, found.spec)
        directory.finish(tune_json(found), to_markdown(markdown_page(found, str(options.out))), draw(found))
    return found


def _sha256_of(sought: Sought) -> str:
    """Of the model's file; "" of a builder's, whose parameters are in the suite."""
    model = next(model for model in sought.suite.models if model.name == sought.model)
    file = model.mlir or model.onnx
    return file_sha256(file) if file is not None and file.is_file() else ""


def _tables(sought: Sought) -> dict[str, str]:
    """What decides how fast a module runs, by the names of its tables in the suite: the model's inputs, the device."""
    content = read_toml(sought.suite.path, SuiteFile)[0].model_dump(mode="json", exclude_defaults=True)
    found = {}
    for kind, name in (("models", sought.model), ("devices", sought.device)):
        table = {key: value for key, value in content[kind][name].items() if key not in _OF_READERS}
        found[f"[{kind}.{name}]"] = digest([json.dumps(table, sort_keys=True)])
    return found


def tune_model(underway: TuneUnderway) -> Tuning:
    """The line itself, for one model."""
    options, sought = underway.options, underway.sought
    start = underway.compile("start", {})[START]
    if isinstance(start, Untimed):
        case = f"{sought.model}/{sought.start}@{sought.device}"
        remedy = "where that cannot be mended, choose another --variant or --device"
        raise NoStart("tune", f"{case} cannot be measured ({start.reason}); {remedy}")
    underway.begin_with(start)
    search = ChangeSearch(underway, start)
    found = search.search()
    isolates = options.lowering and not is_unwanted(_ISOLATE, options.without)
    form = _isolated(underway, found) if isolates else found.best
    lowered, candidates = Lowered(note="lowering configurations were left out (--no-lowering)"), 0
    if options.lowering:
        known = known_winners(options.out, underway)
        lowering = LoweringSearch(underway, form, known, _LOWERED * options.budget)
        lowered, candidates = lowering.search(), lowering.candidates
    answered = AnswerSearch(underway, search.start, found, Rule(floor=_floor(options, sought.suite))).answer(
        form, lowered
    )
    return _concluded(underway, found, lowered, answered, candidates)


def _isolated(underway: TuneUnderway, found: FoundForms) -> Form:
    """The form whose dispatches are tuned: the best one, changed so that tuning specs reach its convolutions.

    Where its layout comes from flags, specs do not reach them. Then it is a form that is nearly as fast and whose
    convolutions they do reach; where there is none, the best form as it is.
    """
    for number, form in enumerate((found.best, *found.near), start=1):
        name, way = f"isolated-{number}", combine(form.compiled.way, [_ISOLATE])
        isolated = underway.compile(name, {name: way})[name] if way is not None else None
        if not isinstance(isolated, Compiled):
            continue
        if isolated.code != form.compiled.code:
            return Form(changes=(*form.changes, _ISOLATE), compiled=isolated, log_ratio=form.log_ratio)
        if not any(effect.matched or effect.left_alone for effect in isolated.module.build.effects):
            break  # no form of a program without convolutions has any
    return found.best


def known_winners(out: Path, underway: TuneUnderway) -> dict[str, dict[str, Any]]:
    """What searches of other models on this device have found for dispatches, by their keys.

    The key of a dispatch has its code, its target and its flags, so that equal keys run equally fast here, on a device
    that is the same in the suites of both.
    """
    own, begun = underway.directory.path, underway.directory.begun
    device = {name: value for name, value in begun.options.items() if name == f"[devices.{underway.sought.device}]"}
    folders = sorted(each for each in out.glob(f"*@{underway.sought.device}") if each != own)
    found: dict[str, dict[str, Any]] = {}
    for folder in folders:
        try:
            remembered = remembered_in(folder, begun.machine, device)
        except RunError as error:
            underway.progress.note(f"{error}; nothing is taken over from it")
            continue
        for key, value in remembered.items():
            if key.startswith(WINNER) and value["compiler"] == underway.sought.toolchain.compiler_sha256:
                found.setdefault(key.removeprefix(WINNER), value)
    return found


def _floor(options: TuneOptions, suite: Suite) -> float:
    return options.floor if options.floor is not None else suite.floors.get(LATENCY.name, LATENCY.floor)


# --- what there is at the end ---


def _concluded(
    underway: TuneUnderway, found: FoundForms, lowered: Lowered, answered: Answered, candidates: int
) -> Tuning:
    sought, form = underway.sought, answered.form
    way = Way() if form is None else form.compiled.way
    seconds = underway.stages.get("dispatches", 0.0)
    raced = bool(underway.moments or candidates)
    is_open = answered.form is None and (found.untried_levels or (underway.left_s <= 0 and not raced))
    answer: Answer = "budget too small" if is_open else answered.answer
    begun = underway.directory.begun
    return Tuning(
        id=underway.directory.path.name,
        created=begun.created,
        suite=sought.suite.path.as_posix(),
        model=sought.model,
        device=sought.device,
        start=sought.start,
        toolchain=sought.toolchain.version,
        budget_s=underway.options.budget,
        spent_s=round(underway.spent_s, 1),
        answer=answer,
        sentence=_sentence(underway, answer, found, answered),
        start_ns=underway.start_ns or None,
        stages={name: round(spent, 1) for name, spent in underway.stages.items()},
        singles=found.singles,
        combinations=found.combinations,
        dispatches=answered.dispatches,
        covered=lowered.covered,
        confirmations=answered.confirmations,
        variant="" if form is None else f"tuned-{sought.model}",
        parts=() if form is None else form.parts,
        flags=way.flags,
        run_flags=way.run_flags,
        plugins=tuple((use.name, dict(use.options)) for use in way.plugins),
        spec=answered.spec,
        by_hand=() if form is None else _by_hand(form),
        race_error=RULE.error,
        candidates_a_minute=60.0 * candidates / seconds if candidates and seconds else None,
        moments=tuple(underway.moments),
        machine=describe_machine(environment_here()),
        notes=tuple(filter(None, (lowered.note, "" if underway.options.wait else _BESIDE))),
        settings={**begun.options, "out": underway.options.out.as_posix()},
        command=begun.command,
    )


def _by_hand(form: Form) -> tuple[str, ...]:
    """The command lines that compile a form with plain tools."""
    place = form.compiled.place
    return repro_lines(place.case, place.side.run.header.suite, form.compiled.module.build, None, None)


def _sentence(underway: TuneUnderway, answer: Answer, found: FoundForms, answered: Answered) -> str:
    sought, options = underway.sought, underway.options
    case, total = f"{sought.model}@{sought.device}", len(found.singles)
    tried = sum(each.standing != "untried" for each in found.singles)
    times = total / max(tried, 1) if tried < total else 2  # single changes have a share of the budget
    give = f"give it {math.ceil(times * options.budget / 60)}m"
    left = f"; {tried} of {plural(total, 'change')} tried; {give}" if tried < total else ""
    if answer == "budget too small":
        before = ", ".join(found.untried_levels) or "one candidate"
        return f"{case}: the budget of {options.budget:g} s ended before timing {before}{left or f'; {give}'}"
    if answered.form is None:
        for each in answered.confirmations:
            if each.verdict == "inconclusive" and (each.ratio or 1.0) < 1 - each.floor:
                left = f", though {each.head} may take {each.ratio:.3f} of its time{left or f'; {give}'}"
                break
        return f"{case}: nothing that was tried is confirmed faster than {sought.start}{left}"
    beside_start = next(each for each in answered.confirmations if each.head == answered.form.name)
    kept = sum(each.kept for each in answered.dispatches)
    tuned = f", {plural(kept, 'tuned dispatch', 'tuned dispatches')}" if kept else ""
    parts = ", ".join(answered.form.parts) or "no other flags"
    return (
        f"{case} takes {beside_start.ratio:.3f} [{beside_start.ci_low:.3f}, {beside_start.ci_high:.3f}] of the time of "
        f"{sought.start} with {parts}{tuned}{left}"
    )


def _variant_file(found: Tuning) -> str:
    """A file of variants that any suite takes in with `variant_files`; "" where nothing is faster."""
    if not found.variant:
        return ""
    table: dict[str, Any] = {"description": found.sentence}
    if found.flags:
        table["flags"] = list(found.flags)
    if found.run_flags:
        table["run_flags"] = list(found.run_flags)
    if found.plugins:
        table["plugins"] = [{"name": name, "options": options} for name, options in found.plugins]
    return tomli_w.dumps({"variants": {found.variant: table}}, multiline_strings=True)
