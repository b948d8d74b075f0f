"""The line of `harness explain`: a case on two sides -> both IRs -> its parts, measured -> what differs -> a sentence.

What compiles comes before and after measuring, never beside it.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import get_args

from harness.compare.pairs import Pair, Side, pair_runs, redefinition, require_whole, side_of, words_of_sides
from harness.compare.rows import measured_row
from harness.compare.samplers import MeasurementPolicy, Module, words_of_modules
from harness.compare.sides import Named, resolve, side_facts, what_is_named
from harness.errors import CaseError, UsageError
from harness.explain.attribute import LATENCY_ROW, Attribution, ProgramSide, Sampled, attribute, measured_now, sides_ns
from harness.explain.code import Code, final_code
from harness.explain.ir_diff import Program, schedule_differences, with_differences
from harness.explain.summary_sentence import explanation_sentence, labels_of
from harness.ir.differences import EXECUTABLE_PHASES, ProgramParts, read_parts, target_changes
from harness.measure.alone import only_one_measures
from harness.metrics import LATENCY
from harness.process import Limits
from harness.progress import Progress
from harness.records.case import Case
from harness.records.explanation import Explanation, Method, Part
from harness.report import render
from harness.report.data import document_of
from harness.report.explanation_words import is_changed
from harness.report.names import side_names
from harness.stages.ir import Compiled, at_readable_phases, cases_in, compiled_in_run
from harness.stages.options import ExplainOptions
from harness.stages.session import SidesSession, words_of
from harness.store.folders import find_folder
from harness.store.run_directory import load_run
from harness.store.work_directory import ExplanationDirectory
from harness.suite.cases import case_meant
from harness.text import did_you_mean, plural, such_as
from harness.toolchain import Toolchain

_OF_RULE = ("floor", "alpha", "confirm_alpha", "confidence", "first_look")
INTERRUPTED = "Interrupted: what was not confirmed by then is inconclusive"


@dataclass(frozen=True, kw_only=True)
class Found:
    """An explanation that is not kept yet."""

    explanation: Explanation
    is_stopped: bool  # Whether the user stopped it while it was measured


@dataclass(frozen=True, kw_only=True)
class AskedPair:
    """What is explained."""

    pair: Pair  # The case on both sides
    base: Side  # Its run. head likewise; within one run, both are that run.
    head: Side
    within: bool = False  # Whether both are variants of one run


@dataclass(frozen=True, kw_only=True)
class _Programs:
    modules: tuple[Module, Module]
    compiled: tuple[Compiled, Compiled]
    parts: tuple[ProgramParts, ProgramParts]
    unread: Mapping[str, str]  # Phases that are left out, and why


def explain_pair(
    asked: AskedPair,
    toolchains: Mapping[str, Toolchain],
    policy: MeasurementPolicy,
    progress: Progress,
    *,
    created: datetime,
    command: Sequence[str] = (),
    directory: ExplanationDirectory | None = None,
) -> Found:
    """Say of a case where its time goes on two sides, and what the compiler did differently there."""
    pair, both = asked.pair, (asked.base, asked.head)
    # Within a run, each side is called by its variant.
    called = [[each.variant] for each in pair.both] if asked.within else [[], []]
    facts = [side_facts(side, (*names, side.label)[0], names) for side, names in zip(both, called, strict=True)]
    programs = _programs(asked, toolchains, policy.limits, progress)
    found = _measure(programs, policy, progress, directory)
    is_stopped = found.is_stopped
    changed = [] if is_stopped else [part for part in found.parts if is_changed(part) or not part.is_timed]
    try:
        codes, code_notes = _final_codes(programs, changed, progress)
    except KeyboardInterrupt:  # what was measured is not lost
        codes, code_notes, is_stopped = [{}, {}], ["Interrupted before the final code was compared"], True
    # As titles call them: `IREE 3.10.0`, `commit 9b05f1760b`; words of a user may be paths and hashes.
    short = [replace(each, label=name) for each, name in zip(facts, side_names(*facts), strict=True)]
    labels = labels_of(*short)
    sides = [
        Program(label=label, executables={each.name: each for each in parts.executables}, code=code)
        for label, parts, code in zip(labels, programs.parts, codes, strict=True)
    ]
    row = measured_row(pair, LATENCY, found.latency, policy.rule.floor)
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
        schedule=schedule_differences(programs.modules[0].build, programs.modules[1].build, labels),
        notes=(
            *([INTERRUPTED] if found.is_stopped else []),
            *_notes(asked, programs),
            *found.notes,
            *code_notes,
        ),
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
    return Found(explanation=replace(explanation, sentence=sentence), is_stopped=is_stopped)


def keep(explanation: Explanation, results: Path, suite: str) -> tuple[Explanation, Path]:
    """Keep an explanation in a results folder: with its id, and the folder."""
    with ExplanationDirectory.create(results, suite, datetime.now(timezone.utc)) as directory:
        return keep_in(directory, explanation), directory.path


def keep_in(directory: ExplanationDirectory, explanation: Explanation) -> Explanation:
    """Keep an explanation in its folder: with its id."""
    named = replace(explanation, id=directory.path.name)
    directory.finish(document_of(named), render(named, "markdown", full=True))
    return named


def explain_command(asked: AskedPair) -> tuple[str, ...]:
    """A command line that explains a pair; it means the same tomorrow."""
    if not asked.within:
        return ("harness", "explain", *words_of_sides(asked.base, asked.head), "--case", asked.pair.name)
    of_base, of_head = asked.pair.both
    variants = () if of_base.baseline else ("--variant", of_base.variant, "--variant", of_head.variant)
    return ("harness", "explain", "--within", asked.head.label, *variants, "--case", of_head.name)


# --- both programs ---


def _programs(asked: AskedPair, toolchains: Mapping[str, Toolchain], limits: Limits, progress: Progress) -> _Programs:
    of_base, of_head = asked.pair.both
    base = compiled_in_run(asked.base, of_base, toolchains[of_base.toolchain], limits)
    head = compiled_in_run(asked.head, of_head, toolchains[of_head.toolchain], limits)
    (_, base_compiled), (_, head_compiled) = base, head
    phases = head_compiled.reached(base_compiled.reached(EXECUTABLE_PHASES))
    progress.stage("IR", 2)
    parts, unread = at_readable_phases(phases, lambda left: (_parts(base_compiled, left), _parts(head_compiled, left)))
    progress.step(asked.pair.name, advance=2)
    for name, of_side in zip(("base", "head"), parts, strict=True):
        if not of_side.executables:
            raise CaseError("ir", f"the {name}'s program has no dispatch, so there is nothing to tell apart in it")
    return _Programs(modules=(base[0], head[0]), compiled=(base_compiled, head_compiled), parts=parts, unread=unread)


def _parts(compiled: Compiled, phases: Sequence[str]) -> ProgramParts:
    with compiled.ir(phases) as files:
        return read_parts(files, toolchain=compiled.toolchain, limits=compiled.limits)


# --- measuring ---


def _measure(
    programs: _Programs, policy: MeasurementPolicy, progress: Progress, directory: ExplanationDirectory | None
) -> Attribution:
    budget, seconds, notes = max(int(policy.budget_s), 1), 0.0, list[str]()

    def count(number: int, sampled: Sampled) -> None:
        nonlocal seconds
        before = min(int(seconds), budget)
        seconds += sampled.seconds
        progress.step(f"generation {number + 1}", advance=min(int(seconds), budget) - before)

    def note_once(_name: str, _seconds: float, sentence: str) -> None:
        """All rows share their generations, so the first that goes on beyond the budget speaks for all."""
        if not notes:
            progress.note(sentence)
        notes.append(sentence)

    base, head = (
        ProgramSide(module=module, executables=parts.executables)
        for module, parts in zip(programs.modules, programs.parts, strict=True)
    )
    with (
        only_one_measures(progress.note, wait=policy.wait),
        tempfile.TemporaryDirectory(prefix="harness-explain-", ignore_cleanup_errors=True) as folder,
    ):
        progress.stage("Measure (s at most)", budget)
        found = attribute(
            base,
            head,
            policy,
            Path(folder),
            once=measured_now if directory is None else _Kept(directory, programs.modules, progress).once,
            on_generation=count,
            on_beyond=note_once,
        )
    progress.step("", advance=budget - min(int(seconds), budget))
    return found


class _Kept:
    """The generations of an explanation on disk."""

    def __init__(self, directory: ExplanationDirectory, modules: tuple[Module, Module], progress: Progress) -> None:
        self._directory, self._modules = directory, words_of_modules(*modules)
        self._kept: dict[tuple[Method, int], Sampled] = {}
        for method in get_args(Method):
            kept = directory.generations(LATENCY_ROW, method, self._modules, Sampled)
            self._kept |= {(method, number): sampled for number, sampled in kept.items()}
        if directory.measured:
            progress.note(f"Of before the interruption: {plural(directory.measured, 'generation')}, which count")

    def once(self, method: Method, number: int, measure: Callable[[], Sampled]) -> Sampled:
        """What an earlier stretch measured of a generation, or what is measured now."""
        if (method, number) in self._kept:
            return self._kept[method, number]
        sampled = measure()
        self._directory.keep_generation(LATENCY_ROW, method, number, self._modules, sampled)
        return sampled


# --- what differs ---


def _final_codes(
    programs: _Programs, changed: Sequence[Part], progress: Progress
) -> tuple[list[Mapping[str, Code]], list[str]]:
    """The final code of the parts that changed, by dispatch, of base and of head; and why there is none."""
    none: list[Mapping[str, Code]] = [{}, {}]
    if not changed:
        return none, []
    progress.stage("Final code", 2)
    codes = []
    for side, module, compiled in zip(("base", "head"), programs.modules, programs.compiled, strict=True):
        names = [name for part in changed for name in getattr(part, side)]
        try:
            codes.append(_final_code(module, names, compiled.limits) if names else {})
        except CaseError as error:
            return none, [f"The final code of dispatches is not compared: {error}"]
        progress.step(side)
    if not any(codes):
        return codes, ["The final code of dispatches is not compared: only that for x86-64 and AArch64 is read"]
    return codes, []


def _final_code(module: Module, names: Sequence[str], limits: Limits) -> Mapping[str, Code]:
    with tempfile.TemporaryDirectory(prefix="harness-code-", ignore_cleanup_errors=True) as folder:
        return final_code(module, names, Path(folder), limits)


def _notes(asked: AskedPair, programs: _Programs) -> list[str]:
    of_base, of_head = asked.pair.both
    notes = []
    if of_base.id != of_head.id:
        how = redefinition((of_base, asked.base), (of_head, asked.head))
        notes.append(f"The two sides define the case differently: {how}")
    if programs.modules[0].build.module_sha256 == programs.modules[1].build.module_sha256:
        notes.append("Both modules have the same bytes, so only the runtime, its flags or the machine can differ")
    if changes := target_changes(programs.parts[0].target, programs.parts[1].target):
        notes.append(f"They are compiled for different targets: {'; '.join(changes)}")
    for phase, why in programs.unread.items():
        notes.append(f"Phase {phase} is not compared: the IR of one of the two cannot be read back there ({why})")
    return notes


# --- What a user asks for -> one case on two sides, both compiled ---


_FORM = (
    "give two sides and a case, as in `harness explain iree==3.10.0 iree==3.12.0 CASE --suite SUITE`; each side is a "
    "run, a toolchain or a commit; or one run with --within and --variant"
)
_WHICH_CASE = "which case is not said; give --case"


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
            return AskedPair(pair=pair, base=side, head=side, within=True)
        first, second = named
        if not (isinstance(first, Path) and isinstance(second, Path)):
            case = self.case = case or _only_case(named, options.suite)
        if options.suite is not None and isinstance(first, str) and isinstance(second, str):
            case_meant(options.suite, case)
        base, head = resolve((first, second), options.suite, self, self.progress.note)
        for side in (base, head):
            require_whole(side)
        return AskedPair(pair=pair_of_runs(base, head, case), base=base, head=head)


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
    place = suite or next((side for side in sides if isinstance(side, Path)), None)
    if place is None:
        raise UsageError(
            "neither side is a run, so the case needs a suite; give --suite, as in --suite suites/esrgan.toml"
        )
    names = cases_in(place)
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
