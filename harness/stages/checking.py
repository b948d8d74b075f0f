"""The line of `harness check`: a suite -> its cases, its models, and what is wrong with it; nothing is compiled."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Failure
from harness.stages.models import materialize_models, skip_unfit_peers
from harness.stages.options import compile_limits
from harness.stages.prepare import Prepared, prepare
from harness.store.evidence import is_expected
from harness.suite.cases import Selection
from harness.suite.load import Device
from harness.text import did_you_mean, plural
from harness.toolchain import Toolchain
from harness.toolchain.tools import flag_name

Kind = Literal["contradiction", "failed", "no effect", "unused"]

# Backends whose code a driver runs; all but local devices have one, which --iree-hal-target-device chooses.
_RUNS = {
    "local-sync": ("llvm-cpu", "vmvx", "vmvx-inline"),
    "local-task": ("llvm-cpu", "vmvx", "vmvx-inline"),
    "vulkan": ("vulkan-spirv",),
    "cuda": ("cuda",),
    "hip": ("rocm",),
    "amdgpu": ("rocm",),
    "metal": ("metal-spirv",),
    "webgpu": ("webgpu-spirv",),
}
BACKENDS = tuple(dict.fromkeys(backend for backends in _RUNS.values() for backend in backends))
_TARGET = re.compile(r"^(?:\w+=)?(?P<device>[a-z]+)(?:\[\d+\])?$")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing about a suite, as a sentence that names table and key."""

    kind: Kind
    text: str


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What can be said of a suite without compiling."""

    toolchains: tuple[str, ...]
    cases: tuple[Case, ...]  # All of them, those of peers that refuse their model being skipped
    findings: tuple[Finding, ...]


def check_suite(path: Path, toolchains: Sequence[Toolchain], progress: Progress) -> Checked:
    """Load a suite, hold it against the tools and devices that are here, and make its models."""
    prepared = prepare(path, Selection(), toolchains)
    artifacts = materialize_models(prepared, compile_limits(), progress, notes=False)
    failed = []
    for name, artifact in artifacts.items():
        cases = [case for case in prepared.cases if case.model == name and case.skip is None]
        if isinstance(artifact, Failure) and not all(is_expected(case, artifact) for case in cases):
            fails = plural(len(cases), "case fails", "cases fail")
            failed.append(f"model {name}: {artifact.message}; {fails} with it")
    found: dict[Kind, list[str]] = {
        "contradiction": list(contradictions(prepared)),
        "failed": failed,
        "no effect": list(_without_effect(prepared)),
        "unused": list(_unused(prepared)),
    }
    return Checked(
        toolchains=tuple(toolchain.version for toolchain in prepared.toolchains),
        cases=skip_unfit_peers(prepared, artifacts).cases,
        findings=tuple(Finding(kind=kind, text=text) for kind, texts in found.items() for text in texts),
    )


# --- contradictions ---


def contradictions(prepared: Prepared) -> Iterator[str]:
    """Backends that there are not, that a device cannot run or flags do not choose; flags that are set twice."""
    suite = prepared.suite
    for device in suite.devices:
        where = f"[devices.{device.name}] backend"
        if device.backend not in BACKENDS:
            yield f"{where}: there is no backend {device.backend!r}{did_you_mean(device.backend, BACKENDS)}"
            continue
        runs = [backend for driver in _drivers(device) for backend in _RUNS.get(driver, BACKENDS)]
        if device.backend not in runs:
            yield f"{where}: {device.uri} runs code of {_or(runs)}, not of {device.backend}; change uri or backend"
        chosen = target_backends(device.compile_flags)
        if chosen and device.backend not in chosen:
            yield f"{where}: is {device.backend}, and compile_flags choose {_or(chosen)}; change one of them"
            continue
        for case in prepared.cases:
            chosen = target_backends(case.compile_flags)
            if case.device == device.name and chosen and device.backend not in chosen:
                yield (
                    f"[variants.{case.variant}] on device {device.name}: its flags choose {_or(chosen)}, and backend "
                    f"is {device.backend}; remove the flags, or give them to a device of their own"
                )
                break
    for flag_set in {flag_set.name: flag_set for variant in suite.variants for flag_set in variant.flag_sets}.values():
        for backend in flag_set.backends:
            if backend not in BACKENDS:
                hint = did_you_mean(backend, BACKENDS)
                yield f"[flagsets.{flag_set.name}] backends: there is no backend {backend!r}{hint}"


def target_backends(flags: Iterable[str]) -> tuple[str, ...]:
    """The backends that flags of iree-compile choose; () where they choose none, or one that is not clear."""
    values: dict[str, list[str]] = {}
    for flag in flags:
        values.setdefault(flag_name(flag), []).extend(flag.partition("=")[2].split(","))
    backends = values.get("iree-hal-target-backends", [])
    for value in values.get("iree-hal-target-device", []):
        found = _TARGET.match(value)
        if found is None:
            return ()
        if found["device"] == "local":
            backends += values.get("iree-hal-local-target-device-backends", _RUNS["local-sync"])
        elif found["device"] in _RUNS:
            backends += _RUNS[found["device"]]
        else:
            return ()
    return tuple(dict.fromkeys(backends))


# --- what has no effect ---


def _without_effect(prepared: Prepared) -> Iterator[str]:
    for device in prepared.suite.devices:
        if device.threads and not prepared.peers and "local-task" not in _drivers(device):
            yield f"[devices.{device.name}] threads: is for local-task and peers; remove it"
    ids: dict[tuple[str, str, str], str] = {}
    said = set()
    for case in prepared.cases:
        first = ids.setdefault((case.group, case.toolchain, case.id), case.variant)
        if case.peer is None and first != case.variant and (case.variant, case.device) not in said:
            said.add((case.variant, case.device))
            yield (
                f"[variants.{case.variant}] on device {case.device}: is compiled and run as {first} is; "
                "remove one of them, or its flags"
            )


def _drivers(device: Device) -> list[str]:
    return [uri.partition("://")[0] for uri in device.uris]


# --- not used ---


def _unused(prepared: Prepared) -> Iterator[str]:
    suite = prepared.suite
    kinds = (
        ("models", "model", [model.name for model in suite.models]),
        ("variants", "variant", [variant.name for variant in suite.variants]),
        ("devices", "device", [device.name for device in suite.devices]),
    )
    for table, attribute, names in kinds:
        for name in names:
            cases = [case for case in prepared.cases if getattr(case, attribute) == name and case.peer is None]
            here = [case for case in cases if case.device in prepared.devices]
            if not cases:
                yield f"[{table}.{name}]: [matrix] leaves no case of it"
            elif here and all(case.skip is not None for case in here):
                yield f"[{table}.{name}]: all of its cases are skipped: {here[0].skip}"
    labels = {case.variant for case in prepared.cases if case.peer is not None}
    for label in prepared.peers:
        if label not in labels:
            yield f"peers: {label}: no case is for it, since peers run beside llvm-cpu on one device"


def _or(words: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(words))
