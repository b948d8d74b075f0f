"""The `harness` command in a folder of its own, and how its tests read what it printed."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from harness.cli import run_command_line
from harness.records.run import Run
from harness.store.run_directory import load_run

# Whatever the terminal is that the tests run in: a narrow one leaves columns out.
_TERMINAL = {"COLUMNS": "120"}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def words(self) -> str:
        """All of stdout on one line, so that no sentence is broken."""
        return " ".join(self.stdout.split())


@dataclass(frozen=True)
class Harness:
    """The command in a folder that holds a suite.

    A call runs in this process, since a fresh one needs a second to import what it needs, unless it has packages of its
    own or is to be killed.
    """

    folder: Path
    packages: Path | None = None  # A folder of packages that are as if they were installed
    programs: Path | None = None  # Of an environment of its own, whose command is called

    @property
    def _tools(self) -> list[Path]:
        """Folders of programs, that of the `harness` command first."""
        return [*([self.programs] if self.programs is not None else []), Path(sys.executable).parent]

    def __call__(self, *arguments: str) -> Ended:
        """Run a command line to its end."""
        if self.programs is not None or self.packages is not None:
            return _ended(self._process(*arguments))
        stdout, stderr = io.StringIO(), io.StringIO()
        with (
            _inside(self.folder),
            mock.patch.dict(os.environ, _TERMINAL),
            mock.patch.object(sys, "argv", ["harness", *arguments]),
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
        ):
            status = run_command_line(arguments)
        assert "Traceback" not in stderr.getvalue(), stderr.getvalue()
        return Ended(returncode=status, stdout=stdout.getvalue(), stderr=stderr.getvalue())

    def _process(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the installed command as a user would, in a process of its own."""
        paths = [str(self.packages or ""), os.environ.get("PYTHONPATH", "")]
        return subprocess.Popen(
            [str(self._tools[0] / "harness"), *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **_TERMINAL},
            # Some shells start background jobs with SIGINT ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def killed(self, number: signal.Signals, after: str, *arguments: str) -> tuple[Ended, Path]:
        """Start the command, and end it with a signal once its run has a file; how it ended, and the run."""
        before = set(self.runs())
        child = self._process(*arguments)
        deadline = time.monotonic() + 120
        while not (there := [path for path in set(self.runs()) - before if (path / after).exists()]):
            assert time.monotonic() < deadline, "it never came to that"
            time.sleep(0.01)
        child.send_signal(number)
        return _ended(child), there[0]

    def shell(self, script: str) -> Ended:
        """Run lines of a shell as a user would paste them, with the tools of this environment on the path."""
        path = os.pathsep.join([*map(str, self._tools), os.environ["PATH"]])
        shell = subprocess.Popen(
            ["sh", "-e", "-c", script],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PATH": path},
        )
        return _ended(shell)

    def runs(self) -> list[Path]:
        """All run and comparison folders, oldest first."""
        results = self.folder / "results"
        return sorted(path for path in results.iterdir() if path.is_dir()) if results.is_dir() else []

    def run(self) -> Run:
        """The only run."""
        (path,) = self.runs()
        return load_run(path)


def _ended(child: subprocess.Popen[str]) -> Ended:
    """Wait for a process, which dies of no exception."""
    stdout, stderr = child.communicate(timeout=240)
    assert "Traceback" not in stderr, stderr
    return Ended(returncode=child.returncode, stdout=stdout, stderr=stderr)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work in a folder, and leave the process's signal handlers as they were."""
    before = Path.cwd()
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def timed(run: Run) -> set[str]:
    """Names of the cases that have turns."""
    return {turn.case for one_round in run.rounds for turn in one_round.turns}


def document(ended: Ended) -> dict[str, Any]:
    """What `--format json` printed: one document, in JSON's strict sense."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    found: dict[str, Any] = json.loads(ended.stdout, parse_constant=refuse)
    assert found["schema_version"] == 1
    return found


def latencies(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Latency rows of a comparison's document by case; A/A controls have a name of their own."""
    rows = [row for row in found["rows"] if row["metric"] == "latency"]
    return {f"{row['case']} control" if row["control"] else row["case"]: row for row in rows}


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    """Verdicts of latency rows by case."""
    return {name: row["verdict"] for name, row in latencies(found).items()}
