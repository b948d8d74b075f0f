"""Suite -> cases: the matrix, its names and its identities, under one toolchain or several side by side."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from cyclopts import Parameter
from packaging.specifiers import SpecifierSet

from harness.errors import NothingSelected, SuiteError, UsageError
from harness.models.model import Model
from harness.options import Strings
from harness.plugins import Applied
from harness.plugins.chain import Arranged, arrange
from harness.records.case import ID_DIGITS, Case
from harness.suite.devices import Presence
from harness.suite.flags import find_trap, normalised
from harness.suite.load import Device, Suite, Variant, load_suite
from harness.suite.schema import PeerTable
from harness.text import did_you_mean, matching, shown, such_as
from harness.toolchain.tools import flag_name, merge_flags


def across_toolchains(plans: Sequence[Sequence[Case]]) -> tuple[Case, ...]:
    """The cases of one suite under several toolchains, each case followed by itself under the others.

    Their names end in the toolchain, as in `net/stock@cpu:3.12.0`. Each group has one baseline: the baseline variant
    under the first toolchain that runs it here. A single plan stays as it is, and a peer has one case.
    """
    if len(plans) == 1:
        return tuple(plans[0])
    # For each group, the first toolchain under which its baseline variant is not skipped; else the first of all.
    baselines = [case for plan in plans for case in plan if case.baseline]
    compared_with: dict[str, str] = {}
    for case in sorted(baselines, key=lambda case: case.skip is not None):
        compared_with.setdefault(case.group, case.toolchain)
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


# --- Which cases ---


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One of `count` parts of a plan, `number` being from 1: what one of several machines runs, with `--shard 2/8`.

    A hash of a model's name decides where all of its cases are, so that a suite that grows moves none of the others.
    """

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def has(self, case: Case) -> bool:
        """Whether a case is in it."""
        digest = hashlib.sha256(case.model.encode(errors="surrogatepass")).digest()
        return int.from_bytes(digest, "big") % self.count + 1 == self.number


def parse_shard(text: str) -> Shard:
    """`2/8`, the second of eight."""
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text.strip())
    number, count = (int(match[1]), int(match[2])) if match is not None else (0, 0)
    if not 1 <= number <= count:
        raise UsageError(
            f"--shard {shown(text)}: is no shard; write its number and how many there are, as in 2/8, from 1/8 to 8/8"
        )
    return Shard(number=number, count=count)


def case_names(path: Path, *, peers: bool = True) -> list[str]:
    """Names of a suite's cases by its matrix, skipped ones included; nothing is asked of this machine."""
    suite = load_suite(path)
    variants = [variant.name for variant in suite.variants]
    variants += [peer.case_label for peer in suite.peers] if peers else []
    names = [
        f"{model.name}/{variant}@{device.name}"
        for model in suite.models
        for variant in variants
        for device in suite.devices
    ]
    included, excluded = matching(suite.include).match, matching(suite.exclude).match
    return [name for name in names if included(name) and not excluded(name)]


def case_meant(path: Path, case: str | None) -> str:
    """The case of a suite that a user names, or the only one that there is."""
    if case is None:
        names = case_names(path, peers=False)
        if len(names) != 1:
            raise UsageError(f"{path}: which case is not said; give it behind the suite{such_as(names)}")
        return names[0]
    names = case_names(path)
    if case not in names:
        hint = did_you_mean(case, names, f"; `harness list {path}` shows them all")
        raise UsageError(f"{path}: there is no case {case!r}{hint}")
    return case


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """Which cases, by their names.

    Attributes:
        patterns: Only cases whose name matches; shell patterns; repeatable.
    """

    patterns: Annotated[Strings, Parameter(name="--filter")] = ()


@dataclass(frozen=True, kw_only=True)
class Selection(Filtered):
    """Which of a suite's cases a user asked for, by their names and tags; empty: all of them.

    Attributes:
        tags: Only cases with this tag; repeatable.
    """

    tags: Annotated[Strings, Parameter(name="--tag")] = ()


def plan_cases(
    suite: Suite,
    *,
    model_ids: Mapping[str, str],
    toolchain: str,
    plugins: Mapping[str, Sequence[Applied]],
    devices: Mapping[str, Presence],
    peers: Sequence[PeerTable] = (),
    missing_peers: Mapping[str, str] = MappingProxyType({}),
    selection: Selection = Selection(),
) -> tuple[Case, ...]:
    """All cases of a suite under one toolchain, model by model, device by device, the baseline first and peers last.

    Each selected case brings its baseline. `model_ids` are content hashes of the models' definitions; `peers` have all
    of their options, defaults included, and `missing_peers` says why one cannot be used here, by label.
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
    for case in {(case.variant, case.device): case for case in chosen}.values():
        if (trap := find_trap(case.compile_flags)) is not None:
            rule, flags = trap
            raise SuiteError(
                f"{suite.path}: [variants.{case.variant}] on device {case.device}: {' and '.join(flags)} "
                f"{rule.effect}; {rule.instead}"
            )
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
    included, excluded = matching(suite.include).match, matching(suite.exclude).match
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
        return replace(case, expected_failure=expectation.message, expected_mismatch=expectation.message is None)

    return [expected(case) for case in cases]


def _select(suite: Suite, cases: Sequence[Case], selection: Selection) -> tuple[Case, ...]:
    if not selection.patterns and not selection.tags:
        return tuple(cases)
    by_name = matching(selection.patterns or ("*",)).match
    tags = set(selection.tags)
    wanted = {case.name for case in cases if by_name(case.name) and (not tags or tags.intersection(case.tags))}
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


# --- One variant, or one peer, on one device: the flags, files and identity of its cases ---


def threads_of(device: Device) -> int | None:
    """How many threads a peer gets on a device; None: one for each core."""
    return device.threads or (1 if device.pin or set(device.uris) == {"local-sync"} else None)


def chain_of(suite: Suite, variant: Variant, device: Device, plugins: Sequence[Applied]) -> Arranged:
    """Put a variant's plugins in order, on top of its flags on a device."""
    return arrange(plugins, _own_flags(variant, device), f"{suite.path}: [variants.{variant.name}] plugins")


def cell_of(
    suite: Suite,
    variant: Variant,
    device: Device,
    here: Presence,
    toolchain: str,
    plugins: Sequence[Applied],
) -> Case:
    """Join a variant's flags and plugins with a device's: what every case of the two has, whatever its model is."""
    arranged = chain_of(suite, variant, device, plugins)
    compile_flags = merge_flags(_own_flags(variant, device), arranged.compile_flags)
    has_pool = bool(device.threads) and any(uri.split("://", 1)[0] == "local-task" for uri in device.uris)
    run_flags = merge_flags(
        (f"--task_topology_group_count={device.threads}",) if has_pool else (),
        device.run_flags,
        *(flag_set.run for flag_set in variant.flag_sets),
        variant.run_flags,
        arranged.run_flags,
    )
    identity = [
        device.uri,
        device.pin,
        list(normalised(compile_flags)),
        list(normalised(run_flags)),
        [[use.name, use.plugin.version, use.options] for use in plugins],
        # Only where a device has them, so that the cases of older suites keep their identity.
        *([{"more_uris": device.more_uris}] if device.more_uris else []),
        *([{"vulkan_driver": device.vulkan_driver}] if device.vulkan_driver else []),
        *([{"host": device.host}] if device.host else []),
    ]
    return Case(
        id=hashlib.sha256(json.dumps(identity, sort_keys=True, separators=(",", ":")).encode()).hexdigest(),
        name=f"{variant.name}@{device.name}",
        model="",
        variant=variant.name,
        device=device.name,
        toolchain=toolchain,
        baseline=variant.name == suite.baseline,
        uri=device.uri,
        more_uris=device.more_uris,
        threads=threads_of(device),
        environment=dict(here.environment),
        backend=device.backend,
        pin=device.pin,
        compile_flags=compile_flags,
        run_flags=run_flags,
        plugins=tuple(plugin.with_options for plugin in variant.plugins),
        tags=(*variant.tags, *device.tags),
        skip=here.missing or _not_applicable(variant, device, toolchain, plugins),
    )


def _own_flags(variant: Variant, device: Device) -> tuple[str, ...]:
    return merge_flags(device.compile_flags, *(flag_set.compile for flag_set in variant.flag_sets), variant.flags)


def suits(variant: Variant, toolchain: str) -> bool:
    """Whether a variant, with its flag sets, is for this release of IREE."""
    specifiers = [variant.toolchains, *(flag_set.toolchains for flag_set in variant.flag_sets)]
    return all(covers(specifier, toolchain) for specifier in specifiers)


def covers(toolchains: str, toolchain: str) -> bool:
    """Whether a PEP 440 specifier, "" for all releases, holds a release of IREE."""
    return not toolchains or SpecifierSet(toolchains).contains(toolchain, prereleases=True)


def _not_applicable(variant: Variant, device: Device, toolchain: str, plugins: Sequence[Applied]) -> str | None:
    limits: list[tuple[str, Sequence[str], str]] = [(f"variant {variant.name}", (), variant.toolchains)]
    limits += [(f"flag set {flag_set.name}", flag_set.backends, flag_set.toolchains) for flag_set in variant.flag_sets]
    limits += [(f"plugin {use.name}", use.plugin.backends, use.plugin.toolchains) for use in plugins]
    for what, backends, toolchains in limits:
        if backends and device.backend not in backends:
            return f"{what} is for {', '.join(backends)}, and device {device.name} is {device.backend}"
        if not covers(toolchains, toolchain):
            return f"{what} is for IREE {toolchains}, and this is {toolchain}"
    return None


def peer_cases(
    model: Model,
    model_id: str,
    device: Device,
    peers: Sequence[PeerTable],
    missing: Mapping[str, str],
    unavailable: str | None,
) -> list[Case]:
    """The cases of all peers for one model on one device; [] but beside what llvm-cpu makes for one local device."""
    if device.backend != "llvm-cpu" or device.more_uris:
        return []

    def identity(peer: PeerTable) -> str:
        definition = [model_id, "peer", peer.name, peer.options, device.uri, device.pin, threads_of(device)]
        definition += [{"host": device.host}] if device.host else []
        text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]

    return [
        Case(
            id=identity(peer),
            name=f"{model.name}/{peer.case_label}@{device.name}",
            model=model.name,
            variant=peer.case_label,
            device=device.name,
            toolchain="",
            baseline=False,
            uri=device.uri,
            threads=threads_of(device),
            backend=device.backend,
            pin=device.pin,
            compile_flags=(),
            run_flags=(),
            plugins=(),
            tags=tuple(dict.fromkeys((*model.tags, "peer", *device.tags))),
            skip=unavailable or missing.get(peer.case_label),
            peer=peer.name,
        )
        for peer in peers
    ]
