"""What a user can choose: the signatures of `harness bisect` and `harness verdict`, and their help."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.compare.options import CALL_LIMIT_S
from harness.metrics import LATENCY
from harness.options import Flag, Positive, Quiet, Share, Verbose
from harness.records.bisection import Over
from harness.stages.options import CompileTimeout
from harness.store.folders import NAMED
from harness.suite.completion import CASES

_Releases = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True)
class BisectOptions:
    """What a user can choose about a bisect.

    Attributes:
        suite: The suite's TOML file.
        case: The case, as `harness list` shows it.
        over: Search releases between --good and --bad, or which of the variant's flags, plugins and plugin options make
            the difference to --base.
        good: Release on which the case was good, as in iree==3.6.0.
        bad: Release on which it is bad.
        fixed: Release beyond the bad one on which it is good again; since when is searched too.
        release: Only these between the ends (default: all that the package index has); repeatable.
        skip: None of these releases; repeatable.
        pre: Pre-releases too, which pip finds where PIP_FIND_LINKS says.
        all_steps: Search for steps smaller than a quarter of the whole difference too; --resume may add it.
        base: With --over flags: the variant that the case's is held against (default: the suite's baseline).
        toolchain: With --over flags: under this release (default: the one that is installed).
        metric: latency, instructions, compile-time, dispatches, copies, fills, transient-memory, module-size,
            dispatch-size, or an op count of the suite as in flow/tensor.empty.
        floor: Relative change below which nothing counts as a step (default: the suite's, else the metric's).
        row_budget: Wall seconds for looking at one pair; it is more where calls are so long that a verdict needs more,
            up to --row-cap, and confirming a finding takes as much again.
        row_cap: Wall seconds for looking at one pair whose calls take long.
        budget: Wall seconds of all measurements together; what is not known then is found out with --resume.
        seed: Of the order of turns.
        resume: Go on with this bisect (its folder, or latest): what was decided is not measured again, and of one that
            ended, what stayed open is, for which --row-budget and --row-cap may be given anew.
        results: Where the bisect's directory goes, and its runs.
        compile_timeout: Seconds after which a compile is stopped.
        call_timeout: Seconds after which a turn is stopped.
        wait: Wait while another harness measures on this machine; else measure beside it.
        quiet: Say nothing while it works.
        verbose: As of a run.
    """

    suite: Path | None = None
    _: KW_ONLY
    case: Annotated[str | None, CASES] = None
    over: Over = "releases"
    good: str | None = None
    bad: str | None = None
    fixed: str | None = None
    release: _Releases = ()
    skip: _Releases = ()
    pre: Flag = False
    all_steps: Flag = False
    base: str | None = None
    toolchain: str | None = None
    metric: str = LATENCY.name
    floor: Share | None = None
    row_budget: Positive = 60.0
    row_cap: Positive = 1800.0
    budget: Positive | None = None
    seed: int = 0
    resume: Path | None = None
    results: Path = Path("results")
    compile_timeout: CompileTimeout = 900.0
    call_timeout: Positive = CALL_LIMIT_S
    wait: bool = True
    quiet: Quiet = False
    verbose: Verbose = False

    @property
    def chosen(self) -> tuple[Path, str]:
        """Suite and case, once it is known that both are given."""
        assert self.suite is not None and self.case is not None  # noqa: S101 (whoever begins a bisect makes sure)
        return self.suite, self.case


@Parameter(name="*")
@dataclass(frozen=True)
class VerdictOptions:
    """What a user can choose about a verdict.

    Attributes:
        suite: The suite's TOML file, as it is now.
        case: The case, as `harness list` shows it.
        against: A run of the good side that has the case; its modules have to be in the cache still.
        compiler: iree-compile as somebody built it, the folder that it is in, or IREE's build folder (default: that of
            the run's release).
        runtime: Likewise iree-run-module and the other tools of the runtime.
        metric: As of `harness bisect`.
        floor: Relative change below which it is good (default: the suite's, else the metric's).
        row_budget: Wall seconds for looking; confirming a finding takes as much again.
        row_cap: Wall seconds for looking where calls take long and the two differ plainly.
        seed: Of the order of turns.
        results: Where the run's directory goes.
        compile_timeout: Seconds after which a compile is stopped.
        call_timeout: Seconds after which a turn is stopped.
        wait: Wait while another harness measures on this machine; else measure beside it.
        quiet: Say nothing but the verdict.
        verbose: As of a run.
    """

    suite: Path
    _: KW_ONLY
    case: Annotated[str, CASES]
    against: Annotated[Path, NAMED]
    compiler: Path | None = None
    runtime: Path | None = None
    metric: str = LATENCY.name
    floor: Share | None = None
    row_budget: Positive = 60.0
    row_cap: Positive = 1800.0
    seed: int = 0
    results: Path = Path("results")
    compile_timeout: CompileTimeout = 900.0
    call_timeout: Positive = CALL_LIMIT_S
    wait: bool = True
    quiet: Quiet = False
    verbose: Verbose = False
