"""The command line: record, diff."""

import argparse
import difflib
import fnmatch
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.frozen.calls import all_calls
from benchmarks.frozen.recording import record


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments say, and return the exit status."""
    parser = argparse.ArgumentParser(prog="benchmarks.frozen", description="What every command prints.")
    parts = parser.add_subparsers(dest="what", required=True)
    recorded = parts.add_parser("record", help="run every call and keep what it printed")
    recorded.add_argument("out", type=Path, help="the folder for it")
    beside = Path(sys.executable).parent / "harness"
    recorded.add_argument("--harness", type=Path, default=beside, help="the command to run (default: beside Python)")
    recorded.add_argument("--only", default="*", help="only calls whose name matches this shell pattern")
    compared = parts.add_parser("diff", help="say which calls differ")
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path)
    compared.add_argument("--names", action="store_true", help="only the names of the calls that differ")
    given = parser.parse_args(arguments)
    if given.what == "diff":
        return _diff(given.before, given.after, names_only=given.names)
    calls = [call for call in all_calls() if fnmatch.fnmatch(call.name, given.only)]
    begin = time.monotonic()
    seconds = record(calls, given.out, given.harness.absolute())
    print(f"{len(calls)} calls in {time.monotonic() - begin:.0f} s, kept in {given.out}")
    slowest = sorted(seconds, key=seconds.__getitem__, reverse=True)[:5]
    print("slowest: " + ", ".join(f"{name} {seconds[name]:.1f} s" for name in slowest))
    return 0


def _diff(before: Path, after: Path, *, names_only: bool) -> int:
    differ = False
    for name in sorted({file.name for folder in (before, after) for file in folder.glob("*.txt")}):
        old, new = (_lines(folder / name) for folder in (before, after))
        if old == new:
            continue
        differ = True
        if names_only:
            print(name)
        else:
            sys.stdout.writelines(difflib.unified_diff(old, new, f"before/{name}", f"after/{name}"))
    return 1 if differ else 0


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
