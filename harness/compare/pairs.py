"""Cases of two sides -> pairs, and what is known of a pair without measuring it: its verdict, or how outputs differ.

Each run holds its outputs against expected files, ONNX Runtime or its own baseline. Where both sides passed and yet
differ from each other by more than the tolerance, one of them is wrong, and no latency is worth comparing. Where the
program itself is another one, other outputs may be what was meant: the row is compared, and says what changed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from harness.cache import cache_root
from harness.compare.commits import Commit
from harness.errors import RunError, UsageError
from harness.records.case import Case
from harness.records.comparison import AND_OTHER_OUTPUTS, ANOTHER_PROGRAM, Verdict
from harness.records.run import Failure, ModelRecord, Run, ToolchainRecord
from harness.store.evidence import Evidence, baseline_of, find_failure, is_expected, stand_ins
from harness.store.files import log_path
from harness.store.run_directory import load_rounds
from harness.verify.cases import kept_outputs, tolerance_of
from harness.verify.difference import Right, compare_outputs

TOOLCHAIN_PREFIX = "iree=="
# Begins the line below an excerpt of the compiler's words that names the log with all of them.
WHERE_ALL_IS = "All that iree-compile said: "


def is_toolchain(side: str) -> bool:
    """Whether what a user calls a side is a release of IREE, as in `iree==3.12.0`, and not a directory."""
    return side.startswith(TOOLCHAIN_PREFIX)


# Behind why a row fails that fails on both sides.
BASE_TOO = " (and so does the base)"


@dataclass(frozen=True)
class Side:
    """One side's run."""

    run: Run
    label: str  # What the user gave
    # The run's directory, where its rounds were not read; they are only for runs that are compared as they were
    # recorded, and only where a module changed
    rounds_at: Path | None = None
    commit: Commit | None = None  # That its suite is of, where the side is a commit
    # The folder that the path of its suite begins in: the working folder, or a place in a commit's tree
    root: Path = Path()

    @cached_property
    def evidence(self) -> Evidence:
        """The run's records by case."""
        return Evidence(self.run)

    @cached_property
    def toolchains(self) -> Mapping[str, ToolchainRecord]:
        """By release."""
        return {record.version: record for record in self.run.header.toolchains}

    @cached_property
    def groups(self) -> Mapping[str, Sequence[Case]]:
        """The cases that are measured against each other, in the plan's order, by name of their group."""
        groups: dict[str, list[Case]] = {}
        for case in self.run.header.cases:
            groups.setdefault(case.group, []).append(case)
        return groups

    @cached_property
    def stand_ins(self) -> Mapping[str, Case]:
        """By name of each case that is not measured on its own: the case of its group that has its module."""
        found = (stand_ins(cases, self.evidence) for cases in self.groups.values())
        return {name: case for of_group in found for name, case in of_group.items()}

    @cached_property
    def baselines(self) -> Mapping[str, Case]:
        """By group that has any, what its other cases are compared with; see harness.store.evidence.baseline_of."""
        found = {name: baseline_of(cases, self.evidence, self.stand_ins) for name, cases in self.groups.items()}
        return {name: case for name, case in found.items() if case is not None}

    @cached_property
    def cases(self) -> Mapping[str, Case]:
        """By name."""
        return {case.name: case for case in self.run.header.cases}


def words_of_sides(base: Side, head: Side) -> list[str]:
    """Both sides as a command line says them, so that it means the same tomorrow, with the suite where it needs one."""
    made = [side for side in (base, head) if side.commit is not None or is_toolchain(side.label)]
    sides = [side.commit.sha if side.commit is not None else side.label for side in (base, head)]
    return [*sides, *(["--suite", made[0].run.header.suite] if made else [])]


def with_rounds(side: Side) -> Side:
    """The side with its rounds."""
    if side.rounds_at is None:
        return side
    return replace(side, run=replace(side.run, rounds=load_rounds(side.rounds_at)), rounds_at=None)


def require_whole(side: Side) -> None:
    """Refuse a run that somebody has changed by hand."""
    for case in side.run.header.cases:
        if case.peer is None and case.toolchain not in side.toolchains:
            raise RunError(
                f"{side.label}: is damaged (its case {case.name} names IREE {case.toolchain}, which the run does not "
                "have); take the run from a backup"
            )


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A case on both sides, or on the one that has it."""

    name: str  # Unique in the comparison
    base: Case | None
    head: Case | None

    @property
    def case(self) -> Case:
        """The head's case, or the base's where the head has none."""
        case = self.head or self.base
        assert case is not None  # noqa: S101 (a pair has a side)
        return case

    @property
    def both(self) -> tuple[Case, Case]:
        """Base and head of a pair that has both."""
        assert self.base is not None and self.head is not None  # noqa: S101 (the others' verdict is known)
        return self.base, self.head


@dataclass(frozen=True, kw_only=True)
class DecidedRow:
    """A verdict that needs no measuring."""

    verdict: Verdict
    reason: str
    stderr: str = ""


def pair_runs(base: Side, head: Side, *, by_name: bool = False) -> list[Pair]:
    """Pair cases of two runs by their identity, which holds model, flags, plugins and device, but no names.

    Where a side has several toolchains, a case meets the one of the same release, and the newest of two nights each
    other. With one toolchain a side, the toolchains are what is compared.
    """
    alone_in_base = [release for release in base.toolchains if release not in head.toolchains]
    alone_in_head = [release for release in head.toolchains if release not in base.toolchains]
    meets = dict(zip(reversed(alone_in_head), reversed(alone_in_base), strict=False))

    def identity(case: Case) -> tuple[str, str]:
        return case.id, meets.get(case.toolchain, case.toolchain)

    named = {case.name: case for case in _compared(base)} if by_name else {}
    partners = {case.name: named[case.name] for case in _compared(head) if case.name in named}
    waiting: dict[tuple[str, str], list[Case]] = {}
    for case in _compared(base):
        if case.name not in named or case.name not in partners:
            waiting.setdefault(identity(case), []).append(case)
    # Two variants may have the same flags, and so one identity: then names say which is which.
    for same_name in (True, False):
        for case in _compared(head):
            left = [other for other in waiting.get(identity(case), ()) if other.name == case.name or not same_name]
            if left and case.name not in partners:
                partners[case.name] = left[0]
                waiting[identity(case)].remove(left[0])
    unpaired = [case for case in _compared(base) if case in waiting.get(identity(case), ())]
    pairs = [Pair(name=case.name, base=partners.get(case.name), head=case) for case in _compared(head)]
    pairs += [Pair(name=case.name, base=case, head=None) for case in unpaired]
    if not any(pair.base and pair.head for pair in pairs):
        raise UsageError(
            f"{base.label} and {head.label} have no case in common; compare runs of one suite, or cases of one name "
            "that the two define differently with --by-name"
        )
    heads = {pair.name for pair in pairs if pair.head is not None}
    return [  # a case whose definition changed is there twice under one name: once gone and once new
        replace(pair, name=f"{pair.name} (base)") if pair.head is None and pair.name in heads else pair
        for pair in pairs
    ]


def pair_variants(side: Side) -> list[Pair]:
    """Every variant of a run with the baseline of its group, or without one where the group has none."""
    bases = side.baselines
    others = [case for case in _compared(side) if case is not bases.get(case.group)]
    return [Pair(name=case.name, base=bases.get(case.group), head=case) for case in others]


def pair_peers(side: Side) -> list[Pair]:
    """Every other engine's case of a run with the baseline of its group, where both worked."""
    baselines = side.baselines
    peers = [case for case in side.run.header.cases if case.peer is not None and case.group in baselines]
    pairs = [Pair(name=case.name, base=baselines[case.group], head=case) for case in peers]
    return [pair for pair in pairs if all(case is None or not _failure(case, side) for case in (pair.base, pair.head))]


def pair_releases(side: Side, is_measured: Callable[[Case], bool], *, to: Literal["first", "last"]) -> list[Pair]:
    """Every case with its own under another release: the first one that measured it, or the last one before its own.

    Releases under which it was not measured, or is wrong, are passed over.
    """
    order = {release: place for place, release in enumerate(side.toolchains)}
    found, others = list[Pair](), dict[tuple[str, str], Case]()
    for case in sorted(_compared(side), key=lambda case: order.get(case.toolchain, 0)):
        if case.toolchain not in order or not is_measured(case) or _failure(case, side):
            continue
        line = (case.group, case.variant)
        if line in others:
            found.append(Pair(name=case.name, base=others[line], head=case))
        if to == "last" or line not in others:
            others[line] = case
    return found


def _compared(side: Side) -> list[Case]:
    """The cases of IREE; what another engine takes is no matter of a compiler's change."""
    return [case for case in side.run.header.cases if case.peer is None]


def what_is_known(pair: Pair, base: Side, head: Side) -> DecidedRow | str | None:
    """What can be said of a pair at once: a verdict, or None: it has to be measured."""
    if pair.head is None or pair.base is None:
        return _one_sided(pair, base, head)
    skips = [case.skip for case in (pair.base, pair.head) if case.skip is not None]
    if len(skips) == 2:
        return f"skipped: {skips[1]}"
    if pair.head.skip is not None:
        return DecidedRow(verdict="missing", reason=f"measured in the base, and skipped in the head: {pair.head.skip}")
    if pair.base.skip is not None:
        return DecidedRow(verdict="new", reason=f"skipped in the base: {pair.base.skip}")
    base_failure = _failure(pair.base, base)
    if (failed := _failed(pair.head, head, BASE_TOO if base_failure else "")) is not None:
        return failed
    if base_failure is not None:
        return DecidedRow(verdict="new", reason=f"works, where the base failed at {base_failure.stage}")
    return _by_module(pair.base, pair.head, base, head)


def _failed(case: Case, side: Side, also: str) -> DecidedRow | str | None:
    """What is said of the head's case where it fails."""
    failure = _failure(case, side)
    if failure is None:
        return None
    if is_expected(case, failure):
        return "expected to fail"
    reason = f"fails at {failure.stage}: {failure.message}{also}"
    return DecidedRow(verdict="failed", reason=reason, stderr=_what_was_said(case, failure, side))


def _what_was_said(case: Case, failure: Failure, side: Side) -> str:
    build = side.evidence.builds.get(case.name)
    if not failure.stderr or failure.stage != "compile" or build is None or build.failure is None:
        return failure.stderr
    given = side.rounds_at
    folder = given if given is not None and not given.is_absolute() else Path("results", side.run.header.id)
    return f"{failure.stderr}\n\n{WHERE_ALL_IS}{(folder / log_path(case.name)).as_posix()}"


def _one_sided(pair: Pair, base: Side, head: Side) -> DecidedRow | str:
    case, there, gone = pair.case, *((base, head) if pair.head is None else (head, base))
    if case.skip is not None:
        return f"skipped: {case.skip}"
    verdict: Verdict = "missing" if pair.head is None else "new"
    if base is head:  # within a run, where a variant has no baseline beside it
        return DecidedRow(verdict=verdict, reason=f"{case.group} has no baseline in this run")
    if pair.base is None and (failed := _failed(case, head, " (the base has no such case)")) is not None:
        return failed
    other = gone.cases.get(case.name)
    where = "head" if pair.head is None else "base"
    if other is None:
        return DecidedRow(verdict=verdict, reason=f"the {where} has no such case")
    sides = ((other, gone), (case, there)) if pair.base is None else ((case, there), (other, gone))
    return DecidedRow(verdict=verdict, reason=f"the {where}'s case of this name is another one: {redefinition(*sides)}")


def redefinition(base: tuple[Case, Side], head: tuple[Case, Side]) -> str:
    """How the head defines a case of the same name, flag by flag: `the head adds --a and leaves out --b`."""
    before, after = _words_of(base[0]), _words_of(head[0])
    changes = (
        ("adds", [word for word in after if word not in before]),
        ("leaves out", [word for word in before if word not in after]),
    )
    if parts := [f"{verb} {', '.join(words)}" for verb, words in changes if words]:
        return f"the head {' and '.join(parts)}"
    models = [side.evidence.models.get(case.model) for case, side in (base, head)]
    if models[0] is not None and models[1] is not None and models[0].mlir_sha256 != models[1].mlir_sha256:
        return "its model is another program"
    return "the order of its flags, its model's definition or options of its plugins differ"


def _words_of(case: Case) -> list[str]:
    return [
        *case.compile_flags,
        *(f"run flag {flag}" for flag in case.run_flags),
        *(f"plugin {name}" for name in case.plugins),
        *(f"device {uri}" for uri in case.uris),
        f"backend {case.backend}",
    ]


def _failure(case: Case, side: Side) -> Failure | None:
    own = find_failure(case, side.evidence, timed=True)
    stand_in = side.stand_ins.get(case.name)
    return own if own is not None or stand_in is None else find_failure(stand_in, side.evidence, timed=True)


def _by_module(base_case: Case, head_case: Case, base: Side, head: Side) -> DecidedRow | None:
    builds = base.evidence.builds.get(base_case.name), head.evidence.builds.get(head_case.name)
    codes = [None if build is None else build.module_sha256 for build in builds]
    if base.run.header.imported or head.run.header.imported:
        return None
    if codes[0] is None:
        return DecidedRow(verdict="new", reason="the base was never compiled")
    if codes[1] is None:
        return DecidedRow(verdict="missing", reason="the head was never compiled")
    both = base.toolchains.get(base_case.toolchain), head.toolchains.get(head_case.toolchain)
    same_runtime = both[0] is not None and both[1] is not None and both[0].has_runtime_of(both[1])
    if codes[0] == codes[1] and same_runtime and base_case.run_flags == head_case.run_flags:
        return DecidedRow(verdict="identical", reason="same module bytes, same runtime")
    return None


# What is right to within the tolerance on both sides differs by up to twice as much.
_BOTH_WAYS = 2.0


@dataclass(frozen=True, kw_only=True)
class OutputsOfPair:
    """What is known of the outputs of both sides of a pair."""

    same_program: bool  # Whether both sides compile the same text, or what two releases make of the same file
    # In which way head's outputs are not base's, as a phrase; None: they agree, or nothing is known
    difference: str | None = None
    unknown: str | None = None  # Why they could not be compared, as a phrase; None: they were

    @property
    def verdict(self) -> DecidedRow | None:
        """The pair's verdict, where its outputs decide it."""
        if self.difference is None or not self.same_program:
            return None
        return DecidedRow(verdict="outputs differ", reason=f"head's {self.difference}")

    @property
    def remark(self) -> str:
        """What the row of a changed program says beside its figures; "" where the program is the same."""
        if self.same_program:
            return ""
        if self.difference is not None:
            return f"{AND_OTHER_OUTPUTS}{self.difference}"
        if self.unknown is not None:
            return f"{ANOTHER_PROGRAM}; outputs were not compared: {self.unknown}"
        return f"{ANOTHER_PROGRAM}, with the same outputs"


def compare_pair(pair: Pair, base: Side, head: Side) -> OutputsOfPair:
    """Compare the outputs that the two runs kept of a pair's cases, within the tolerance of the head's suite."""
    base_case, head_case = pair.both
    models = base.evidence.models.get(base_case.model), head.evidence.models.get(head_case.model)
    checks = base.evidence.checks.get(base_case.name), head.evidence.checks.get(head_case.name)
    if models[0] is None or models[1] is None or checks[0] is None or checks[1] is None:
        return OutputsOfPair(same_program=True, unknown="a run has no check of them")
    known = OutputsOfPair(same_program=base_case.id == head_case.id or models[0].mlir_sha256 == models[1].mlir_sha256)
    if _inputs(models[0]) != _inputs(models[1]):
        return replace(known, unknown="the two sides are called with other inputs")
    if not _gives_any(base_case, base) and not _gives_any(head_case, head):
        return known
    if not checks[0].outputs or not checks[1].outputs:
        return replace(known, unknown="a run is of a harness that kept none")
    judged_by_one = checks[0].reference and checks[0].reference == checks[1].reference
    if checks[0].outputs == checks[1].outputs or judged_by_one:
        return known
    base_outputs, head_outputs = (kept_outputs(check.outputs, cache_root()) for check in checks if check is not None)
    if base_outputs is None or head_outputs is None:
        return replace(known, unknown="they are no longer in the cache")
    against = checks[1].against
    of_both = checks[0].against == against and checks[0].max_relative is not None and against not in head.cases
    tolerance = tolerance_of(checks[1], _BOTH_WAYS if of_both else 1.0)
    right = Right(source="base", outputs=base_outputs)
    problem = compare_outputs(head_outputs, right, tolerance, whose="base's", same_elements=True).problem
    return replace(known, difference=problem)


def _gives_any(case: Case, side: Side) -> bool:
    build = side.evidence.builds.get(case.name)
    return build is None or build.outputs != 0


def _inputs(model: ModelRecord) -> list[tuple[str, ...]]:
    """What a model is called with: the files' folder is named by the content of all of them."""
    return [Path(argument.file).parts[-2:] for argument in model.arguments]
