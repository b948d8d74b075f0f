"""What is made of two sides and goes on where it was stopped, comparisons and explanations: their runs and the folder.

A side that has no run yet gets one: a suite under a release, or as a commit has it, compiled and checked.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from harness.cache import cache_root
from harness.compare.commits import Commit, empty_submodules, is_changed, suite_below, tree_of
from harness.compare.options import CompareOptions
from harness.compare.sides import noise_of
from harness.errors import ExitCode, Interrupted, PlaceGone, RunError, UsageError
from harness.machine.identity import machine_id
from harness.process import forget, spawn, stop
from harness.progress import Progress
from harness.stages.here import HERE, Bench
from harness.stages.options import RunOptions
from harness.stages.run import run_suite
from harness.store.files import FINISHED_FILE, adapter
from harness.store.journal import Begun
from harness.store.run_directory import HEADER_FILE, RunDirectory
from harness.store.sides_directory import SidesDirectory
from harness.text import one_line
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import environment_here

_Folder = TypeVar("_Folder", bound=SidesDirectory)
_Underway = TypeVar("_Underway", bound="SidesUnderway[Any]")
_Options = TypeVar("_Options")


def begun_options(folder: SidesDirectory, options: _Options, anew: Sequence[str]) -> _Options:
    """The options that something was begun with."""
    kind, default = type(options), type(options)()
    names = [option.name for option in dataclasses.fields(kind) if option.name not in anew]  # type: ignore[arg-type]
    if given := [name for name in names if getattr(options, name) != getattr(default, name)]:
        raise UsageError(f"--resume goes on with the {folder.kind.name}'s own settings; leave out {', '.join(given)}")
    assert folder.begun is not None  # noqa: S101 (else it could not be resumed)
    try:
        begun: _Options = adapter(kind).validate_python(folder.begun.options)
    except ValidationError:
        file = folder.path / folder.kind.begun_file
        raise RunError(f"{file}: is damaged; {folder.kind.command} the two sides again") from None
    return begun


class SidesUnderway(ABC, Generic[_Folder]):
    """What is made of two sides, from the first of them on; its folder is made as soon as there is something to keep.

    Attributes:
        options: Of a comparison, as which the sides are made.
        command: The command line that it was begun with.
        noise: The smallest change that this machine was found to see, as a share; 0: not known.
        bench: Where sides are compiled and checked, and rows measured: this machine, unless a fleet is put there.
    """

    def __init__(
        self,
        options: CompareOptions,
        sides: Sequence[str] = (),
        command: Sequence[str] = (),
        folder: _Folder | None = None,
    ) -> None:
        """Begin it, or go on with it."""
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
            raise RunError(f"{folder.path}: was begun on another machine; go on there, or begin it again")

    @property
    def _machine(self) -> str:
        return machine_id(self.environment)

    def __enter__(self: _Underway) -> _Underway:
        if self._folder is not None:
            self._stack.enter_context(self._folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @abstractmethod
    def _new_folder(self, suite: str) -> _Folder:
        """The folder of a suite's."""

    def _begun(self, options: dict[str, Any]) -> Begun:
        return Begun(
            created=self.created.isoformat(),
            machine=self._machine,
            noise=self.noise,
            options=options,
            command=self.command,
        )

    def folder(self, suite: str) -> _Folder:
        """Its folder, made now where there is none yet."""
        if self._folder is None:
            self._folder = self._new_folder(suite)
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
        """The run of a side that has none: the one that an earlier stretch finished or began, or a new one."""
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
        """Keep which run is made for a side, also where that is made in another working folder."""
        before = Path.cwd()
        os.chdir(self._here)
        try:
            self.folder(suite).keep_run(side, run)
        finally:
            os.chdir(before)

    def _keep(self, side: str, run: RunDirectory) -> None:
        self.keep_run(side, run.header.suite_name, run.path)


# --- The runs of sides that have none yet: a suite under a release, or as a commit has it, compiled and checked ---


# Starts a harness whose first place to import from is not the folder that it is started in.
_HARNESS = "import sys; del sys.path[0]; from harness.cli import main; main()"


@dataclass(frozen=True, kw_only=True)
class SideRuns:
    """Makes the runs of the sides of a comparison, or of an explanation."""

    underway: SidesUnderway[Any]  # Makes a run, keeps which one is made for a side, and has those of earlier stretches
    progress: Progress
    trees: ExitStack  # The trees of commits, which stay until it is closed: files of weights are read in them

    def of_release(self, suite: Path, toolchain: Toolchain, others: Sequence[Toolchain]) -> Path:
        """The run of a suite under a release."""
        unmeasured = self._unmeasured(suite, self.options.results)
        return self.underway.run_of_side(toolchain.version, unmeasured, self.progress, (toolchain,), others)

    def of_commit(self, suite: Path, commit: Commit, which: str) -> tuple[Path, Path]:
        """The run of a suite as a commit has it, and the folder in its tree that the suite's path begins in."""
        if is_changed(commit):
            self.progress.note(
                f"{commit.name} is compared as it was committed; changes of the working folder since are in no commit"
            )
        self.progress.note(f"The {which} is {commit.short}: {commit.subject}")
        below = suite_below(suite, commit)
        here = Path(os.path.relpath(commit.root / below, commit.root / commit.below))
        folder = self.trees.enter_context(tree_of(commit)) / commit.below
        try:
            _make(folder, commit.below)
            if self.options.prepare is not None:
                return self.underway.finished_run(commit.sha) or self._prepared(here, folder, commit), folder
            results = self.options.results.absolute()
            with _working_in(folder):
                return self.underway.run_of_side(commit.sha, self._unmeasured(here, results), self.progress), folder
        except PlaceGone:  # what there is of the comparison is kept
            raise
        except UsageError as error:
            hint = empty_submodules(commit, below, str(error))
            raise UsageError(f"the {which} {commit.short}: {error}{hint}") from None

    @property
    def options(self) -> CompareOptions:
        """The user's."""
        return self.underway.options

    def _unmeasured(self, suite: Path, results: Path) -> RunOptions:
        return RunOptions(
            suite,
            patterns=self.options.patterns,
            measure=False,
            results=results,
            compile_timeout_s=self.options.compile_timeout_s,
            wait=self.options.wait,
            verbose=self.options.verbose,
        )

    def _fleet_words(self) -> list[str]:
        options, certificates = self.options, self.options.certificates
        if certificates is not None:
            options = replace(options, certificates=certificates.absolute())
        return options.words_to_join(options.fleet)

    def _prepared(self, suite: Path, folder: Path, commit: Commit) -> Path:
        """The run of a prepared tree, made by a harness of its own: this one may have imported what was replaced."""
        python = Path(sys.executable).parent
        environment = {
            "HARNESS_CACHE": str(cache_root()),
            "HARNESS_PURPOSE": "compare",
            "PATH": os.pathsep.join([str(python), os.environ.get("PATH", os.defpath)]),
        }
        prepare = ["bash", "-euo", "pipefail", "-c", f"exec >&2\n{self.options.prepare}"]
        try:
            status, _, said = _followed(prepare, folder, environment, self.progress)
        except OSError as error:
            raise UsageError(f"--prepare: bash cannot be started ({error.strerror}); install it") from None
        if status != 0:
            raise UsageError(f"--prepare exits with status {status}: {said}")
        options = [
            *("--no-measure", "--format", "json", "--results", str(self.options.results.absolute())),
            *("--compile-timeout", f"{self.options.compile_timeout_s:g}"),
            *([] if self.options.wait else ["--no-wait"]),
            *self._fleet_words(),
            *(word for pattern in self.options.patterns for word in ("--filter", pattern)),
        ]
        command = [sys.executable, "-c", _HARNESS, "run", str(suite), *options]
        status, printed, said = _followed(command, folder, environment, self.progress)
        if status == ExitCode.INTERRUPTED:
            raise Interrupted(self.underway.how_to_go_on)
        if status not in (ExitCode.OK, ExitCode.CASE_FAILED):
            said = said.removeprefix("harness: ")
            if (what := PlaceGone.said_in(said)) is not None:
                raise PlaceGone(what, self.underway.command_to_go_on)
            raise UsageError(said)
        try:
            run = json.loads(printed)["run"]
            path, name = self.options.results / str(run["id"]), Path(suite).stem
        except (ValueError, KeyError):
            raise UsageError(f"{suite} is a list of suites; give one of them") from None
        self.underway.keep_run(commit.sha, name, path)
        return path


def _make(folder: Path, name: Path) -> None:
    """Make the working folder's place in a tree, where the commit does not have it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise UsageError(f"{name} is no folder there; call it from the top of the repository") from None


def _followed(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], progress: Progress
) -> tuple[int, str, str]:
    """Run a command, and pass on what it says on stderr as it says it: its status, its stdout, and its last words."""
    said = "it does not say why"
    with tempfile.TemporaryFile() as printed:
        child = spawn(
            command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.PIPE, cwd=folder, env=environment
        )
        try:
            assert child.stderr is not None  # noqa: S101 (asked for above)
            with child.stderr as lines:
                for line in (one_line(raw.decode(errors="replace")) for raw in lines):
                    if line:
                        said = line
                        progress.note(line)
            status = child.wait()
        except BaseException:
            stop(child)
            raise
        forget(child)
        printed.seek(0)
        return status, printed.read().decode(errors="replace"), said


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """Work in a folder, with the cache where it is from here."""
    before, cache = Path.cwd(), os.environ.get("HARNESS_CACHE")
    if cache is not None:
        os.environ["HARNESS_CACHE"] = str(cache_root())
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        if cache is not None:
            os.environ["HARNESS_CACHE"] = cache
