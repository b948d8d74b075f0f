"""A case that is compiled, and its IR at any phase."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.ir.dump import LacksPhase, dump_phases, entry_phase
from harness.ir.tools import UnreadPhase
from harness.metrics import PHASES
from harness.models.materialize import ModelArtifact
from harness.process import Limits
from harness.records.run import Build
from harness.toolchain import Toolchain

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A build that did not fail, with what it was made of."""

    build: Build
    mlir: Path  # The model's program
    shapes: list[list[int]]  # Of its arguments
    toolchain: Toolchain
    limits: Limits  # What another compile of it may use

    @classmethod
    def of(cls, build: Build, artifact: ModelArtifact, toolchain: Toolchain, limits: Limits) -> Compiled:
        """A build of a model that was made now."""
        shapes = [list(argument.shape) for argument in artifact.arguments]
        return cls(build=build, mlir=artifact.mlir, shapes=shapes, toolchain=toolchain, limits=limits)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags with which it was compiled, without those that name its output."""
        position = self.build.command.index("-o")
        flags = (*self.build.command[2:position], *self.build.command[position + 2 :])
        return tuple(flag for flag in flags if not flag.startswith("--iree-scheduling-dump-statistics"))

    def reached(self, phases: Iterable[str]) -> list[str]:
        """Those of the phases that it went through: a program that was rewritten at a phase begins there."""
        entry = PHASES.index(entry_phase(self.build.command))
        return [phase for phase in phases if PHASES.index(phase) >= entry]

    @contextmanager
    def ir(self, phases: Collection[str]) -> Iterator[dict[str, Path]]:
        """Its IR at phases of the compiler, in files that are there for as long as the context is."""
        cache = BuildCache(cache_root())
        with tempfile.TemporaryDirectory(prefix="harness-ir-", ignore_cleanup_errors=True) as folder:
            yield dump_phases(
                self.flags,
                cache.program(self.build) or self.mlir,
                phases,
                toolchain=self.toolchain,
                folder=Path(folder),
                limits=self.limits,
                files=cache.files(self.build),
            )


def at_readable_phases(
    phases: Sequence[str], look: Callable[[Sequence[str]], T], *, exactly: bool = False
) -> tuple[T, dict[str, str]]:
    """What a look at the IR of these phases gives, without those that a compiler lacks or that cannot be read back."""
    left, unread = list(phases), dict[str, str]()
    while True:
        try:
            return look(left), unread
        except (LacksPhase, UnreadPhase) as error:
            if exactly or error.phase not in left:
                raise
            left.remove(error.phase)
            if isinstance(error, UnreadPhase):
                unread[error.phase] = error.why
