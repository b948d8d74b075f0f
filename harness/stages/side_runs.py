"""The runs of sides that have none yet: a suite under a release, or as a commit has it, compiled and checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from harness.cache import cache_root
from harness.compare.commits import Commit, empty_submodules, is_changed, suite_below, tree_of
from harness.compare.options import CompareOptions
from harness.errors import ExitCode, Interrupted, PlaceGone, UsageError
from harness.process import forget, spawn, stop
from harness.progress import Progress
from harness.stages.options import RunOptions
from harness.text import one_line
from harness.toolchain import Toolchain

# Starts a harness whose first place to import from is not the folder that it is started in.
_HARNESS = "import sys; del sys.path[0]; from harness.cli import main; main()"


class Keeper(Protocol):
    """What makes runs for sides, as `harness.stages.comparing.Underway` does, which can go on after it was stopped."""

    @property
    def options(self) -> CompareOptions:
        """The user's."""

    @property
    def how_to_go_on(self) -> str:
        """Said to who stops it."""

    @property
    def command_to_go_on(self) -> str:
        """What goes on with it; what begins it anew, where there is nothing of it."""

    def run_of_side(
        self,
        side: str,
        options: RunOptions,
        progress: Progress,
        toolchains: Sequence[Toolchain] = (),
        others: Sequence[Toolchain] = (),
    ) -> Path:
        """The run of a side, by its name."""

    def finished_run(self, side: str) -> Path | None:
        """The run of a side that is made already."""

    def keep_run(self, side: str, suite: str, run: Path) -> None:
        """Keep which run is made for a side."""


@dataclass(frozen=True, kw_only=True)
class SideRuns:
    """Makes the runs of the sides of a comparison, or of an explanation."""

    underway: Keeper  # Makes a run, keeps which one is made for a side, and has those of earlier stretches
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
        """The options of the fleet, for a harness that works in another folder."""
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
