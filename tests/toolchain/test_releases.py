"""What a user may write behind --toolchain, and which of the toolchains that are here it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ToolchainError
from harness.toolchain import Toolchain, get_toolchains, install
from harness.toolchain.install import parse_release


@pytest.mark.parametrize(
    ("written", "release"),
    [
        ("3.12.0", "3.12.0"),
        ("3.12", "3.12.0"),
        ("3", "3.0.0"),
        ("iree==3.12.0", "3.12.0"),
        (" 3.12.0 ", "3.12.0"),
        ("v3.12.0", "3.12.0"),
        ("3.12.0.1", "3.12.0.1"),
        ("3.14.0rc20261101", "3.14.0rc20261101"),
        ("3.14-rc1", "3.14.0rc1"),
        ("1!3.12", "1!3.12.0"),
    ],
)
def test_a_release(written: str, release: str) -> None:
    assert parse_release(written) == release


@pytest.mark.parametrize("written", ["newest", "", "3.x", ">=3.12", "iree==", "iree>=3.12", "3.12.0 3.13.0", "--help"])
def test_what_is_no_release(written: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        parse_release(written)
    assert str(caught.value) == f"--toolchain {written}: is no version; write the release, as in --toolchain 3.12.0"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The releases that are installed, or would be."""
    releases: list[str] = []

    def remember(release: str, **_: object) -> str:
        releases.append(release)
        return f"installed {release}"

    monkeypatch.setattr(install, "install_toolchain", remember)
    return releases


def test_none_asked_for(tmp_path: Path, asked: list[str]) -> None:
    assert get_toolchains((), root=tmp_path) == ()
    assert asked == []


def test_the_one_beside_the_harness_is_used_as_it_is(
    real_toolchain: Toolchain, tmp_path: Path, asked: list[str]
) -> None:
    assert get_toolchains((real_toolchain.version,), root=tmp_path) == (real_toolchain,)
    assert get_toolchains((f"iree=={real_toolchain.version}",), root=tmp_path) == (real_toolchain,)
    assert asked == []


def test_the_order_is_the_users_and_each_comes_once(
    real_toolchain: Toolchain, tmp_path: Path, asked: list[str]
) -> None:
    found = get_toolchains(("3.2.0", real_toolchain.version, "3.1", "3.2"), root=tmp_path)
    assert found == ("installed 3.2.0", real_toolchain, "installed 3.1.0")  # type: ignore[comparison-overlap]
    assert asked == ["3.2.0", "3.1.0"]


def test_a_wrong_one_is_told_before_another_is_installed(tmp_path: Path, asked: list[str]) -> None:
    with pytest.raises(ToolchainError):
        get_toolchains(("3.2.0", "latest"), root=tmp_path)
    assert asked == []


def test_nothing_is_needed_beside_the_harness(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> Toolchain:
        raise ToolchainError("nothing is installed")

    monkeypatch.setattr(install, "find_toolchain", nothing)
    get_toolchains(("3.2.0",), root=tmp_path)
    assert asked == ["3.2.0"]
