"""`--toolchain newest`: what real pip finds in a folder of wheels, and its failures as one sentence each."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ToolchainError
from harness.toolchain import get_toolchains, install
from harness.toolchain.install import newest_release
from tests.fakes.fake_wheels import write_wheels


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip takes for the only index there is."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    return folder


def test_newest_is_the_highest_number_and_not_the_last_in_the_alphabet(index: Path) -> None:
    for release in ("9.9.0", "9.10.0", "9.8.0"):
        write_wheels(index, release)

    assert newest_release() == "9.10.0"


def test_a_release_that_lacks_one_half_is_passed_over(index: Path) -> None:
    write_wheels(index, "9.8.0")
    write_wheels(index, "9.9.0")
    for half in index.glob("iree_base_runtime-9.9.0-*"):
        half.unlink()

    assert newest_release() == "9.8.0"


def test_a_nightly_build_counts_where_pip_is_told_so(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_wheels(index, "9.8.0")
    write_wheels(index, "9.9.0rc20261120")

    assert newest_release() == "9.8.0"
    monkeypatch.setenv("PIP_PRE", "1")
    assert newest_release() == "9.9.0rc20261120"


def test_no_pair_at_all_is_one_sentence(index: Path) -> None:
    with pytest.raises(ToolchainError, match=r"no package index that is configured here has iree-base-compiler; check"):
        newest_release()


def test_an_index_that_cannot_be_reached_is_one_sentence(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")

    with pytest.raises(ToolchainError, match=r"^--toolchain newest: the package index cannot be reached; connect, or"):
        newest_release()


@pytest.mark.parametrize("written", ["newest", "iree==newest"])
def test_the_user_is_told_which_release_it_is(written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(install, "newest_release", lambda: "9.9.0")
    monkeypatch.setattr(install, "install_toolchain", lambda release, **_: release)

    assert get_toolchains([written], root=tmp_path, on_install=told.append) == ("9.9.0",)  # type: ignore[comparison-overlap]
    assert told == ["The newest release of IREE is 9.9.0"]
