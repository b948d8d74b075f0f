"""Whatever the shell made of stdout and stderr, a command does its work and ends with a status that says the truth."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")

# What `harness` runs, as a command that prints and is done: in place of `sys.argv[1:]`.
_COMMAND = """
import os, sys
from harness import cli
from harness.cli.output import print_text, tell
def application(_):
    def command(*_, **__):
        for _ in range(3):
            print_text("\u25bc faster " * 2000)
        tell("the work is done")
        open(sys.argv[1], "w").write("kept")
        return int(sys.argv[2])
    return command
cli.application_for = application
cli.main()
"""


def ends(folder: Path, shell: str, status: int = 0) -> tuple[int, str]:
    """The exit status, and what stderr has, of a command that a shell runs so."""
    script = f'"$0" -c "$1" "$2" {status} {shell}'
    command = ["sh", "-c", script, sys.executable, _COMMAND, str(folder / "kept")]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    assert (folder / "kept").read_text() == "kept"
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("shell", "reason"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_a_stdout_that_takes_nothing_is_said_when_the_work_is_done(tmp_path: Path, shell: str, reason: str) -> None:
    lost = f"harness: stdout: cannot be written ({reason}), so not all was printed; what was measured is kept\n"
    assert ends(tmp_path, shell) == (2, f"the work is done\n{lost}")
    assert ends(tmp_path, shell, status=3) == (3, f"the work is done\n{lost}"), "a status that says more stays"


@pytest.mark.parametrize("shell", ["2>/dev/full", "2>&-", "<&- 2>&-"])
def test_a_stderr_that_takes_nothing_changes_no_status(tmp_path: Path, shell: str) -> None:
    assert ends(tmp_path, shell) == (0, "")
    assert ends(tmp_path, shell, status=4) == (4, "")


def test_a_stdout_of_few_characters_has_question_marks_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    status, said = ends(tmp_path, f">{tmp_path}/out")
    assert (tmp_path / "out").read_text().startswith("? faster")
    assert (status, said) == (0, "the work is done\n")


def test_what_goes_to_stderr_is_one_bounded_printable_line(tmp_path: Path) -> None:
    name = "no-such-command-\x1b[31mred\x1b]0;title\x07\n" + "x" * 50_000
    command = [sys.executable, "-c", "from harness.cli import main; main()", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.strip("\n").isprintable()
    assert len(done.stderr) < 2_200
    assert "(see harness --help)" in done.stderr, "the end, which says what to do, stays"
