"""Two command lines of iree-compile -> generations of one row."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from harness import process
from harness.compare.engine import Generation
from harness.compare.modules import Module
from harness.compile.request import MODEL_FILE
from harness.errors import CaseError


class CompileSampler:
    """Compiles both sides once a generation, one after the other on the same core, and never from the cache."""

    def __init__(self, *, base: Module, head: Module, cpus: frozenset[int] | None, limits: process.Limits) -> None:
        """Take the sides as they are; `limits` are for each compile."""
        self._sides = {"base": base, "head": head}
        self._cpus = cpus
        self._limits = limits

    def sample(self, number: int) -> Generation:
        """Compile both; the side that comes first changes each time.

        Raises:
            CaseError: One of them does not compile any more.
        """
        order = list(self._sides) if number % 2 == 0 else list(self._sides)[::-1]
        taken = {name: self._compile(name) for name in order}
        return Generation(
            log_ratio=math.log(taken["head"] / taken["base"]) if min(taken.values()) > 0 else None,
            base=taken["base"],
            head=taken["head"],
            rounds=1,
            seconds=sum(taken.values()) / 1e9,
        )

    def _compile(self, name: str) -> float:
        """Nanoseconds of one compile."""
        side = self._sides[name]
        with tempfile.TemporaryDirectory(prefix="harness-compile-") as folder:
            for file, link in ((side.mlir, MODEL_FILE), *((file, file.name) for file in side.files)):
                (Path(folder) / link).symlink_to(file.resolve())
            command = [str(side.loadable.toolchain.iree_compile), *side.build.command[1:]]
            try:
                done = process.run(command, cwd=Path(folder), limits=self._limits, cpus=self._cpus)
            except OSError as error:
                raise CaseError("compile", f"iree-compile cannot be started ({error.strerror})") from None
        if not done.ok:
            raise CaseError("compile", f"the {name}'s iree-compile {done.how_it_ended(self._limits)}", done.stderr)
        return float(done.wall_ns)
