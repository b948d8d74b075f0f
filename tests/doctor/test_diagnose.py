"""Looking at the machine that runs the tests."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.doctor import devices_of, diagnose
from harness.errors import ToolchainError
from harness.peers.peer import PEERS
from harness.process import Limits
from tests.builders import a_device, a_suite
from tests.doctor.conftest import TOOLCHAIN

LIMITS = Limits(seconds=30)


@pytest.mark.skipif(sys.platform == "win32", reason="the script is a shell script")
def test_every_driver_is_asked_for(tmp_path: Path) -> None:
    tool = tmp_path / "iree-run-module"
    tool.write_text('#!/bin/sh\ntest "$1" = --list_devices=hip && echo hip://GPU-1\n')
    tool.chmod(0o755)
    toolchain = replace(TOOLCHAIN, revision="", compiler_tools=tmp_path, runtime_tools=tmp_path)
    diagnosis = diagnose(toolchain, limits=LIMITS)
    assert [probe.driver for probe in diagnosis.probes] == ["local-sync", "local-task", "vulkan", "cuda", "hip"]
    assert [bool(probe.devices) for probe in diagnosis.probes] == [True, True, False, False, True]
    assert diagnosis.about("toolchain")[0].what == "IREE 3.13.0"
    assert diagnosis.environment["cpu"]["logical_cores"] >= 1


def test_without_a_toolchain_the_machine_is_judged_all_the_same() -> None:
    diagnosis = diagnose(ToolchainError("there is no IREE here: install it"), limits=LIMITS)
    assert diagnosis.probes == ()
    assert diagnosis.about("toolchain")[0].what == "there is no IREE here: install it"
    assert diagnosis.about("processor")


def test_every_registered_peer_is_there_or_says_why_not() -> None:
    peers = diagnose(ToolchainError("none"), limits=LIMITS).peers
    assert {peer.name for peer in peers} == set(PEERS.names)
    assert all((peer.version is None) == (peer.missing is not None) for peer in peers)


def test_suites_ask_for_the_drivers_of_their_devices() -> None:
    """And for one driver of Vulkan where they say which."""
    both = replace(a_device(), uri="cuda://0", more_uris=("hip",))
    soft = replace(a_device(), uri="vulkan", vulkan_driver="lavapipe")
    suites = (a_suite(devices=(a_device(), both, soft)), a_suite(devices=(replace(a_device(), uri="vulkan://1"),)))
    assert devices_of(suites[:1]) == {"local-sync", "cuda", "hip", "lavapipe"}
    assert devices_of(suites) == {"local-sync", "cuda", "hip", "lavapipe", "vulkan"}
    asked = devices_of(suites)
    assert diagnose(ToolchainError("none"), limits=LIMITS, asked=asked).asked == asked
