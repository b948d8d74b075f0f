"""Two harnesses do not measure at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.measure.generation import only_one_measures

_HOLDER = """
import sys
from harness.measure.generation import only_one_measures
with only_one_measures(lambda: None):
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
    waited = []

    def on_wait() -> None:
        waited.append(True)
        holder.communicate("")  # the other one is done

    with only_one_measures(on_wait):
        assert waited == [True]


def test_one_that_was_killed_holds_nobody_up(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.communicate()
    with only_one_measures(lambda: pytest.fail("waited")):
        pass
