"""Suites built from a few words, and their plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.models.model import Model
from harness.peers.registry import AppliedPeer
from harness.plugins import Applied
from harness.records.case import Case
from harness.suite.cases import Selection, plan_cases
from harness.suite.load import Device, Suite, Variant


def a_model(name: str = "net", **fields: Any) -> Model:
    return Model(name=name, mlir=Path(f"{name}.mlir"), params={}, parameters={}, **fields)


def a_variant(name: str = "stock", *flags: str, **fields: Any) -> Variant:
    return Variant(name=name, compile_flags=flags, **fields)


def a_device(name: str = "cpu", **fields: Any) -> Device:
    return Device(**{"name": name, "uri": "local-sync", "backend": "llvm-cpu", **fields})


def a_suite(
    *variants: Variant,
    models: tuple[Model, ...] = (a_model(),),
    devices: tuple[Device, ...] = (a_device(),),
    **fields: Any,
) -> Suite:
    """One model on one device, with the first variant as its baseline."""
    variants = variants or (a_variant(),)
    return Suite(
        name="suite",
        description="",
        path=Path("suite.toml"),
        baseline=variants[0].name,
        models=models,
        variants=variants,
        devices=devices,
        **fields,
    )


def plan(
    suite: Suite,
    *,
    model_ids: Mapping[str, str] | None = None,
    toolchain: str = "3.13.0",
    plugins: Mapping[str, Sequence[Applied]] | None = None,
    unavailable: Mapping[str, str] | None = None,
    environments: Mapping[str, Mapping[str, str]] | None = None,
    peers: Sequence[AppliedPeer] = (),
    missing_peers: Mapping[str, str] | None = None,
    patterns: tuple[str, ...] = (),
    tags: tuple[str, ...] = (),
) -> tuple[Case, ...]:
    return plan_cases(
        suite,
        model_ids=model_ids or {model.name: f"the definition of {model.name}" for model in suite.models},
        toolchain=toolchain,
        plugins=plugins or {},
        unavailable=unavailable or {},
        environments=environments,
        peers=peers,
        missing_peers=missing_peers or {},
        selection=Selection(patterns=patterns, tags=tags),
    )


def names(cases: tuple[Case, ...]) -> list[str]:
    return [case.name for case in cases]
