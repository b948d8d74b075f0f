"""The line of `harness explain`: a case on two sides -> both IRs -> its parts, measured -> what differs -> a sentence.

What compiles comes before and after measuring, never beside it.
"""

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import get_args

from harness.compare.pairs import Pair, Side, pair_runs, redefinition, require_whole, words_of_sides
from harness.compare.rows import measured_row
from harness.compare.samplers import MeasurementPolicy, Module, words_of_modules
from harness.compare.sides import Named, remarks_on, side_facts, what_is_named
from harness.errors import CaseError, UsageError
from harness.explain.attribute import LATENCY_ROW, Attribution, Once, Sampled, attribute, sides_ns
from harness.explain.code import Code, final_code
from harness.explain.ir_diff import Program, schedule_differences, with_differences
from harness.explain.passes import attribute_passes
from harness.explain.summary_sentence import explanation_sentence, labels_of
from harness.ir.differences import EXECUTABLE_PHASES, ProgramParts, read_parts, target_changes
from harness.measure.session import only_one_measures
from harness.metrics import LATENCY, TIMED, Metric
from harness.process import Limits
from harness.progress import Progress
from harness.records.explanation import Explanation, Method, Part
from harness.records.run import ToolchainRecord
from harness.report import render
from harness.report.data import document_of
from harness.report.explanation_page import is_changed
from harness.report.units import side_names
from harness.stages.ir import Compiled, at_readable_phases, cases_in, compiled_in_run, the_case
from harness.stages.options import ExplainOptions
from harness.stages.session import SidesSession, words_of
from harness.store.folders import find_folder
from harness.store.run_directory import load_run
from harness.store.work_directory import ExplanationDirectory
from harness.suite.cases import case_meant
from harness.text import did_you_mean, plural, shown
from harness.toolchain import Toolchain

_OF_RULE = ("floor", "alpha", "confirm_alpha", "confidence", "first_look")


@dataclass(frozen=True, kw_only=True)
class AskedPair:
    """What is explained."""

    pair: Pair  # The case on both sides
    base: Side  # Its run. head likewise; within one run, both are that run.
    head: Side
    within: bool = False  # Whether it is a variant of one run beside its baseline


@dataclass(frozen=True, kw_only=True)
class _Programs:
    modules: tuple[Module, Module]
    compiled: tuple[Compiled, Compiled]
    parts: tuple[ProgramParts, ProgramParts]  # Without executables where compiles are explained, and not calls
    unread: Mapping[str, str]  # Phases that are left out, and why


def explain_pair(
    asked: AskedPair,
    toolchains: Mapping[ToolchainRecord, Toolchain],
    policy: MeasurementPolicy,
    progress: Progress,
    *,
    created: datetime,
    command: Sequence[str] = (),
    directory: ExplanationDirectory | None = None,
    metric: Metric = LATENCY,
) -> Explanation:
    """Say of a case where the time of its calls or compiles goes on two sides, and what the compiler did there."""
    pair, both = asked.pair, (asked.base, asked.head)
    # Within a run, each side is called by its variant.
    called = [[each.variant] for each in pair.both] if asked.within else [[], []]
    facts = [side_facts(side, (*names, side.label)[0], names) for side, names in zip(both, called, strict=True)]
    is_of_calls = metric is LATENCY
    programs = _programs(asked, toolchains, policy.limits, progress, read=is_of_calls)
    found = _measure(programs, policy, progress, directory)
    changed = [part for part in found.parts if is_of_calls and (is_changed(part) or not part.is_timed)]
    codes, code_notes = _final_codes(programs, changed, progress)
    # As titles call them: `IREE 3.10.0`, `commit 9b05f1760b`; words of a user may be paths and hashes.
    short = [replace(each, label=name) for each, name in zip(facts, side_names(*facts), strict=True)]
    labels = labels_of(*short)
    sides = [
        Program(label=label, executables={each.name: each for each in parts.executables}, code=code)
        for label, parts, code in zip(labels, programs.parts, codes, strict=True)
    ]
    schedule = schedule_differences(programs.modules[0].build, programs.modules[1].build, labels)
    row = measured_row(pair, metric, found.latency, policy.rule.floor)
    base_ns, head_ns = sides_ns(found.latency) or (None, None)
    explanation = Explanation(
        id="",
        created=created.isoformat(timespec="seconds"),
        case=pair.name,
        base=facts[0],
        head=facts[1],
        method=found.method,
        # The row of the case, with what the lines of the parts add up to.
        latency=replace(row, base_value=base_ns, head_value=head_ns),
        parts=tuple(with_differences(part, sides[0], sides[1]) for part in found.parts),
        base_elsewhere=found.base_elsewhere,
        head_elsewhere=found.head_elsewhere,
        schedule=schedule if is_of_calls else (),
        notes=(*remarks_on(both, toolchains), *_notes(asked, programs), *found.notes, *code_notes),
        settings={
            **{name: getattr(policy.rule, name) for name in _OF_RULE},
            "budget_s": policy.budget_s,
            "cap_s": policy.cap_s,
            "seed": policy.seed,
            "generations": len(found.generations),
        },
        command=tuple(command) or explain_command(asked),
    )
    sentence = explanation_sentence(replace(explanation, base=short[0], head=short[1]))
    return replace(explanation, sentence=sentence)


def explain_and_keep(
    asked: AskedPair,
    toolchains: Mapping[ToolchainRecord, Toolchain],
    policy: MeasurementPolicy,
    progress: Progress,
    results: Path,
    command: Sequence[str] = (),
) -> tuple[Explanation, Path]:
    """Explain a pair for a line that goes on, and keep the explanation in a results folder; and its folder."""
    now = datetime.now(timezone.utc)
    found = explain_pair(asked, toolchains, policy, progress, created=now, command=command)
    with ExplanationDirectory.create(results, asked.head.run.header.suite_name, now) as directory:
        return keep_in(directory, found), directory.path


def keep_in(directory: ExplanationDirectory, explanation: Explanation) -> Explanation:
    """Keep an explanation in its folder: with its id."""
    named = replace(explanation, id=directory.path.name)
    directory.finish(document_of(named), render(named, "markdown", full=True))
    return named


def explain_command(asked: AskedPair) -> tuple[str, ...]:
    """A command line that explains a pair; it means the same tomorrow."""
    if asked.within:
        return ("harness", "explain", "--within", asked.head.label, "--case", asked.pair.name)
    return ("harness", "explain", *words_of_sides(asked.base, asked.head), "--case", asked.pair.name)


# --- both programs ---


def _programs(
    asked: AskedPair, toolchains: Mapping[ToolchainRecord, Toolchain], limits: Limits, progress: Progress, *, read: bool
) -> _Programs:
    of_base, of_head = asked.pair.both
    base = compiled_in_run(asked.base, of_base, toolchains[asked.base.toolchains[of_base.toolchain]], limits)
    head = compiled_in_run(asked.head, of_head, toolchains[asked.head.toolchains[of_head.toolchain]], limits)
    (_, base_compiled), (_, head_compiled) = base, head
    modules, compiled, none = (base[0], head[0]), (base[1], head[1]), ProgramParts(program={}, executables=())
    if not read:
        return _Programs(modules=modules, compiled=compiled, parts=(none, none), unread={})
    phases = head_compiled.reached(base_compiled.reached(EXECUTABLE_PHASES))
    progress.stage("IR", 2)
    parts, unread = at_readable_phases(phases, lambda left: (_parts(base_compiled, left), _parts(head_compiled, left)))
    progress.step(asked.pair.name, advance=2)
    if not any(of_side.executables for of_side in parts):
        raise CaseError("ir", "neither program has a dispatch, so there is nothing to tell apart in them")
    return _Programs(modules=modules, compiled=compiled, parts=parts, unread=unread)


def _parts(compiled: Compiled, phases: Sequence[str]) -> ProgramParts:
    with compiled.ir(phases) as files:
        return read_parts(files, toolchain=compiled.toolchain, limits=compiled.limits)


# --- measuring ---


def _measure(
    programs: _Programs, policy: MeasurementPolicy, progress: Progress, directory: ExplanationDirectory | None
) -> Attribution:
    once, notes = _once(directory, programs.modules, progress), list[str]()

    def note_once(sentence: str) -> None:
        """All rows share their generations, so the first that goes on beyond the budget speaks for all."""
        if not notes:
            progress.note(sentence)
        notes.append(sentence)

    base, head = programs.parts
    with (
        only_one_measures(progress.note, wait=policy.wait),
        tempfile.TemporaryDirectory(prefix="harness-explain-", ignore_cleanup_errors=True) as folder,
    ):
        progress.stage(f"Measure ({policy.budget_s:.0f} s at most)", 1)
        if not (base.executables or head.executables):
            return attribute_passes(programs.modules, policy, once=once, on_beyond=note_once)
        executables = base.executables, head.executables
        found = attribute(programs.modules, executables, policy, Path(folder), once=once, on_beyond=note_once)
    progress.step("")
    return found


def _once(directory: ExplanationDirectory | None, both: tuple[Module, Module], progress: Progress) -> Once:
    """Generations as an earlier stretch measured them, or as they are measured now, and kept."""
    modules, known = words_of_modules(*both), dict[tuple[Method, int], Sampled]()
    for method in get_args(Method):
        kept = {} if directory is None else directory.generations(LATENCY_ROW, method, modules, Sampled)
        known |= {(method, number): sampled for number, sampled in kept.items()}
    if known:
        progress.note(f"Of before the interruption: {plural(len(known), 'generation')}, which count")

    def once(method: Method, number: int, measure: Callable[[], Sampled]) -> Sampled:
        progress.step(f"generation {number + 1}", advance=0)
        if (method, number) in known:
            return known[method, number]
        sampled = measure()
        if directory is not None:
            directory.keep_generation(LATENCY_ROW, method, number, modules, sampled)
        return sampled

    return once


# --- what differs ---


def _final_codes(
    programs: _Programs, changed: Sequence[Part], progress: Progress
) -> tuple[list[Mapping[str, Code]], list[str]]:
    """The final code of the parts that changed, by dispatch, of base and of head; and why there is none."""
    none: list[Mapping[str, Code]] = [{}, {}]
    if not changed:
        return none, []
    progress.stage("Final code", 2)
    codes: list[Mapping[str, Code]] = []
    for side, module, compiled in zip(("base", "head"), programs.modules, programs.compiled, strict=True):
        names = [name for part in changed for name in getattr(part, side)]
        with tempfile.TemporaryDirectory(prefix="harness-code-", ignore_cleanup_errors=True) as folder:
            try:
                codes.append(final_code(module, names, Path(folder), compiled.limits) if names else {})
            except CaseError as error:
                return none, [f"The final code of dispatches is not compared: {error}"]
        progress.step(side)
    if not any(codes):
        return codes, ["The final code of dispatches is not compared: only that for x86-64 and AArch64 is read"]
    return codes, []


def _notes(asked: AskedPair, programs: _Programs) -> list[str]:
    of_base, of_head = asked.pair.both
    notes = []
    if of_base.id != of_head.id:
        how = redefinition((of_base, asked.base), (of_head, asked.head))
        notes.append(f"The two sides define the case differently: {how}")
    of_calls = bool(programs.parts[0].executables)
    if of_calls and programs.modules[0].build.module_sha256 == programs.modules[1].build.module_sha256:
        notes.append("Both modules have the same bytes, so only the runtime, its flags or the machine can differ")
    if changes := target_changes(programs.parts[0].target, programs.parts[1].target):
        notes.append(f"They are compiled for different targets: {'; '.join(changes)}")
    for phase, why in programs.unread.items():
        notes.append(f"Phase {phase} is not compared: the IR of one of the two cannot be read back there ({why})")
    return notes


# --- what a user asks for -> one case on two sides, both compiled ---


_CASE = re.compile(r"[^@]+/[^@]+@[^@{]+")  # As far as no run and no commit is called so
_FORM = (
    "give two sides and a case, as in `harness explain iree==3.10.0 iree==3.12.0 CASE --suite SUITE`; each side is a "
    "run, a toolchain or a commit; or one run with --within and --variant"
)


class ExplanationSession(SidesSession[ExplainOptions, ExplanationDirectory]):
    """An explanation from its first side to its last difference."""

    directory = ExplanationDirectory

    def __init__(
        self, options: ExplainOptions, words: Sequence[str] = (), folder: ExplanationDirectory | None = None
    ) -> None:
        """What is wrong with the options shows at once."""
        sides, case = _apart(options)
        if options.metric not in TIMED:
            how = "give latency, which is explained by dispatch, or compile-time, by pass of the compiler"
            raise UsageError(f"--metric {options.metric}: harness explain says where time goes; {how}")
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
            side = Side(load_run(Path(options.words[0]), rounds=False), options.words[0])
            require_whole(side)
            return AskedPair(pair=pair_of_variant(side, options.variant, case), base=side, head=side, within=True)
        first, second = named
        if not (isinstance(first, Path) and isinstance(second, Path)):
            if case is None:
                place = options.suite or next((side for side in named if isinstance(side, Path)), None)
                if place is None:
                    how = "give --suite, as in --suite suites/esrgan.toml"
                    raise UsageError(f"neither side is a run, so the case needs a suite; {how}")
                case = the_case(None, cases_in(place), place)
            self.case = case
        if options.suite is not None and isinstance(first, str) and isinstance(second, str):
            case_meant(options.suite, case)
        base, head = self.resolve((first, second))
        for side in (base, head):
            require_whole(side)
        return AskedPair(pair=pair_of_runs(base, head, case), base=base, head=head)


def _apart(options: ExplainOptions) -> tuple[tuple[str, ...], str | None]:
    """The words of both sides, or of the run that has both, and the case; None: no case is said."""
    words, number = options.words, 1 if options.within else 2
    if len(words) not in (number, number + 1) or (options.variant is not None and not options.within):
        raise UsageError(_FORM)
    if len(words) == number == 2 and _CASE.fullmatch(words[1]) and not Path(words[1]).exists():
        raise UsageError(f"{shown(words[1])}: is no side, and a case has two sides before it; {_FORM}")
    if len(words) == number + 1 and options.case is not None:
        raise UsageError(f"{words[-1]} and --case {options.case} both say which case is meant; leave one of them out")
    return words[:number], words[number] if len(words) > number else options.case


def pair_of_runs(base: Side, head: Side, case: str | None) -> Pair:
    """The case of two runs; by its name, though they define it differently."""
    pairs = {pair.name: pair for pair in pair_runs(base, head, by_name=True)}
    both = [name for name, pair in pairs.items() if pair.base is not None and pair.head is not None]
    if case in pairs and case not in both:
        lacks = base.label if pairs[case].base is None else head.label
        raise UsageError(
            f"{lacks} has no case {case!r}, so there is nothing to hold the other one against; name another"
        )
    return pairs[the_case(case, both, f"{base.label} and {head.label}")]


def pair_of_variant(side: Side, variant: str | None, case: str | None) -> Pair:
    """A variant of a run and its baseline."""
    cases = {found.name: found for found in side.run.header.cases if found.peer is None}
    known = list(dict.fromkeys(found.variant for found in cases.values()))
    if variant is not None and variant not in known:
        raise UsageError(f"{side.label}: has no variant {variant!r}{did_you_mean(variant, known)}")
    wanted = [
        name
        for name, found in cases.items()
        if (variant is None and (case is not None or found is not side.baselines.get(found.group)))
        or found.variant == variant
    ]
    head = cases[the_case(case, wanted, side.label)]
    base = side.baselines.get(head.group)
    if base is None:
        raise UsageError(f"{side.label}: {head.group} has no baseline; name another case")
    if base == head:
        raise UsageError(f"{side.label}: {head.name} is the baseline itself; name another variant with --variant")
    return Pair(name=head.name, base=base, head=head)
