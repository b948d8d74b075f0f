"""Releases: what a user may write, the newest, those from one to another, and an index that does not say.

What pip prints is that of pip 23.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from harness.errors import ToolchainError
from harness.toolchain import install
from harness.toolchain.install import newest_release, parse_release, releases_between, releases_named
from tests.fakes.fake_wheels import write_wheels


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ToolchainError) as caught:
        call()
    return str(caught.value)


# ------------------------------------------------------------------------------------------------ what a user may write


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
    assert refusal(lambda: parse_release(written)) == (
        f"--toolchain {written}: is no version; write the release, as in --toolchain 3.12.0"
    )


# --------------------------------------------------------------------------------------------------- the newest release


def test_the_newest_has_the_highest_number_and_both_halves_and_is_released(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for release in ("9.9.0", "9.10.0", "9.11.0", "9.12.0rc20261120"):
        write_wheels(index, release)
    next(index.glob("iree_base_runtime-9.11.0-*")).unlink()
    assert newest_release() == "9.10.0"
    monkeypatch.setenv("PIP_PRE", "1")
    assert newest_release() == "9.12.0rc20261120"


def test_an_index_without_a_pair(index: Path) -> None:
    assert refusal(newest_release) == (
        "--toolchain newest: no package index that is configured here has iree-base-compiler; check pip's settings, or "
        "give a version"
    )
    write_wheels(index, "9.8.0", runtime_version="9.9.0")
    assert refusal(newest_release) == (
        "--toolchain newest: no release has both iree-base-compiler and iree-base-runtime for this Python; give a "
        "version"
    )


def test_an_index_that_cannot_be_reached(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    assert refusal(newest_release) == (
        "--toolchain newest: the package index cannot be reached; connect, or give a version"
    )


WHAT_PIP_SAYS = "see what `pip index versions iree-base-compiler` says"


@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        ("No module named pip", "needs pip, which this Python does not have; install pip, or give a version"),
        ("a new trouble", f"pip cannot say which releases iree-base-compiler has; {WHAT_PIP_SAYS}"),
    ],
)
def test_a_pip_that_does_not_say_its_releases(printed: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "run", Mock(return_value=Mock(ok=False, stdout="", stderr=printed)))
    assert refusal(newest_release) == f"--toolchain newest: {sentence}"


def test_releases_with_names_of_old_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = "Available versions: 3.9.0, 3.8.0-of-old, 3.7.0\n"
    monkeypatch.setattr(install, "run", Mock(return_value=Mock(ok=True, stdout=printed, stderr="")))
    assert newest_release() == "3.9.0"


# ----------------------------------------------------------------------------------------------- from one to another


def test_releases_from_one_to_another_are_those_of_both_halves(index: Path) -> None:
    for release in ("9.7.0", "9.8.0", "9.9.0", "9.10.0", "9.11.0", "9.10.0rc20261120"):
        write_wheels(index, release)
    next(index.glob("iree_base_runtime-9.9.0-*")).unlink()
    assert releases_between("9.8.0", "9.10.0") == ("9.8.0", "9.10.0")
    assert releases_between("9.10.0", "9.8.0") == ("9.8.0", "9.10.0"), "in whichever order they are given"
    assert releases_between("9.8.0", "9.10.0", pre=True) == ("9.8.0", "9.10.0rc20261120", "9.10.0")
    assert releases_between("9.12.0", "9.13.0") == ()


def test_an_index_that_does_not_say_what_lies_between(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = "Could not fetch URL https://pypi.org/simple/: connection error: no route"
    monkeypatch.setattr(install, "run", Mock(return_value=Mock(ok=False, stdout="", stderr=printed)))
    assert refusal(lambda: releases_between("9.8.0", "9.10.0")) == (
        "the releases from 9.8.0 to 9.10.0: the package index cannot be reached; connect, or name each of them"
    )


def test_a_range_is_all_that_the_index_has_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = "Available versions: 9.9.0, 9.8.0, 9.7.0\n"
    monkeypatch.setattr(install, "run", Mock(return_value=Mock(ok=True, stdout=printed, stderr="")))
    said: list[str] = []
    assert releases_named(["9.9", "iree==9.7.0..9.8"], said.append) == ("9.9.0", "9.7.0", "9.8.0")
    assert said == ["iree==9.7.0..9.8 is 2 releases: 9.7.0, 9.8.0"]
    assert releases_named(["9.8.0..newest"], said.append) == ("9.8.0", "9.9.0")
    assert refusal(lambda: releases_named(["1.0..2.0"], said.append)) == (
        "--toolchain 1.0..2.0: the package index has no release of that range; correct it"
    )
    assert refusal(lambda: releases_named(["1.0.."], said.append)) == (
        "--toolchain 1.0..: a range has two ends, as in 3.0.0..3.13.0"
    )
