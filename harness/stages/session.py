"""What comparisons, explanations, bisects and searches share: how they begin, go on, compile and measure.

What is made of two sides is a session with a folder and a run of each side: a side that has none gets one, a suite
under a release, or as a commit has it, compiled and checked.
"""

import glob
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from harness.cache import cache_root, environments_root
from harness.compare.commits import Commit, has_file, is_changed, suite_below, tree_of
from harness.compare.options import CompareOptions, SelfcheckOptions
from harness.compare.pairs import TOOLCHAIN_PREFIX, Side
from harness.compare.samplers import MeasurementPolicy
from harness.compare.sides import Named, noise_of, require_modules, toolchain_of
from harness.errors import ExitCode, Interrupted, PlaceGone, RunError, UsageError
from harness.machine.environment import machine_id
from harness.options import Results, option_of
from harness.process import Limits, forget, spawn, stop
from harness.progress import Progress
from harness.stages.options import (
    NAMING,
    ExplainOptions,
    Measuring,
    RunOptions,
    command_in_public,
    compile_limits,
)
from harness.stages.run import LOCAL, Executor, run_suite
from harness.stats.rule import Rule
from harness.store.files import FINISHED_FILE, adapter
from harness.store.folders import Kind, find_folder
from harness.store.run_directory import HEADER_FILE, load_run
from harness.store.work_directory import Begun, SidesDirectory
from harness.text import one_line
from harness.toolchain import Toolchain, get_toolchains
from harness.toolchain.host_cpu import environment_here
from harness.toolchain.own import in_public

_Any = TypeVar("_Any", bound=Results)
# Options of a run that are those of the command for which it is made.
_OF_COMMAND = ("results", "patterns", "compile_timeout_s", "call_timeout_s", "wait", "verbose")
_OF_STRETCH = ("wait", "quiet", "verbose")


def begun_now(options: Any, command: Sequence[str]) -> Begun:
    """What a session is begun with, in words that mean the same tomorrow."""
    environment = environment_here()
    asked = adapter(type(options)).dump_python(options, mode="json")
    named = {name: asked[name] for name in NAMING if asked.get(name)}
    labels = {name: in_public(said) for name, said in named.items() if isinstance(said, str)}
    asked |= labels | {name: [*map(in_public, said)] for name, said in named.items() if name not in labels}
    return Begun(
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        machine=machine_id(environment),
        noise=noise_of(environment),
        options=asked,
        command=command_in_public(command),
    )


def options_going_on(
    given: _Any,
    begun: Begun,
    folder: Path,
    kind: Kind[Any],
    *,
    stretch: Sequence[str] = (),  # Options that each stretch has anew, beside how loud it is
    if_given: Sequence[str] = (),  # Those that may be given anew
) -> _Any:
    """The options that a session was begun with, on this machine."""
    if begun.machine != machine_id(environment_here()):
        raise RunError(f"{folder}: was begun on another machine; go on there, or begin it again")
    default, stretch = type(given)(), (*_OF_STRETCH, *stretch)
    names = [field.name for field in fields(given)]
    changed = [name for name in names if getattr(given, name) != getattr(default, name)]
    if refused := [name for name in changed if name not in ("resume", "results", *stretch, *if_given)]:
        words = ", ".join(option_of(type(given), name) for name in refused)
        raise UsageError(f"--resume goes on with the {kind.name}'s own settings; leave out {words}")
    try:
        before: _Any = adapter(type(given)).validate_python(begun.options)
    except ValidationError:
        raise RunError(f"{folder / kind.begun_file}: is damaged; make the {kind.name} again") from None
    anew = {name: getattr(given, name) for name in names if name in stretch or (name in if_given and name in changed)}
    return replace(before, results=folder.parent, **anew)


def unmeasured(options: Measuring | SelfcheckOptions, suite: Path, case: str | None = None, **more: Any) -> RunOptions:
    """A run that compiles and checks for a command, and times nothing."""
    shared = {name: getattr(options, name) for name in _OF_COMMAND if hasattr(options, name)}
    patterns = {} if case is None else {"patterns": (glob.escape(case),)}
    return RunOptions(suite, measure=False, **{**shared, **patterns, **more})


def policy_of(
    options: Measuring, rule: Rule, *, budget_s: float, cap_s: float, noise: float, limits: Limits | None = None
) -> MeasurementPolicy:
    """How two modules are measured beside each other."""
    return MeasurementPolicy(
        rule=rule,
        budget_s=budget_s,
        cap_s=cap_s,
        seed=options.seed,
        call_limit_s=options.call_timeout_s,
        limits=limits or compile_limits(options.compile_timeout_s),
        noise=noise,
        wait=options.wait,
    )


# --- what is made of two sides ---


_Options = TypeVar("_Options", bound=CompareOptions | ExplainOptions)
_Folder = TypeVar("_Folder", bound=SidesDirectory)
_Session = TypeVar("_Session", bound="SidesSession[Any, Any]")
# Starts a harness whose first place to import from is not the folder that it is started in.
_HARNESS = "import sys; del sys.path[0]; from harness.cli import main; main()"


def words_of(sides: Sequence[Named]) -> tuple[str, ...]:
    """Sides in words that mean the same tomorrow."""
    return tuple(side.sha if isinstance(side, Commit) else str(side) for side in sides)


def going_on(
    directory: type[_Folder], options: _Options, *, if_given: Sequence[str] = ()
) -> tuple[_Options, _Folder | None]:
    """The options of what goes on with --resume, and its folder; of what begins, those that are given and None."""
    if options.resume is None:
        return options, None
    path = find_folder(options.resume, options.results, kind=directory.kind.name, unfinished=True)
    folder = directory.resume(path)
    return options_going_on(options, folder.begun, folder.path, folder.kind, if_given=if_given), folder


class SidesSession(Generic[_Options, _Folder]):
    """What is made of two sides, from the first of them on; its folder is made once there is something to keep."""

    directory: type[_Folder]

    def __init__(
        self, options: _Options, sides: Sequence[Named] = (), words: Sequence[str] = (), folder: _Folder | None = None
    ) -> None:
        """Begin it with the words of a command line, or go on with the one in a folder."""
        self.options, self.environment = options, environment_here()  # The options that it was begun with
        self.executor: Executor = LOCAL  # Where sides are made and rows measured, unless a fleet is put here
        self.progress = Progress()  # Unless somebody who is told is put here
        self.case: str | None = None  # The only one that is wanted of a side; None: all that the options say
        self._sides, self._folder, self._here = words_of(sides), folder, Path.cwd()
        self._stack = ExitStack()
        commits = {side.name: side.sha for side in sides if isinstance(side, Commit)}  # the same ones tomorrow
        command = ("harness", *(commits.get(word, word) for word in words))
        self._begun = begun_now(options, command) if folder is None else folder.begun
        self.command, self.noise = self._begun.command, self._begun.noise
        self.created = datetime.fromisoformat(self._begun.created)

    def __enter__(self: _Session) -> _Session:
        if self._folder is not None:
            self._stack.enter_context(self._folder)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def folder(self, suite: str) -> _Folder:
        """Its folder, made now where there is none yet."""
        if self._folder is None:
            measures = isinstance(self.options, ExplainOptions) or self.options.remeasure
            begun = self._begun if measures else None  # else there is nothing to go on with
            self._folder = self.directory.create(self.options.results, suite, self.created, begun)
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

    # --- the runs of sides that have none yet ---

    def resolve(self, sides: tuple[Named, Named]) -> tuple[Side, Side]:
        """Both sides with their runs; those of releases and commits are made now."""
        suite = self.options.suite
        folders = [side for side in sides if isinstance(side, Path)]
        releases = [side for side in sides if isinstance(side, str)]
        commits = [side for side in sides if isinstance(side, Commit)]
        if len(folders) == 2 and folders[0].resolve() == folders[1].resolve():
            raise UsageError(f"{folders[0]} is given twice; --within {folders[0]} takes its variants as sides")
        if len(commits) == 2 and commits[0].sha == commits[1].sha:
            raise UsageError(f"{commits[0].name} and {commits[1].name} are one commit, {commits[0].short}; give two")
        runs = {folder: load_run(folder, rounds=False) for folder in folders}
        for folder in folders if releases or commits else ():
            require_modules(str(folder), runs[folder].header)
        if suite is None and not runs:
            raise UsageError("sides without a run are compared on a suite; give one, as in --suite suites/x.toml")
        suite = suite or Path(next(iter(runs.values())).header.suite)
        for which, side in zip(("base", "head"), sides, strict=True):
            if isinstance(side, Commit) and not has_file(side, suite_below(suite, side)):
                raise UsageError(
                    f"{suite} is not there in the {which} {side.short}; `harness run {suite}` measures it alone where "
                    "it is there"
                )
        # All that takes long comes after all that may be wrong.
        note, root = self.progress.note, environments_root()
        toolchains = {side: get_toolchains([side], root=root, on_install=note)[0] for side in releases}
        records = [record for run in runs.values() for record in run.header.toolchains] if releases else []
        others = [found for record in records if (found := toolchain_of(record, note)) is not None]
        made = []
        for which, side in zip(("base", "head"), sides, strict=True):
            if isinstance(side, Path):
                made.append(Side(runs[side], str(side), side))
            elif isinstance(side, Commit):
                path, tree = self.of_commit(suite, side, which)
                made.append(Side(load_run(path), side.name, commit=side, root=tree))
            else:
                toolchain, options = toolchains[side], unmeasured(self.options, suite, self.case)
                beside = (*(other for name, other in toolchains.items() if name != side), *others)
                run = self.run_of_side(toolchain.version, options, (toolchain,), beside)
                made.append(Side(load_run(run), f"{TOOLCHAIN_PREFIX}{toolchain.version}"))
        return made[0], made[1]

    def of_commit(self, suite: Path, commit: Commit, which: str) -> tuple[Path, Path]:
        """The run of a suite as a commit has it, and the folder in its tree that the suite's path begins in.

        The tree stays as long as the session: files of weights are read in it.
        """
        if is_changed(commit):
            self.progress.note(
                f"{commit.name} is compared as it was committed; changes of the working folder since are in no commit"
            )
        self.progress.note(f"The {which} is {commit.short}: {commit.subject}")
        below = suite_below(suite, commit)
        here = Path(os.path.relpath(commit.root / below, commit.root / commit.below))
        folder = self._stack.enter_context(tree_of(commit)) / commit.below
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if isinstance(self.options, CompareOptions) and self.options.prepare is not None:
                run = self.finished_run(commit.sha) or self._prepared(self.options, here, folder, commit)
                return run, folder
            options = unmeasured(self.options, here, self.case, results=self.options.results.absolute())
            with _working_in(folder):
                return self.run_of_side(commit.sha, options), folder
        except PlaceGone:  # what there is of the comparison is kept
            raise
        except UsageError as error:
            raise UsageError(f"the {which} {commit.short}: {error}") from None

    def run_of_side(
        self, side: str, options: RunOptions, toolchains: Sequence[Toolchain] = (), others: Sequence[Toolchain] = ()
    ) -> Path:
        """The run of a side that has none: the one that an earlier stretch finished or began, or a new one."""
        if (finished := self.finished_run(side)) is not None:
            return finished
        options = replace(options, resume=self._runs().get(side))
        try:
            words = [*self._sides, *(str(run) for name, run in self._runs().items() if name != side)]
            others_runs = [self._here / word for word in words if word != side]
            executor = self.executor.following([run for run in others_runs if (run / HEADER_FILE).is_file()])
            return run_suite(
                options,
                self.progress,
                toolchains,
                executor,
                others=others,
                purpose="compare",
                on_begin=lambda run: self._keep_run(side, run.header.suite_name, run.path),
            )
        except Interrupted:
            raise Interrupted(self.how_to_go_on) from None
        except PlaceGone as error:
            raise PlaceGone(error.what, self.command_to_go_on) from None

    def _runs(self) -> dict[str, Path]:
        return {} if self._folder is None else self._folder.runs(self._here)

    def finished_run(self, side: str) -> Path | None:
        """The run of a side that an earlier stretch has finished."""
        run = self._runs().get(side)
        return run if run is not None and (run / FINISHED_FILE).is_file() else None

    def _keep_run(self, side: str, suite: str, run: Path) -> None:
        """Keep which run is made for a side, also where that is made in another working folder."""
        with _working_in(self._here):
            self.folder(suite).keep_run(side, run)

    def _prepared(self, options: CompareOptions, suite: Path, folder: Path, commit: Commit) -> Path:
        """The run of a prepared tree, made by a harness of its own: this one may have imported what was replaced."""
        environment = {
            "HARNESS_CACHE": str(cache_root()),
            "HARNESS_PURPOSE": "compare",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        }
        prepare = ["bash", "-euo", "pipefail", "-c", f"exec >&2\n{options.prepare}"]
        try:
            status, _, said = _followed(prepare, folder, environment, self.progress)
        except OSError as error:
            raise UsageError(f"--prepare: bash cannot be started ({error.strerror}); install it") from None
        if status != 0:
            raise UsageError(f"--prepare exits with status {status}: {said}")
        command = [sys.executable, "-c", _HARNESS, "run", str(suite), *_words_of_run(options)]
        status, printed, said = _followed(command, folder, environment, self.progress)
        if status == ExitCode.INTERRUPTED:
            raise Interrupted(self.how_to_go_on)
        if status not in (ExitCode.OK, ExitCode.CASE_FAILED):
            said = said.removeprefix("harness: ")
            if (what := PlaceGone.said_in(said)) is not None:
                raise PlaceGone(what, self.command_to_go_on)
            raise UsageError(said)
        try:
            path = options.results / str(json.loads(printed)["run"]["id"])
        except (ValueError, KeyError):
            raise UsageError(f"{suite} is a list of suites; give one of them") from None
        self._keep_run(commit.sha, suite.stem, path)
        return path


def _words_of_run(options: CompareOptions) -> list[str]:
    folder = options.certificates
    joined = replace(options, certificates=None if folder is None else folder.absolute())
    return [
        *("--no-measure", "--format", "json", "--results", str(options.results.absolute())),
        *("--compile-timeout", f"{options.compile_timeout_s:g}"),
        *([] if options.wait else ["--no-wait"]),
        *joined.words_to_join(options.fleet),
        *(word for pattern in options.patterns for word in ("--filter", pattern)),
    ]


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
