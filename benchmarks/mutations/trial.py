"""One mutation: applied to a copy of the source, tried with its tests, and taken back."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Of a copy: what the tests read or run. Results folders and virtual environments stay where they are.
_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.pyc")
# A test in pytest's summary, without its parameters, which may hold anything.
_FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)

Fate = Literal["caught", "survived", "timed out", "stale"]

# By pytest's exit status: all passed; some failed; it was interrupted, as by an error while it collected. One below 0
# is a signal, since a fault in a rewrite may crash the compiler. Others say that there is no such test.
_FATES: Mapping[int, Fate] = {0: "survived", 1: "caught", 2: "caught"}


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A fault in one line of the source.

    Attributes:
        id: Unique; the first part names the room.
        breaks: What goes wrong with it, in words.
        file: Relative to the repository.
        text: What is there, once in the file.
        replacement: What stands there instead.
        tests: Files, folders or ids of tests that should notice, relative to the repository; the likeliest first.
    """

    id: str
    breaks: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What became of one mutation.

    Attributes:
        fate: `stale`: the source does not have the text, or has it several times; or there is no such test.
        noticed_by: The test that failed first, or the file of tests that crashed; "" where none did.
        seconds: Of wall time.
    """

    mutation: Mutation
    fate: Fate
    noticed_by: str
    seconds: float


def read_table(file: Path) -> tuple[Mutation, ...]:
    """The mutations of a TOML file."""
    entries = tomllib.loads(file.read_text())["mutation"]
    return tuple(Mutation(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries)


def copy_tree(root: Path, target: Path) -> None:
    """Copy a repository's files without what git and tools keep in hidden folders."""
    shutil.copytree(root, target, ignore=_LEFT_OUT, symlinks=True)


def try_mutation(mutation: Mutation, tree: Path, limit_s: float) -> Trial:
    """Apply a mutation to a copy, run its tests until one fails, and put the file back.

    Args:
        tree: A copy of the repository, which nothing else uses meanwhile.
        limit_s: Wall time that its tests may take.
    """
    file = tree / mutation.file
    before, times = (file.read_bytes(), file.stat()) if file.is_file() else (b"", None)
    if times is None or before.decode().count(mutation.text) != 1:
        return Trial(mutation=mutation, fate="stale", noticed_by="", seconds=0.0)
    began = time.monotonic()
    try:
        file.write_text(before.decode().replace(mutation.text, mutation.replacement))
        code, output = run_tests(mutation.tests, tree, limit_s)
    finally:
        file.write_bytes(before)  # with its time, by which Python knows whether a compiled file is of it
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    seconds = time.monotonic() - began
    if code is None:
        return Trial(mutation=mutation, fate="timed out", noticed_by="", seconds=seconds)
    fate = _FATES.get(code, "caught" if code < 0 else "stale")
    noticed_by = next(iter(failures(output)), mutation.tests[0]) if fate == "caught" else ""
    return Trial(mutation=mutation, fate=fate, noticed_by=noticed_by, seconds=seconds)


def run_tests(tests: Sequence[str], tree: Path, limit_s: float, *, stop: bool = True) -> tuple[int | None, str]:
    """Run tests of a copy with this Python; pytest's exit status, None past the limit, and what it printed.

    Args:
        stop: At the first that fails.
    """
    options = ["-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", *(["-x"] if stop else [])]
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "1000"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


def failures(output: str) -> list[str]:
    """The tests that failed, by pytest's summary, or the files of tests that could not be read."""
    return _FAILED.findall(output)
