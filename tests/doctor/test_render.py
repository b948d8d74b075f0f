"""The diagnosis as a reader sees it, and as one JSON document."""

from __future__ import annotations

import json
import re

import pytest

from harness import __version__
from harness.doctor import Diagnosis, render_json, render_terminal

MACHINES = ("server", "laptop", "container", "silent")

CONTAINER = """\
Toolchain
  x missing no IREE compiler in this Python environment: install it with pip
            install iree-base-compiler
  + ok      Python 3.10.14

Devices
  x missing no device can be looked for without IREE's tools

Machine
  ! warning this is a virtual machine (KVM): neighbours slow its cores and
            caches, unseen from here
            -> compare what one run measured side by side, not figures of two
               days or two machines
  ! warning since it started, the host gave 3.2 % of the CPU time wanted here to
            others (steal)
            -> measure when the host is quiet, or on another one
  + ok      little else is running: the load of the last minute is 0.10

Processor
  ! warning AMD EPYC 7B13: this process may use 1 core of 2, by its affinity;
            what is timed shares it with all else that runs
            -> leave the machine alone while it measures; local-task suffers
               before local-sync

Memory
  ! warning 1.0 GiB of memory is free (a container's limit: 1.0 GiB); compiling
            a model of some size takes more
            -> end other programs, or compile fewer cases at a time

This process
  ! warning a container's limit lets this process use 1.5 cores' worth of time,
            and stops it until the next period when that is spent, 12 times so
            far
            -> give it whole cores in place of a share of all:
               docker run --cpuset-cpus=2,3 ...
  i note    address space randomisation is off: every process has one layout,
            and its luck looks like a result
            -> turn it on, so that generations sample layouts:
               sudo sysctl kernel.randomize_va_space=2

Hardware counters
  i note    this (virtual) machine exposes no hardware counters
            -> times are measured all the same; instruction counts, which repeat
               exactly, are left out

2 ok, 2 notes, 5 warnings, 2 missing. Nothing can be compiled or measured here
before the toolchain is there.
"""


def test_what_a_reader_sees(diagnoses: dict[str, Diagnosis]) -> None:
    assert render_terminal(diagnoses["container"], width=80) == CONTAINER


@pytest.mark.parametrize("machine", MACHINES)
def test_every_finding_is_there_in_lines_that_fit_but_commands_stay_whole(
    machine: str, diagnoses: dict[str, Diagnosis]
) -> None:
    diagnosis = diagnoses[machine]
    lines = render_terminal(diagnosis, width=60).splitlines()
    commands = {finding.command for finding in diagnosis.findings if finding.command}
    assert commands <= {line.strip() for line in lines}
    assert not [line for line in lines if len(line) > 60 and line.strip() not in commands]
    assert not [line for line in lines if line != line.rstrip()]
    text = " ".join(" ".join(lines).split())
    assert all(finding.what in text and (finding.advice or "") in text for finding in diagnosis.findings)


def test_colours_only_add_to_words_and_marks(diagnoses: dict[str, Diagnosis], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = render_terminal(diagnoses["laptop"], width=80)
    text = render_terminal(diagnoses["laptop"], width=80, color=True)
    assert "\x1b[33m  ! warning \x1b[0mturbo is on" in text
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == plain
    assert plain.isascii()


@pytest.mark.parametrize(
    ("machine", "end"),
    [
        ("server", "15 ok, 1 note, 2 missing. Nothing was found that makes times noisy."),
        ("laptop", "Measuring works, but times are noisier than they need be: see the warnings."),
    ],
)
def test_the_last_sentence_says_what_it_comes_to(machine: str, end: str, diagnoses: dict[str, Diagnosis]) -> None:
    assert render_terminal(diagnoses[machine], width=300).rstrip().endswith(end)


@pytest.mark.parametrize("machine", MACHINES)
def test_one_json_document_with_every_finding_and_fact(machine: str, diagnoses: dict[str, Diagnosis]) -> None:
    diagnosis = diagnoses[machine]
    text = render_json(diagnosis)
    assert text.endswith("}\n")
    document = json.loads(text)
    assert (document["schema_version"], document["harness_version"]) == (1, __version__)
    assert document["environment"] == diagnosis.environment
    assert document["counters"] == {"unavailable": diagnosis.counters}
    assert [finding["what"] for finding in document["findings"]] == [finding.what for finding in diagnosis.findings]
    assert [probe["driver"] for probe in document["devices"]] == [probe.driver for probe in diagnosis.probes]


def test_the_shapes_of_json(diagnoses: dict[str, Diagnosis]) -> None:
    server, laptop, container = (json.loads(render_json(diagnoses[name])) for name in MACHINES[:3])
    (turbo,) = [finding for finding in laptop["findings"] if finding["what"].startswith("turbo")]
    assert turbo == {
        "topic": "processor",
        "level": "warning",
        "what": "turbo is on: a core's speed depends on how warm it is and on what other cores do",
        "advice": "turn it off while measuring",
        "command": "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
    }
    device = {
        "uri": "vulkan://GPU-6d65",
        "name": "llvmpipe (LLVM 15.0.6, 256 bits)",
        "driver_version": "Mesa 22.3.6 (LLVM 15.0.6)",
        "api": "Vulkan 1.3.230",
        "kind": "cpu",
    }
    assert laptop["devices"][2] == {
        "driver": "vulkan",
        "devices": [device],
        "reason": None,
        "advice": None,
        "detail": "",
    }
    # Toolchains without their folders, so that the document can be put into an issue.
    assert server["toolchain"] == {
        "version": "3.13.0",
        "revision": "89ece87b89852100c0a4ac3d515e14842d090967",
        "compiler_sha256": "5e" * 32,
    }
    assert server["extra_toolchains"] == [{"version": "3.12.0", "disk_bytes": 627_181_843}]
    assert container["toolchain"] is None
