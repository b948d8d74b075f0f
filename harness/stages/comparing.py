"""The line of `harness compare`: two sides -> a plan -> rows, measured or recorded -> a comparison in its directory."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from harness.cache import cache_root
from harness.compare.comparison import Plan, conclude, plan_comparison, recorded
from harness.compare.engine import STOPPED
from harness.compare.options import CompareOptions
from harness.compare.pairs import Side
from harness.compare.remeasure import Bench as RowBench
from harness.compare.remeasure import StoppedWithRows, remeasure
from harness.compare.sides import noise_of
from harness.errors import Interrupted, PlaceGone, RunError, UsageError
from harness.machine.identity import machine_id
from harness.metrics import LATENCY
from harness.process import Limits
from harness.progress import Progress
from harness.records.comparison import Comparison
from harness.report import render
from harness.report.comparison import json_document
from harness.stages.explained_rows import explain_regressions
from harness.stages.explaining import Terms
from harness.stages.here import HERE, Bench
from harness.stages.options import RunOptions, compile_limits
from harness.stages.run import run_suite
from harness.store.comparison_directory import ComparisonDirectory
from harness.store.files import FINISHED_FILE, adapter
from harness.store.run_directory import HEADER_FILE, RunDirectory
from harness.store.unfinished import UNFINISHED_FILE, Begun
from harness.text import plural
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import environment_here

# Options of a comparison that goes on; all others are those that it was begun with.
_ANEW = ("resume", "results", "wait", "fleet", "certificates", "trust_network", "quiet", "verbose")


def going_on(folder: ComparisonDirectory, options: CompareOptions) -> CompareOptions:
    """The options of a comparison that goes on.

    Args:
        options: Of the command that goes on with it.

    Raises:
        UsageError: It is given options of its own.
        RunError: The comparison is damaged.
    """
    default = CompareOptions()
    names = [option.name for option in dataclasses.fields(CompareOptions) if option.name not in _ANEW]
    if given := [name for name in names if getattr(options, name) != getattr(default, name)]:
        raise UsageError(f"--resume goes on with the comparison's own settings; leave out {', '.join(given)}")
    assert folder.begun is not None  # noqa: S101 (else it could not be resumed)
    try:
        begun: CompareOptions = adapter(CompareOptions).validate_python(folder.begun.options)
    except ValidationError:
        raise RunError(f"{folder.path / UNFINISHED_FILE}: is damaged; compare the two sides again") from None
    if options.fleet is not None and begun.fleet is None:
        raise RunError(f"{folder.path}: one machine measured it; go on there, without --fleet")
    return replace(
        begun,
        wait=options.wait,
        fleet=options.fleet or begun.fleet,  # its scheduler may be elsewhere now
        certificates=options.certificates or begun.certificates,
        trust_network=options.trust_network or begun.trust_network,
        quiet=options.quiet,
        verbose=options.verbose,
        results=folder.path.parent,
    )


class InterruptedComparison(Interrupted):
    """The user stopped a comparison; `comparison` says what there is of it."""

    def __init__(self, message: str, comparison: Comparison) -> None:
        super().__init__(message)
        self.comparison = comparison


class Underway:
    """A comparison from its first side to its last row; its folder is made as soon as there is something to keep.

    Attributes:
        command: The command line that it was begun with.
        noise: The smallest change that this machine was found to see, as a share; 0: not known.
        bench: Where sides are compiled and checked, and rows measured: this machine, unless a fleet is put there.
    """

    def __init__(
        self,
        options: CompareOptions,
        sides: Sequence[str] = (),
        command: Sequence[str] = (),
        folder: ComparisonDirectory | None = None,
    ) -> None:
        """Begin a comparison, or go on with one.

        Args:
            options: Those that it was begun with.
            sides: What the user calls them, in words that mean the same tomorrow; (): as the options have them.
            command: The command line.
            folder: Of one that goes on.

        Raises:
            RunError: It was begun on another machine.
        """
        self.options = options
        self.environment = environment_here()
        self.bench: Bench = HERE
        self._sides, self._folder, self._here = tuple(sides), folder, Path.cwd()
        self._stack = contextlib.ExitStack()
        begun = folder.begun if folder is not None else None
        if begun is None:
            self.command, self.created = tuple(command), datetime.now(timezone.utc)
            self.noise = noise_of(self.environment)
        else:
            self.command, self.created, self.noise = begun.command, datetime.fromisoformat(begun.created), begun.noise
        if folder is not None and begun is not None and begun.machine != self._machine:
            raise RunError(f"{folder.path}: was begun on another machine; go on there, or compare its sides again")

    @property
    def _machine(self) -> str:
        return machine_id(self.environment)

    def __enter__(self) -> Underway:
        if self._folder is not None:
            self._stack.enter_context(self._folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def folder(self, suite: str) -> ComparisonDirectory:
        """The comparison's folder, made now where there is none yet.

        Raises:
            RunError: The results folder cannot be written.
        """
        if self._folder is None:
            options = replace(self.options, sides=self._sides, toolchains=()) if self._sides else self.options
            begun = Begun(
                created=self.created.isoformat(),
                machine=self._machine,
                noise=self.noise,
                options=adapter(CompareOptions).dump_python(options, mode="json"),
                command=self.command,
            )
            kept = begun if self.options.remeasure else None
            self._folder = ComparisonDirectory.create(self.options.results, suite, self.created, kept)
            self._stack.enter_context(self._folder)
        return self._folder

    @property
    def how_to_go_on(self) -> str:
        """Said to who stops it."""
        if self._folder is None or not self._folder.can_go_on:
            return "interrupted"
        return f"interrupted; go on with `{self.command_to_go_on}`"

    @property
    def command_to_go_on(self) -> str:
        """What goes on with it; what begins it anew, where there is nothing of it."""
        return shlex.join(self.command) if self._folder is None else self._folder.command_to_go_on

    def run_of_side(
        self,
        side: str,
        options: RunOptions,
        progress: Progress,
        toolchains: Sequence[Toolchain] = (),
        others: Sequence[Toolchain] = (),
    ) -> Path:
        """The run of a side that has none: the one that an earlier stretch finished or began, or a new one.

        Args:
            side: Its name.
            options: Of a new one.
            toolchains: As of `run_suite`, and `others` too.

        Raises:
            HarnessError: As `run_suite`.
            Interrupted: The message says how to go on with the comparison.
        """
        if (finished := self.finished_run(side)) is not None:
            return finished
        begun = self._begun_run(side)
        options = options if begun is None else replace(options, resume=begun)
        keep = partial(self._keep, side)
        try:
            bench = self.bench.following(self._other_runs(side))
            return run_suite(options, progress, toolchains, bench, others=others, purpose="compare", on_begin=keep)
        except Interrupted:
            raise Interrupted(self.how_to_go_on) from None
        except PlaceGone as error:
            raise PlaceGone(error.what, self.command_to_go_on) from None

    def finished_run(self, side: str) -> Path | None:
        """The run of a side that an earlier stretch has finished."""
        begun = self._begun_run(side)
        return begun if begun is not None and (begun / FINISHED_FILE).is_file() else None

    def _other_runs(self, side: str) -> list[Path]:
        """Runs that a side's is compared with, as far as there are any yet."""
        given = [self._here / word for word in self._sides or self.options.sides if word != side]
        begun = self._folder.begun if self._folder is not None else None
        made = [self._here / run for name, run in begun.runs.items() if name != side] if begun is not None else []
        return [run for run in (*given, *made) if (run / HEADER_FILE).is_file()]

    def _begun_run(self, side: str) -> Path | None:
        begun = self._folder.begun if self._folder is not None else None
        run = Path(begun.runs[side]) if begun is not None and side in begun.runs else None
        return run if run is not None and (run / HEADER_FILE).is_file() else None

    def keep_run(self, side: str, suite: str, run: Path) -> None:
        """Keep which run is made for a side, also where that is made in another working folder.

        Args:
            suite: The name of its suite.
        """
        before = Path.cwd()
        os.chdir(self._here)
        try:
            self.folder(suite).keep_run(side, run)
        finally:
            os.chdir(before)

    def _keep(self, side: str, run: RunDirectory) -> None:
        self.keep_run(side, run.header.suite_name, run.path)


def compare_sides(
    base: Side,
    head: Side,
    toolchains: Mapping[str, Toolchain],
    underway: Underway,
    progress: Progress,
) -> tuple[Comparison, Path]:
    """Compare two sides, and keep the comparison; within a run, both sides are that run.

    Args:
        toolchains: On this machine, by release; at least those of all cases where they are measured again.

    Raises:
        HarnessError: The sides cannot be compared, or the results folder cannot be written.
        InterruptedComparison: The user stopped it while rows were measured or explained.
    """
    options = underway.options
    limits = compile_limits(options.compile_timeout)
    if underway.bench.address:  # each host has a limit of its own, of its own memory
        limits = replace(limits, memory_bytes=None)
    plan = plan_comparison(base, head, options)
    concluded = partial(
        conclude, plan, environment=underway.environment, created=underway.created, command=underway.command
    )
    directory = underway.folder(head.run.header.suite_name)
    if options.remeasure:
        place = underway.bench.rows(plan, directory, progress, underway.noise)
        bench = RowBench(
            place=place,
            toolchains=toolchains,
            cache=cache_root(),
            directory=directory,
            progress=progress,
            memory_bytes=limits.memory_bytes,
        )
        try:
            rows = remeasure(plan, bench)
        except StoppedWithRows as stopped:
            raise _interrupted(concluded(stopped.rows, hosts=place.hosts), underway.how_to_go_on) from None
        concluded = partial(concluded, hosts=place.hosts)
    else:
        rows = recorded(plan)
    comparison = concluded(rows, name=directory.path.name)
    if options.explain:
        comparison = _with_explanations(comparison, plan, toolchains, underway, progress, limits)
    directory.finish(json_document(comparison), render(comparison, "markdown", full=True), comparison)
    return comparison, directory.path


def _with_explanations(
    comparison: Comparison,
    plan: Plan,
    toolchains: Mapping[str, Toolchain],
    underway: Underway,
    progress: Progress,
    limits: Limits,
) -> Comparison:
    """The comparison with what its regressions are made of."""
    options = underway.options
    terms = Terms(
        rule=plan.rules[LATENCY.name],
        budget_s=options.explain_budget,
        cap_s=options.row_cap,
        seed=options.seed,
        call_limit_s=options.call_timeout,
        limits=limits,
        noise=underway.noise,
        wait=options.wait,
    )
    try:
        explained, notes = explain_regressions(comparison, plan, toolchains, terms, options.results, progress)
    except KeyboardInterrupt:
        note = "Interrupted before every regression was explained"
        unexplained = replace(comparison, id="", notes=(note, *comparison.notes))
        raise InterruptedComparison(underway.how_to_go_on, unexplained) from None
    return replace(comparison, explained=explained, notes=(*comparison.notes, *notes))


def _interrupted(comparison: Comparison, message: str) -> InterruptedComparison:
    number = sum(row.reason.startswith(STOPPED) for row in comparison.rows)
    note = f"Interrupted: {plural(number, 'row is', 'rows are')} not decided yet"
    return InterruptedComparison(message, replace(comparison, notes=(note, *comparison.notes)))
