"""What a suite says, as plain values: the result of loading and checking a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.models.model import Expectation, Model
from harness.records.case import Gate, VariantGroup


@dataclass(frozen=True, kw_only=True)
class FlagSet:
    """A named list of flags, from flagsets/*.toml.

    Attributes:
        backends: Compiler backends it applies to; empty: all.
        toolchains: A PEP 440 specifier of the releases it applies to ("" means all).
    """

    name: str
    description: str = ""
    compile: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    toolchains: str = ""


@dataclass(frozen=True, kw_only=True)
class PluginUse:
    """A plugin by its registered name, and the options that a variant gives it."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How reports name it: `tuned(vector_width = 16)`, or the bare name."""
        given = ", ".join(f"{key} = {_toml(value)}" for key, value in self.options.items())
        return f"{self.name}({given})" if given else self.name


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


@dataclass(frozen=True, kw_only=True)
class PeerUse:
    """A peer by its registered name, the options that a suite gives it, and what its cases are called."""

    name: str
    label: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A named way to compile and run: flag sets first, then its own flags, then plugins."""

    name: str
    description: str = ""
    flag_sets: tuple[FlagSet, ...] = ()
    compile_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()
    plugins: tuple[PluginUse, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Device:
    """Where a module runs.

    Attributes:
        uri: What iree-run-module takes as --device: `local-sync`, `local-task`, `vulkan`, `cuda://0`, ...
        more_uris: Of the other devices of a program that runs on several, in their order; the first one, where
            arguments are put, is `uri`.
        vulkan_driver: The only driver that the Vulkan loader is shown: `lavapipe`, `swiftshader`; None: all of them.
        threads: That each local-task device and peers get; None: IREE's choice, and see `Case.threads`.
        backend: The compiler backend that its flags choose: llvm-cpu, vmvx, vulkan-spirv, cuda, ...
        pin: Hold the process on one core.
    """

    name: str
    description: str = ""
    uri: str
    more_uris: tuple[str, ...] = ()
    vulkan_driver: str | None = None
    threads: int | None = None
    backend: str
    compile_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()
    pin: bool = False
    tags: tuple[str, ...] = ()

    @property
    def uris(self) -> tuple[str, ...]:
        """All of its devices, the first one first."""
        return (self.uri, *self.more_uris)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A checked suite: every name in it refers to something that exists.

    Attributes:
        floors: By metric, the relative change below which nothing is called changed, in place of the metric's own.
        ir: By phase of the compiler, the ops that are counted; see harness.ir.
        storage: Whether to tell what encoded tensors cost in memory.
    """

    name: str
    description: str
    path: Path
    baseline: str
    models: tuple[Model, ...]
    variants: tuple[Variant, ...]
    devices: tuple[Device, ...]
    peers: tuple[PeerUse, ...] = ()
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    groups: tuple[VariantGroup, ...] = ()
    floors: Mapping[str, float] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()
    ir: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    storage: bool = False
    budget_s: float = 120.0
    generations: int = 5


@dataclass(frozen=True, kw_only=True)
class SuiteList:
    """Suites that are run one after the other, each into a run of its own.

    Attributes:
        suites: Their files, as paths from the current folder.
        budget_s: Seconds of timed rounds for each of them; None: its own.
        generations: Likewise.
    """

    name: str
    description: str
    path: Path
    suites: tuple[Path, ...]
    budget_s: float | None = None
    generations: int | None = None
