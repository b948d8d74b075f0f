"""The script that watches what a release's flags do: what it reads from help texts and logs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_spec = importlib.util.spec_from_file_location("trace_flags", ROOT / "scripts/trace_flags.py")
assert _spec is not None
assert _spec.loader is not None
trace_flags = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(trace_flags)

COMPILER = """\
OPTIONS:
  --a-number=<uint>          - A number
  --a-switch                 - A switch
  --a-choice=<value>         - One of
    =none                    -   none
  --a-path=<string>          - A path
  --load=<pluginfilename>    - Load it
  --maybe[=<string>]         - May have one
"""
RUNTIME = """\
# Says how.
# --help
--a_switch=true
--a_number=-1.5
--a_mode="preload"
# --a_list=...
"""


@pytest.mark.parametrize(
    ("tool", "text", "flags"),
    [
        ("iree-compile", COMPILER, ["a-path", "load", "maybe"]),
        ("iree-run-module", RUNTIME, ["a_mode", "a_list"]),
    ],
)
def test_flags_whose_value_may_be_a_path(tool: str, text: str, flags: list[str]) -> None:
    assert list(trace_flags.flags_of(tool, text)) == flags


@pytest.mark.parametrize(
    ("line", "did"),
    [
        ('7 execve("/x/iree-compile", ["iree-compile", "--a=/t/hprobe/x"], 0x0) = 0', set()),
        ('7 execve("/bin/sh", ["sh", "-c", "/t/hprobe/x.sh"], 0x0) = 0', {"runs"}),
        ('7 openat(AT_FDCWD, "/t/hprobe/x", O_RDONLY|O_CLOEXEC) = 3', {"reads"}),
        ('7 openat(AT_FDCWD, "/t/hprobe/x", O_WRONLY|O_CREAT, 0666) = 3', {"writes"}),
        ('7 mkdir("/t/hprobe/x", 0777) = 0', {"writes"}),
        ('7 mkdir("hprobe-was-loaded", 0700) = 0', {"loads"}),
        ('7 openat(AT_FDCWD, "/t/else", O_WRONLY|O_CREAT, 0666) = 3', set()),
        ("7 +++ exited with 0 +++", set()),
    ],
)
def test_what_a_log_shows(line: str, did: set[str]) -> None:
    assert trace_flags.done_by(line, "iree-compile") == did
