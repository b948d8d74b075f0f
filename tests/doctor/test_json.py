"""The diagnosis as one JSON document."""

from __future__ import annotations

import json

import pytest

from harness import __version__
from harness.doctor import Diagnosis, render_json


@pytest.mark.parametrize("machine", ["server", "laptop", "container", "silent"])
def test_one_document_with_every_finding_and_fact(machine: str, diagnoses: dict[str, Diagnosis]) -> None:
    diagnosis = diagnoses[machine]
    text = render_json(diagnosis)
    assert text.endswith("}\n")
    document = json.loads(text)
    assert document["schema_version"] == 1
    assert document["harness_version"] == __version__
    assert document["environment"] == diagnosis.environment
    assert document["counters"] == {"unavailable": diagnosis.counters}
    assert [finding["what"] for finding in document["findings"]] == [finding.what for finding in diagnosis.findings]
    assert [probe["driver"] for probe in document["devices"]] == [probe.driver for probe in diagnosis.probes]


def test_shape_of_a_finding_and_of_a_device(diagnoses: dict[str, Diagnosis]) -> None:
    document = json.loads(render_json(diagnoses["laptop"]))
    (turbo,) = [finding for finding in document["findings"] if finding["what"].startswith("turbo")]
    assert turbo == {
        "topic": "processor",
        "level": "warning",
        "what": "turbo is on: a core's speed depends on how warm it is and on what other cores do",
        "advice": "turn it off while measuring",
        "command": "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
    }
    assert document["devices"][2] == {
        "driver": "vulkan",
        "devices": [
            {
                "uri": "vulkan://GPU-6d65",
                "name": "llvmpipe (LLVM 15.0.6, 256 bits)",
                "driver_version": "Mesa 22.3.6 (LLVM 15.0.6)",
                "api": "Vulkan 1.3.230",
                "kind": "cpu",
            }
        ],
        "reason": None,
        "advice": None,
        "detail": "",
    }


def test_the_toolchain_is_named_without_folders(diagnoses: dict[str, Diagnosis]) -> None:
    assert json.loads(render_json(diagnoses["server"]))["toolchain"] == {
        "version": "3.13.0",
        "revision": "89ece87b89852100c0a4ac3d515e14842d090967",
        "compiler_sha256": "5e" * 32,
    }
    assert json.loads(render_json(diagnoses["container"]))["toolchain"] is None
    assert json.loads(render_json(diagnoses["server"]))["extra_toolchains"] == [
        {"version": "3.12.0", "disk_bytes": 627_181_843}
    ]
