"""What measuring needs to know of cases and groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.toolchain import Toolchain


@dataclass(frozen=True, kw_only=True)
class Loadable:
    """A compiled case with all that a worker needs to call it.

    Attributes:
        arguments: One mapping an argument: {"file": path} of an .npy, or of raw bytes with "raw", "shape" and
            "element_type" for types that numpy lacks.
        parameters: External weights by scope.
        run_flags: Runtime flags; cases with other flags live in another worker.
    """

    name: str
    module: Path
    function: str
    arguments: tuple[Mapping[str, Any], ...]
    parameters: Mapping[str, Path]
    run_flags: tuple[str, ...]
    toolchain: Toolchain


@dataclass(frozen=True, kw_only=True)
class Group:
    """Cases that are measured against each other on one device.

    Attributes:
        cpus: Cores to hold the workers on; None: wherever the system puts them.
    """

    name: str
    uri: str
    cases: tuple[Loadable, ...]
    cpus: frozenset[int] | None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long and how carefully to measure.

    Attributes:
        seconds: Budget of timed rounds for one generation of one group.
        target_turn_ns: Calls shorter than this are batched until a turn takes about this long. Driving a call through
            iree.runtime costs some tens of microseconds and a clock read less than one, so 1 ms keeps both small.
        least_rounds: Rounds that a generation has even where they take longer than its budget; even, for balance.
        call_limit_s: A turn that takes longer is stopped.
    """

    seconds: float
    seed: int = 0
    target_turn_ns: int = 1_000_000
    least_rounds: int = 2
    call_limit_s: float = 300.0
