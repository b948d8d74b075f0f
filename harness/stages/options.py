"""What a user can choose of `run`, `ablate`, `ir`, `explain`, `bisect`, `verdict` and `tune`: signatures and help."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import psutil
from cyclopts import Parameter
from cyclopts.completion import CompletionContext

from harness.compare.options import CALL_LIMIT_S
from harness.metrics import LATENCY
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
from harness.records.bisection import Over
from harness.store.names import NAMED, complete_folders
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


# --- What a user can choose: the signatures of `harness bisect` and `harness verdict`, and their help ---


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


# --- What a user can choose: the signature of `harness tune`, and its help ---


_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")


def seconds_of(text: str) -> float:
    """Seconds of a time such as `90`, `90s`, `15m` or `1.5h`."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise ValueError(f"{text!r} is no time; write 90s, 15m or 2h")
    return float(found[1]) * _UNITS_S[found[2]]


def _as_seconds(_: Any, tokens: Sequence[Any]) -> float:
    return seconds_of(tokens[0].value)


@Parameter(name="*")
@dataclass(frozen=True)
class TuneOptions:
    """What a user can choose about a search for what makes models fast.

    Attributes:
        suite: The suite's TOML file.
        models: This model of the suite; repeatable (default: all).
        device: On this device (default: the suite's first).
        start: The variant that the search begins with and that everything is held against (default: the baseline).
        budget: Time for each model, as in 90s, 15m or 2h; confirmations are part of it.
        out: The folder that everything goes to; a search that was stopped goes on there with the same command.
        without: None of these changes; shell patterns over flag sets and plugins; repeatable.
        lowering: Tune the lowering configurations of dispatches too; else only flags and plugins.
        toolchain: Under this release (default: the one that is installed).
        report: Print what the searches in --out found, again; nothing is measured.
        floor: Relative change below which nothing counts as faster (default: the suite's, else 0.01).
        seed: Of the order of turns and of the sampler.
        compile_timeout: Seconds after which a compile is stopped.
        compile_memory: GiB of memory at which a compile is stopped (default: 80 % of the machine's).
        call_timeout: Seconds after which a turn is stopped.
        wait: Wait while another harness measures on this machine; else measure beside it.
        quiet: Print the result and errors, and nothing while it works.
        verbose: Say of each candidate what became of it.
    """

    suite: Path | None = None
    _: KW_ONLY
    models: Annotated[tuple[str, ...], Parameter(name="--model", negative="", show_default=False)] = ()
    device: str | None = None
    start: Annotated[str | None, Parameter(name="--variant")] = None
    budget: Annotated[float, Parameter(converter=_as_seconds, n_tokens=1, show_default=lambda _: "15m")] = 900.0
    out: Path = Path("tuned")
    without: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    lowering: bool = True
    toolchain: str | None = None
    report: Flag = False
    floor: Share | None = None
    seed: int = 0
    compile_timeout: CompileTimeout = 300.0
    compile_memory: Annotated[Positive | None, Parameter(name="--compile-memory")] = None
    call_timeout: Positive = CALL_LIMIT_S
    wait: bool = True
    quiet: Quiet = False
    verbose: Annotated[Verbose, Parameter(help="Say of each candidate what became of it.")] = False
