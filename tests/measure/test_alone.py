"""One harness at a time measures on a machine, and who waits is told for whom."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.measure.alone import only_one_measures

_HOLDER = """
import sys
sys.argv = ["harness", "run", "a b.toml"]
from harness.measure.alone import only_one_measures
with only_one_measures(print):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> subprocess.Popen[str]:
    """Another process that measures."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}\n{_HOLDER}"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_a_second_one_waits_and_says_so(holder: subprocess.Popen[str]) -> None:
    notes = []

    def note(text: str) -> None:
        notes.append(text)
        holder.communicate("")  # the other one is done

    with only_one_measures(note):
        (text,) = notes
    assert re.fullmatch(
        rf"Another harness is measuring on this machine since [0-9:]{{8}}: pid {holder.pid}, harness run 'a b.toml'; "
        r"waiting for it \(--no-wait measures beside it, which disturbs both\)",
        text,
    )


def test_one_that_does_not_wait_measures_beside_it_whatever_it_says_of_itself(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    (file,) = tmp_path.glob("*-measures.json")
    for text in ("", "[]", '{"since": "then"}'):
        file.write_text(text)
        notes: list[str] = []
        with only_one_measures(notes.append, wait=False):
            beside = "this one measures beside it, so figures of both are disturbed"
            assert notes == [f"Another harness is measuring on this machine; {beside}"]
    assert holder.poll() is None
    holder.communicate("")


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 12345"), OSError("No username set")])
def test_a_user_without_a_name_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def unknown() -> str:
        raise error

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("getpass.getuser", unknown)
    with only_one_measures(lambda _: pytest.fail("waited")):
        assert (tmp_path / f"iree-harness-{os.getuid()}-measures.lock").exists()
