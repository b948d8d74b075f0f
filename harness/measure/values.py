"""What measuring needs to know of cases and groups."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from harness.measure.session import WorkerSession
from harness.process import Limits
from harness.toolchain import Toolchain

WORKER = Path(__file__).with_name("worker.py")


class Loadable(Protocol):
    """A case with all that a worker needs to call it."""

    @property
    def name(self) -> str:
        """The case's."""
        ...

    @property
    def home(self) -> Hashable:
        """Cases with equal homes live in one worker."""
        ...

    def worker(self, group: Group, limits: Limits) -> WorkerSession:
        """A worker for this case and others of the same home, not started yet."""
        ...

    def request(self) -> Mapping[str, Any]:
        """What the worker's `load` takes besides the case."""
        ...


@dataclass(frozen=True, kw_only=True)
class LoadableModule:
    """A compiled case.

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

    @property
    def home(self) -> Hashable:
        """Flags are read once by a runtime, so cases with other flags need another one."""
        return self.toolchain.python, self.run_flags

    def worker(self, group: Group, limits: Limits) -> WorkerSession:
        """A worker of this case's toolchain on the group's devices."""
        return WorkerSession(
            command=[*self.toolchain.python_command, "-u", str(WORKER)],
            opening={"uris": [group.uri, *group.more_uris], "flags": list(self.run_flags)},
            cpus=group.cpus,
            env=group.environment,
            cwd=self.module.parent,
            limits=limits,
        )

    def request(self) -> Mapping[str, Any]:
        """The module, its entry function, its arguments and weights."""
        return {
            "module": str(self.module.absolute()),
            "function": self.function,
            "arguments": [dict(argument) for argument in self.arguments],
            "parameters": {scope: str(file.absolute()) for scope, file in self.parameters.items()},
        }


@dataclass(frozen=True, kw_only=True)
class Group:
    """Cases that are measured against each other on one device.

    Attributes:
        uri: The device, or of several the one where arguments are put.
        more_uris: The other devices of programs that run on several, in order.
        environment: Variables that the workers need.
        cpus: Cores to hold the workers on; None: wherever the system puts them.
    """

    name: str
    uri: str
    more_uris: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
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
