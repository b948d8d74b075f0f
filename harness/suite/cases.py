"""Suite -> cases: the matrix, its names and its identities, under one toolchain or several side by side."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from harness.errors import NothingSelected, SuiteError
from harness.models.model import Model
from harness.plugins import Applied
from harness.records.case import ID_DIGITS, Case
from harness.suite.cells import SuitePeer, cell_of, peer_cases
from harness.suite.flags import find_trap
from harness.suite.load import Suite
from harness.suite.present import Presence
from harness.toolchain.tools import flag_name


def matching(patterns: Iterable[str]) -> re.Pattern[str]:
    """One expression that matches a whole name if any of the patterns does; with no pattern, only the empty name."""
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns))


def across_toolchains(plans: Sequence[Sequence[Case]]) -> tuple[Case, ...]:
    """The cases of one suite under several toolchains, each case followed by itself under the others.

    A single plan stays as it is. In a plan of several, names end in the toolchain, as in `net/stock@cpu:3.12.0`, and
    each group has one baseline: the suite's baseline variant under the first toolchain that runs it here. All other
    cases, also those of the baseline variant under another toolchain, are compared with it. A peer has no toolchain
    and one case.

    Args:
        plans: What `plan_cases` gave for each toolchain: the same cases in the same order.
    """
    if len(plans) == 1:
        return tuple(plans[0])
    compared_with = _baseline_toolchains(plans)
    return tuple(
        case
        if case.peer is not None
        else replace(
            case,
            name=f"{case.name}:{case.toolchain}",
            baseline=case.baseline and compared_with[case.group] == case.toolchain,
        )
        for same in zip(*plans, strict=True)
        for case in (same[:1] if same[0].peer is not None else same)
    )


def _baseline_toolchains(plans: Sequence[Sequence[Case]]) -> Mapping[str, str]:
    """For each group, the first toolchain under which its baseline variant is not skipped; else the first of all."""
    toolchains: dict[str, str] = {}
    for may_be_skipped in (False, True):
        for plan in plans:
            for case in plan:
                if case.baseline and (may_be_skipped or case.skip is None):
                    toolchains.setdefault(case.group, case.toolchain)
    return toolchains


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which of a suite's cases a user asked for; empty: all of them.

    Attributes:
        patterns: Shell patterns on case names; a case matches one of them.
        tags: A case has at least one of them.
    """

    patterns: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def plan_cases(
    suite: Suite,
    *,
    model_ids: Mapping[str, str],
    toolchain: str,
    plugins: Mapping[str, Sequence[Applied]],
    devices: Mapping[str, Presence],
    peers: Sequence[SuitePeer] = (),
    missing_peers: Mapping[str, str] = MappingProxyType({}),
    selection: Selection = Selection(),
) -> tuple[Case, ...]:
    """All cases of a suite under one toolchain, model by model, device by device, the baseline first and peers last.

    The order does not depend on the toolchain.

    Args:
        model_ids: Content hash of each model's definition, by name.
        toolchain: Version of the compiler and runtime pair.
        plugins: By variant name, its plugins in order with their options; variants without plugins need no entry.
        devices: What the suite's devices are here, by name.
        peers: The suite's, with their options.
        missing_peers: Why a peer cannot be used here, as a sentence, by label.
        selection: What the user asked for; each selected case brings its baseline.
    """
    variants = sorted(suite.variants, key=lambda variant: variant.name != suite.baseline)
    cells = {
        (variant.name, device.name): cell_of(
            suite, variant, device, devices[device.name], toolchain, plugins.get(variant.name, ())
        )
        for device in suite.devices
        for variant in variants
    }
    every = [
        case
        for model in suite.models
        for device in suite.devices
        for case in (
            *(_case(model, model_ids[model.name], cells[variant.name, device.name]) for variant in variants),
            *peer_cases(model, model_ids[model.name], device, peers, missing_peers, devices[device.name].missing),
        )
    ]
    chosen = _matrix(suite, every)
    _refuse_traps(suite, chosen)
    chosen = _with_expectations(suite, chosen)
    for gate in suite.gates:
        _require_hits(suite.path, f"[gates.{gate.name}] cases", [gate.cases], [case.name for case in chosen])
    return _select(suite, chosen, selection)


def _case(model: Model, model_id: str, cell: Case) -> Case:
    return replace(
        cell,
        id=hashlib.sha256(f"{model_id}:{cell.id}".encode()).hexdigest()[:ID_DIGITS],
        name=f"{model.name}/{cell.name}",
        model=model.name,
        tags=tuple(dict.fromkeys((*model.tags, *cell.tags))),
    )


def _require_hits(path: Path, key: str, patterns: Sequence[str], names: Sequence[str]) -> None:
    for pattern in patterns:
        matches = matching([pattern]).match
        if not any(matches(name) for name in names):
            example = f", such as {names[0]}" if names else ""
            raise SuiteError(
                f"{path}: {key}: {pattern!r} matches no case; patterns are matched with model/variant@device{example}"
            )


def _matrix(suite: Suite, cases: Sequence[Case]) -> list[Case]:
    names = [case.name for case in cases]
    _require_hits(suite.path, "[matrix] include", suite.include, names)
    _require_hits(suite.path, "[matrix] exclude", suite.exclude, names)
    included = matching(suite.include).match
    excluded = matching(suite.exclude).match if suite.exclude else lambda _: None
    left = [case for case in cases if included(case.name) and not excluded(case.name)]
    if not left:
        raise SuiteError(f"{suite.path}: [matrix] exclude leaves no case; remove a pattern")
    with_baseline = {case.group for case in left if case.baseline}
    for case in left:
        if case.group not in with_baseline:
            raise SuiteError(
                f"{suite.path}: [matrix] leaves {case.name} without its baseline {suite.baseline!r}; "
                f"include {case.model}/{suite.baseline}@{case.device} or exclude {case.model}/*@{case.device}"
            )
    return left


def _refuse_traps(suite: Suite, cases: Sequence[Case]) -> None:
    for case in {(case.variant, case.device): case for case in cases}.values():
        trap = find_trap(case.compile_flags)
        if trap is not None:
            rule, flags = trap
            raise SuiteError(
                f"{suite.path}: [variants.{case.variant}] on device {case.device}: {' and '.join(flags)} "
                f"{rule.effect}; {rule.instead}"
            )


def _with_expectations(suite: Suite, cases: Sequence[Case]) -> list[Case]:
    names = [case.name for case in cases]
    _require_hits(suite.path, "[[expect]] cases", [expectation.cases for expectation in suite.expectations], names)
    rules = [(matching([expectation.cases]).match, expectation) for expectation in suite.expectations]
    of_models = {model.name: model.expectation for model in suite.models}

    def expected(case: Case) -> Case:
        of_model = of_models[case.model] if case.peer is None else None
        expectation = next((rule for match, rule in rules if match(case.name)), of_model)
        if expectation is None:
            return case
        message = expectation.message
        return replace(case, expected_failure=message, expected_mismatch=message is None)

    return [expected(case) for case in cases]


def _select(suite: Suite, cases: Sequence[Case], selection: Selection) -> tuple[Case, ...]:
    if not selection.patterns and not selection.tags:
        return tuple(cases)
    by_name = matching(selection.patterns).match if selection.patterns else lambda _: True
    wanted_tags = set(selection.tags)
    wanted = {
        case.name for case in cases if by_name(case.name) and (not wanted_tags or wanted_tags.intersection(case.tags))
    }
    if not wanted:
        options = [f"--filter {pattern}" for pattern in selection.patterns] + [f"--tag {tag}" for tag in selection.tags]
        raise NothingSelected(
            f"{suite.path}: {' '.join(options)} matches no case; `harness list {suite.path}` shows them all"
        )
    groups = {case.group for case in cases if case.name in wanted}
    return tuple(case for case in cases if case.name in wanted or (case.baseline and case.group in groups))


def unknown_flags(flags: Sequence[str], known: frozenset[str]) -> list[str]:
    """Compile flags that the compiler does not know; [] where a compiler plugin brings flags of its own."""
    names = [flag_name(flag) for flag in flags]
    if "iree-load-plugin" in names and "iree-load-plugin" in known:
        return []
    return [flag for name, flag in zip(names, flags, strict=True) if name not in known]
