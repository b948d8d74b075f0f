"""What a user can choose about a run: the signature of `harness run`, its help, and the settings that the run keeps."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from harness.options import Count, Patterns, Positive, Tags, Toolchains

if TYPE_CHECKING:
    from harness.process import Limits

# Of the machine's memory: where a compile is stopped when nobody says otherwise.
_MEMORY_SHARE = 0.8


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """What a user can choose about a run.

    Attributes:
        suite: The suite's TOML file.
        resume: Go on with this interrupted run; finished work is not repeated.
        toolchains: Under these releases.
        patterns: Only these cases.
        tags: Only cases with these tags.
        budget_s: Seconds of timed rounds for the whole run (default: the suite's).
        generations: Fresh sets of processes, the independent samples (default: the suite's).
        jobs: Compiles at once (default: the number of cores).
        measure: Time the cases; else compile and check them, as for a side of a comparison.
        seed: Of the order of turns (default: 0).
        results: Where the run's directory goes.
        compile_timeout_s: Seconds after which a compile is stopped.
        compile_memory_gib: GiB of memory at which a compile is stopped (default: 80 % of the machine's).
        call_timeout_s: Seconds after which a turn, or one call through iree-run-module, is stopped.
    """

    suite: Path | None = None
    _: KW_ONLY
    resume: Path | None = None
    toolchains: Toolchains = ()
    patterns: Patterns = ()
    tags: Tags = ()
    budget_s: Annotated[Positive | None, Parameter(name="--budget")] = None
    generations: Count | None = None
    jobs: Count | None = None
    measure: bool = True
    seed: int | None = None
    results: Path = Path("results")
    compile_timeout_s: Annotated[Positive, Parameter(name="--compile-timeout")] = 900.0
    compile_memory_gib: Annotated[Positive | None, Parameter(name="--compile-memory")] = None
    call_timeout_s: Annotated[Positive, Parameter(name="--call-timeout")] = 300.0

    @property
    def compilers(self) -> int:
        """How many compiles run at once."""
        return self.jobs or os.cpu_count() or 1

    @property
    def compile_limits(self) -> Limits:
        """What one compile may use."""
        return compile_limits(self.compile_timeout_s, self.compile_memory_gib)


def compile_limits(seconds: float = 900.0, memory_gib: float | None = None) -> Limits:
    """What one compile may use: so many seconds, and so much memory or most of the machine's."""
    import psutil

    from harness.process import Limits

    most = int(memory_gib * 2**30) if memory_gib else int(psutil.virtual_memory().total * _MEMORY_SHARE)
    return Limits(seconds=seconds, memory_bytes=most)
