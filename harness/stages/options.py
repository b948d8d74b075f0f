"""What a user can choose of `run`, `ablate`, `ir` and `explain`: signatures, help, and what a run keeps of it."""

from __future__ import annotations

import os
import shlex
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

import psutil
from cyclopts import Parameter
from cyclopts.completion import CompletionContext

from harness.options import (
    Certificates,
    Count,
    Flag,
    FleetAddress,
    Format,
    Patterns,
    Positive,
    Quiet,
    Share,
    Tags,
    Toolchains,
    TrustNetwork,
    Verbose,
    fleet_words,
)
from harness.process import Limits
from harness.store.folders import NAMED, complete_folders
from harness.suite.completion import CASES, complete_cases, names_to_offer

# Of the machine's memory: where a compile is stopped when nobody says otherwise.
_MEMORY_SHARE = 0.8

CompileTimeout = Annotated[Positive, Parameter(name="--compile-timeout")]
Budget = Annotated[Positive | None, Parameter(name="--budget")]


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """What a user can choose about a run.

    Attributes:
        suite: The suite's TOML file.
        resume: Go on with this interrupted run; finished work is not repeated.
        skip: With --resume: give cases up whose name matches; shell patterns; repeatable.
        toolchains: Under these releases.
        patterns: Only these cases.
        tags: Only cases with these tags.
        budget_s: Seconds of timed rounds for the whole run (default: the suite's).
        generations: Fresh sets of processes, the independent samples (default: the suite's).
        shard: Only this part of the cases, as in 2/8 for the second of eight. Other machines run the others, and
            harness results merge joins the runs. A part that is left without a case ends with 0.
        jobs: Compiles at once (default: the number of cores).
        measure: Time the cases; else compile and check them, as for a side of a comparison.
        seed: Of the order of turns (default: 0).
        results: Where the run's directory goes.
        compile_timeout_s: Seconds after which a compile is stopped.
        compile_memory_gib: GiB of memory at which a compile is stopped (default: 80 % of the machine's).
        call_timeout_s: Seconds after which a turn, or one call through iree-run-module, is stopped.
        keep_going: Try the other variants of a model and device too where one of them timed out.
        wait: Wait while another harness measures on this machine; else measure beside it.
        fleet: The scheduler of the fleet that it is done on (default: on this machine).
        quiet: Say nothing while it works.
        verbose: Show what rewrites of plugins print, and all that a compiler prints that fails.
    """

    suite: Path | None = None
    _: KW_ONLY
    resume: Annotated[Path | None, NAMED] = None
    skip: Annotated[tuple[str, ...], Parameter(name="--skip", negative="", show_default=False)] = ()
    toolchains: Toolchains = ()
    patterns: Annotated[Patterns, CASES] = ()
    tags: Tags = ()
    budget_s: Budget = None
    generations: Count | None = None
    shard: str | None = None
    jobs: Count | None = None
    measure: bool = True
    seed: int | None = None
    results: Path = Path("results")
    compile_timeout_s: CompileTimeout = 900.0
    compile_memory_gib: Annotated[Positive | None, Parameter(name="--compile-memory")] = None
    call_timeout_s: Annotated[Positive, Parameter(name="--call-timeout")] = 300.0
    keep_going: Flag = False
    wait: bool = True
    fleet: FleetAddress = None
    certificates: Certificates = None
    trust_network: TrustNetwork = False
    quiet: Quiet = False
    verbose: Verbose = False

    @property
    def compilers(self) -> int:
        """How many compiles run at once."""
        return self.jobs or os.cpu_count() or 1

    @property
    def compile_limits(self) -> Limits:
        """What one compile may use."""
        return compile_limits(self.compile_timeout_s, self.compile_memory_gib)

    def command_to_go_on(self, run: Path, fleet: str = "") -> str:
        """What goes on with a run that was begun with these options, ready to be pasted.

        Args:
            run: Its folder.
            fleet: The address of its fleet's scheduler; "": this machine.
        """
        there = fleet_words(fleet, self.certificates, trust_network=self.trust_network) if fleet else []
        return shlex.join(["harness", "run", "--resume", str(run), *there])


@Parameter(name="*")
@dataclass(frozen=True)
class AblateOptions:
    """What a user can choose about an ablation.

    Attributes:
        suite: The suite's TOML file.
        models: Its name in the suite; repeatable.
        plugin: The plugin's registered name; its options that are true or false are ablated.
        devices: On this device; repeatable (default: the suite's first).
        on: The variant that the plugin is added to, or that has it already (default: the suite's baseline).
        budget_s: Seconds of timed rounds (default: the suite's).
        results: Where the run's directory goes, and the suite that is made for it.
        format: How to print it; markdown is one table.
        quiet: Say nothing while it works.
        verbose: As of a run.
    """

    suite: Path
    _: KW_ONLY
    models: Annotated[tuple[str, ...], Parameter(name="--model", negative="")]
    plugin: str
    devices: Annotated[tuple[str, ...], Parameter(name="--device", negative="", show_default=False)] = ()
    on: str | None = None
    budget_s: Budget = None
    results: Path = Path("results")
    format: Format = "terminal"
    quiet: Quiet = False
    verbose: Verbose = False


def _complete_sides(context: CompletionContext) -> list[str]:
    """Runs, and suites of the folder `suites`; behind a suite its cases."""
    if context.index == 0:
        return [*complete_folders(context), *(str(path) for path in sorted(Path().glob("suites/*.toml")))]
    return names_to_offer(context.argument.tokens[0].value)


@Parameter(name="*")
@dataclass(frozen=True)
class IrOptions:
    """What a user can choose about the IR of a case, or of two.

    Attributes:
        sides: SUITE CASE, or one case or two, each as SUITE:CASE, RUN:CASE or iree==3.12.0.
        suite: Where cases are that are given by name alone, or that a release compiles.
        run: The run where cases are that are given by name alone.
        case: The case of sides that name none, as `harness list` shows it.
        phases: At this phase; repeatable (default: input, flow, stream, bufferized, executable-targets; of two cases
            also the first phase at which they differ).
        ops: Only operations that match this pattern, such as linalg.* or executables:memref.alloc; repeatable (default:
            those that tell of buffers and copies).
        compile_timeout_s: Seconds after which a compile is stopped.
        format: Counts, or with mlir the IR itself, without the values of weights; of two cases their difference.
        out: Write it to this file instead of stdout.
        quiet: Say nothing while it works.
    """

    sides: Annotated[tuple[str, ...], Parameter(negative="", show_default=False, completer=_complete_sides)] = ()
    _: KW_ONLY
    suite: Path | None = None
    run: Annotated[Path | None, NAMED] = None
    case: Annotated[str | None, CASES] = None
    phases: Annotated[tuple[str, ...], Parameter(name="--phase", negative="", show_default=False)] = ()
    ops: Annotated[tuple[str, ...], Parameter(name="--ops", negative="", show_default=False)] = ()
    compile_timeout_s: CompileTimeout = 900.0
    format: Literal["terminal", "markdown", "json", "mlir"] = "terminal"
    out: Path | None = None
    quiet: Quiet = False


def _complete_words(context: CompletionContext) -> list[str]:
    """Runs for the two sides, and the suite's cases behind them."""
    return complete_folders(context) if context.index < 2 else complete_cases(context)


@Parameter(name="*")
@dataclass(frozen=True)
class ExplainOptions:
    """What a user can choose about an explanation.

    Attributes:
        words: Base and head, each a run, a toolchain such as iree==3.12.0, or a commit, as of harness compare; then the
            case. With --within, one run and the case.
        within: Explain a variant of a run beside its baseline, or two variants beside each other.
        variants: With --within, the variant; given twice: base, then head.
        suite: Suite for sides that are toolchains or commits (default: that of the other side's run).
        case: The case, as harness list shows it (default: the only one there is).
        resume: Go on with this explanation, with its own settings.
        budget: Wall seconds for looking at dispatches; confirming what is found comes on top.
        row_cap: Wall seconds where the budget has no room for a verdict on what differs by far more than the noise.
        floor: Relative change below which nothing is called changed (default: the suite's, else 0.01).
        seed: Of the order of turns.
        results: Where the explanation is kept, and the runs that are made for sides.
        compile_timeout: Seconds after which a compile is stopped.
        call_timeout: Seconds after which a turn or a profile is stopped.
        wait: Wait while another harness measures on this machine; else measure beside it.
        quiet: Say nothing while it works.
        verbose: As of a run, where modules are compiled.
    """

    words: Annotated[tuple[str, ...], Parameter(negative="", show_default=False, completer=_complete_words)] = ()
    _: KW_ONLY
    within: Flag = False
    variants: Annotated[tuple[str, ...], Parameter(name="--variant", negative="", show_default=False)] = ()
    suite: Path | None = None
    case: Annotated[str | None, CASES] = None
    resume: Annotated[Path | None, NAMED] = None
    budget: Positive = 120.0
    row_cap: Positive = 1800.0
    floor: Share | None = None
    seed: int = 0
    results: Path = Path("results")
    compile_timeout: Positive = 900.0
    call_timeout: Positive = 300.0
    wait: bool = True
    quiet: Quiet = False
    verbose: Verbose = False


def compile_limits(seconds: float = 900.0, memory_gib: float | None = None) -> Limits:
    """What one compile may use: so many seconds, and so much memory or most of the machine's."""
    most = int(memory_gib * 2**30) if memory_gib else int(psutil.virtual_memory().total * _MEMORY_SHARE)
    return Limits(seconds=seconds, memory_bytes=most)
