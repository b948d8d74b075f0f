"""What a user can choose of the commands that compile and measure: their signatures and their help."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

import psutil
from cyclopts import Parameter
from cyclopts.validators import Path as IsPath

from harness.compare.options import CompareOptions
from harness.metrics import LATENCY
from harness.options import (
    CompileTimeout,
    Compiling,
    Count,
    Flag,
    Format,
    Judging,
    Loudness,
    OnFleet,
    Positive,
    Quiet,
    Results,
    Seconds,
    Strings,
    Timing,
    Toolchains,
    Waiting,
    command_options,
    option_of,
)
from harness.process import Limits
from harness.records.bisection import Over
from harness.store.folders import NAMED
from harness.suite.cases import Selection
from harness.toolchain.own import in_public

# Of the machine's memory: where a compile is stopped when nobody says otherwise.
_MEMORY_SHARE = 0.8

Budget = Annotated[Seconds | None, Parameter(name="--budget")]
_FOLDER = Parameter(validator=IsPath(exists=True, file_okay=False))
CompileMemory = Annotated[Positive | None, Parameter(name="--compile-memory")]


@command_options
@dataclass(frozen=True)
class RunOptions(Selection, Toolchains, Results, Compiling, Timing, OnFleet, Loudness):
    """What a user can choose about a run.

    Attributes:
        suite: The suite's TOML file.
        resume: Go on with this interrupted run; finished work is not repeated.
        budget_s: Seconds of timed rounds for the whole run (default: the suite's).
        generations: Fresh sets of processes, the independent samples (default: the suite's).
        shard: Only this part of the cases, as in 2/8 for the second of eight. Other machines run the others, and
            harness results merge joins the runs. A part that is left without a case ends with 0.
        jobs: Compiles at once (default: the number of cores).
        measure: Time the cases; else compile and check them, as for a side of a comparison.
        seed: Of the order of turns (default: 0).
        compile_memory_gib: GiB of memory at which a compile is stopped (default: 80 % of the machine's).
        call_timeout_s: Seconds after which a turn, or one call through iree-run-module, is stopped.
        keep_going: Try the other variants of a model and device too where one of them timed out.
    """

    suite: Path | None = None
    _: KW_ONLY
    resume: Annotated[Path | None, NAMED] = None
    budget_s: Budget = None
    generations: Count | None = None
    shard: str | None = None
    jobs: Count | None = None
    measure: bool = True
    seed: int | None = None
    compile_memory_gib: CompileMemory = None
    keep_going: Flag = False

    @property
    def compilers(self) -> int:
        """How many compiles run at once."""
        return self.jobs or os.cpu_count() or 1

    @property
    def compile_limits(self) -> Limits:
        """What one compile may use."""
        return compile_limits(self.compile_timeout_s, self.compile_memory_gib)

    def command_to_go_on(self, run: Path, fleet: str = "") -> str:
        """What goes on with a run, on that fleet or this machine, ready to be pasted."""
        return shlex.join(["harness", "run", "--resume", str(run), *self.words_to_join(fleet)])


@command_options
@dataclass(frozen=True)
class AblateOptions(Toolchains, Results, Waiting, Loudness):
    """What a user can choose about an ablation.

    Attributes:
        suite: The suite's TOML file.
        models: Its name in the suite; repeatable.
        plugin: The plugin's registered name; its options that are true or false are ablated.
        devices: On this device; repeatable (default: the suite's first).
        budget_s: Seconds of timed rounds (default: the suite's).
        results: Where the run's directory goes, and the suite that is made for it.
        format: How to print it; markdown is one table.
    """

    suite: Path
    _: KW_ONLY
    models: Annotated[tuple[str, ...], Parameter(name="--model", negative="")]
    plugin: str
    devices: Annotated[Strings, Parameter(name="--device")] = ()
    budget_s: Budget = None
    format: Format = "terminal"


@command_options
@dataclass(frozen=True)
class BenchOptions(Toolchains, Results, Waiting, Loudness):
    """What a user can choose about a comparison of flags.

    Attributes:
        model: An .mlir, .mlirbc or .onnx file.
        flags: One variant's flags of iree-compile, as "--a --b"; repeatable: the others are compared with the first
            (with one alone: with no flags; with several toolchains: with itself under the first of them).
        model_inputs: One argument: 4x8xf32 (random), 4x8xf32=1.5, i32=3 (a number), or values.npy; repeatable, in order
            (default: as the file's first public function says).
        function: The entry function of MLIR (default: the first public one).
        device: Where it runs.
        budget_s: Seconds of timed rounds.
        generations: Fresh sets of processes, the independent samples (default: 5).
        save: Keep the suite, in this file that ends in .toml; or in this new folder, with a reproducer of the largest
            change: program, inputs, and a script of plain IREE commands (default: the suite lies beside the run).
        explain: Say the cause of the largest change too, as harness explain finds it.
        format: How to print the report.
    """

    model: Path
    _: KW_ONLY
    flags: Annotated[tuple[str, ...], Parameter(negative="", allow_leading_hyphen=True, show_default=False)] = ()
    model_inputs: Annotated[Strings, Parameter(name="--model-input")] = ()
    function: str | None = None
    device: Literal["cpu", "cpu-threads", "vulkan", "cuda", "hip"] = "cpu"
    save: Path | None = None
    budget_s: Annotated[Seconds, Parameter(name="--budget")] = 20.0
    generations: Count | None = None
    explain: bool = True
    format: Format = "terminal"

    @property
    def folder(self) -> Path | None:
        """The folder that is asked for with --save; None: a file, or nothing."""
        return self.save if self.save is not None and self.save.suffix != ".toml" else None


@command_options
@dataclass(frozen=True)
class IrOptions(Compiling, Quiet):
    """What a user can choose about the IR of a case, or of two.

    Attributes:
        sides: SUITE CASE, or one case or two, each as SUITE:CASE, RUN:CASE or iree==3.12.0; then the case of sides that
            name none.
        suite: Where cases are that are given by name alone, or that a release compiles.
        case: The case of sides that name none, as `harness list` shows it (default: the only one there is).
        phases: At this phase; repeatable (default: input, flow, stream, bufferized, executable-targets; of two cases
            also the first phase at which they differ).
        ops: Only operations that match this pattern, such as linalg.* or executables:memref.alloc; repeatable (default:
            those that tell of buffers and copies).
        format: Counts, or with mlir the IR itself, without the values of weights; of two cases their difference.
        out: Write it to this file instead of stdout.
    """

    sides: Annotated[Strings, NAMED] = ()
    _: KW_ONLY
    suite: Path | None = None
    case: str | None = None
    phases: Annotated[Strings, Parameter(name="--phase")] = ()
    ops: Strings = ()
    format: Literal["terminal", "markdown", "json", "mlir"] = "terminal"
    out: Path | None = None


@command_options
@dataclass(frozen=True)
class ExplainOptions(Judging, Results, Compiling, Timing, Loudness):
    """What a user can choose about an explanation.

    Attributes:
        words: Base and head, each a run, a toolchain such as iree==3.12.0, or a commit, as of harness compare; then the
            case. With --within, one run and the case.
        within: Explain a variant of a run beside its baseline.
        variant: With --within, the variant.
        metric: What is explained: latency, by dispatch, or compile-time, by pass of the compiler.
        suite: Suite for sides that are toolchains or commits (default: that of the other side's run).
        case: The case, as harness list shows it (default: the only one there is).
        resume: Go on with this explanation, with its own settings.
        budget: Wall seconds for looking at dispatches or passes; confirming what is found comes on top.
        row_cap: Wall seconds where the budget has no room for a verdict on what differs by far more than the noise.
        floor: Relative change below which nothing is called changed (default: the suite's, else the metric's).
        results: Where the explanation is kept, and the runs that are made for sides.
        call_timeout_s: Seconds after which a turn or a profile is stopped.
    """

    words: Annotated[Strings, NAMED] = ()
    _: KW_ONLY
    within: Flag = False
    variant: str | None = None
    metric: str = LATENCY.name
    suite: Path | None = None
    case: str | None = None
    resume: Annotated[Path | None, NAMED] = None
    budget: Seconds = 120.0
    row_cap: Seconds = 1800.0


@command_options
@dataclass(frozen=True, kw_only=True)
class OneCase(Judging, Results, Compiling, Timing, Loudness):
    """How one metric of one case is measured on two sides.

    Attributes:
        metric: latency, instructions, compile-time, dispatches, copies, fills, transient-memory, module-size,
            dispatch-size, or an op count of the suite as in flow/tensor.empty.
    """

    metric: str = LATENCY.name
    row_budget: Seconds = 60.0
    row_cap: Seconds = 1800.0


@command_options
@dataclass(frozen=True)
class BisectOptions(OneCase):
    """What a user can choose about a bisect.

    Attributes:
        suite: The suite's TOML file.
        case: The case, as `harness list` shows it (default: the only one there is).
        over: Search releases or commits of IREE between --good and --bad, or which of the variant's flags, plugins and
            plugin options make the difference to --base.
        good: Release or commit on which the case was good, as in iree==3.6.0.
        bad: Release or commit on which it is bad.
        fixed: Release or commit beyond the bad one on which it is good again; since when is searched too.
        release: Only these between the ends (default: all that the package index has); repeatable.
        skip: None of these releases or commits; repeatable.
        pre: Pre-releases too, which pip finds where PIP_FIND_LINKS says.
        builds: With --over commits: a folder of builds, each in a folder whose name has digits of its commit, or whose
            compiler states it (default: the wheels that IREE's CI kept).
        repo: With --over commits: the checkout that has them (with --builds by default that of the working folder).
        base: With --over flags: the variant that the case's is held against (default: the suite's baseline).
        toolchain: With --over flags: under this release (default: the one that is installed).
        floor: Relative change below which nothing counts as a step (default: the suite's, else the metric's).
        row_budget: Wall seconds for looking at one pair; it is more where calls are so long that a verdict needs more,
            up to --row-cap, and confirming a finding takes as much again.
        row_cap: Wall seconds for looking at one pair whose calls take long.
        budget: Wall seconds of all measurements together; what is not known then is found out with --resume.
        resume: Go on with this bisect (its folder, or latest): what was decided is not measured again, and of one that
            ended, what stayed open is, for which --row-budget and --row-cap may be given anew.
        results: Where the bisect's directory goes, and its runs.
    """

    suite: Path | None = None
    case: str | None = None
    _: KW_ONLY
    over: Over = "releases"
    good: str | None = None
    bad: str | None = None
    fixed: str | None = None
    release: Strings = ()
    skip: Strings = ()
    pre: Flag = False
    builds: Annotated[Path | None, _FOLDER] = None
    repo: Annotated[Path | None, _FOLDER] = None
    base: str | None = None
    toolchain: str | None = None
    budget: Seconds | None = None
    resume: Path | None = None

    @property
    def ends(self) -> list[str]:
        """The names of the ends that are given."""
        return [name for name in ("good", "bad", "fixed") if getattr(self, name) is not None]

    @property
    def chosen(self) -> tuple[Path, str]:
        """Suite and case, once it is known that both are given."""
        assert self.suite is not None and self.case is not None  # noqa: S101 (whoever begins a bisect makes sure)
        return self.suite, self.case


@command_options
@dataclass(frozen=True)
class VerdictOptions(OneCase):
    """What a user can choose about a verdict.

    Attributes:
        suite: The suite's TOML file, as it is now.
        case: The case, as `harness list` shows it (default: the only one of the run).
        against: A run of the good side that has the case; its modules have to be in the cache still.
        toolchain: What compiles and runs it now: a build folder of IREE, an environment, a pair of wheels, wheels of CI
            as in pr:24701, or a release (default: that of the run).
        metric: As of `harness bisect`.
        floor: Relative change below which it is good (default: the suite's, else the metric's).
        row_budget: Wall seconds for looking; confirming a finding takes as much again.
        row_cap: Wall seconds for looking where calls take long and the two differ plainly.
    """

    suite: Path
    case: str | None = None
    _: KW_ONLY
    against: Annotated[Path, NAMED]
    toolchain: str | None = None


@command_options
@dataclass(frozen=True)
class TuneOptions(Judging, Compiling, Timing, Loudness):
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
        toolchain: Under this release, or what else is a toolchain (default: the one that is installed).
        report: Print what the searches in --out found, again; nothing is measured.
        floor: Relative change below which nothing counts as faster (default: the suite's, else 0.01).
        seed: Of the order of turns and of the sampler.
        compile_memory_gib: GiB of memory at which a compile is stopped (default: 80 % of the machine's).
        verbose: Say of each candidate what became of it.
    """

    suite: Path | None = None
    _: KW_ONLY
    models: Annotated[Strings, Parameter(name="--model")] = ()
    device: str | None = None
    start: Annotated[str | None, Parameter(name="--variant")] = None
    budget: Annotated[Seconds, Parameter(show_default=lambda _: "15m")] = 900.0
    out: Path = Path("tuned")
    without: Strings = ()
    lowering: bool = True
    toolchain: str | None = None
    report: Flag = False
    compile_timeout_s: CompileTimeout = 300.0
    compile_memory_gib: CompileMemory = None


def compile_limits(seconds: float = 900.0, memory_gib: float | None = None) -> Limits:
    """What one compile may use: so many seconds, and so much memory or most of the machine's."""
    most = int(memory_gib * 2**30) if memory_gib else int(psutil.virtual_memory().total * _MEMORY_SHARE)
    return Limits(seconds=seconds, memory_bytes=most)


Measuring = CompareOptions | ExplainOptions | OneCase | TuneOptions
# Fields and options that name toolchains.
NAMING = ("toolchain", "toolchains", "sides", "words", "good", "bad", "fixed", "release", "skip")


def command_in_public(command: Sequence[str]) -> tuple[str, ...]:
    """A command with labels in place of toolchains' folders; what is no toolchain may be called as a folder is."""
    kinds = (RunOptions, BenchOptions, CompareOptions, ExplainOptions, IrOptions, BisectOptions, TuneOptions)
    valued = {option_of(kind, one.name) for kind in kinds for one in fields(kind) if type(one.default) is not bool}
    naming = {f"--{name}" for name in NAMING}
    kept, sides = list(command), 0 if {*command[1:2]} & {"compare", "explain", "ir"} else 2
    for place, (before, word) in enumerate(zip(("", *command), command, strict=False)):
        option, is_given, value = word.partition("=")
        is_side = place > 1 and sides < 2 and not word.startswith("-") and before not in valued
        sides += is_side
        if is_given and option in naming:
            kept[place] = f"{option}={in_public(value)}"
        elif is_side or before in naming:
            kept[place] = in_public(word)
    return tuple(kept)
