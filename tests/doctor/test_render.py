"""The diagnosis as a reader sees it, and as one JSON document."""

from __future__ import annotations

import json

import pytest

from harness import __version__
from harness.doctor import Diagnosis, diagnosis_page, render_json
from harness.doctor.examine import Environment
from harness.report.terminal import to_terminal
from tests.doctor.conftest import LOCAL, NO_CUDA, SILENT, TOOLCHAIN, judge

NOTHING = """\
Toolchain
x missing: there is no IREE here: install it

Devices
i note: cuda: no CUDA device (UNAVAILABLE: CUDA driver library
'libcuda.so'/'nvcuda.dll' not available)
-> install the NVIDIA driver (libcuda)

Memory
i note: the kernel hands out huge pages as it sees fit, so that equal buffers
differ from process to process
-> let programs ask for them:
  echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled

Hardware counters
+ ok: hardware counters work, and are read beside the time

Summary
1 ok, 2 notes, 1 missing. Nothing can be compiled or measured here before the
toolchain is there.

Devices that nobody asked for are notes; `harness doctor SUITE` asks for those
of a suite.
"""


def test_what_a_reader_sees() -> None:
    environment = {**SILENT, "memory": {"transparent_huge_pages": "always"}}
    assert to_terminal(diagnosis_page(judge(environment, probes=(NO_CUDA,))), width=80) == NOTHING


@pytest.mark.parametrize(
    ("smt", "end"),
    [
        (False, "1 note. Nothing was found that makes times noisy."),
        (True, "1 warning. Measuring works, but times are noisier than they need be: see the warnings."),
    ],
)
def test_the_last_sentence_says_what_it_comes_to(smt: bool, end: str, quiet: Environment) -> None:
    quiet["cpu"]["smt"] = smt
    page = diagnosis_page(judge(quiet, toolchain=TOOLCHAIN, probes=(LOCAL,)))
    assert to_terminal(page, width=300).rstrip().endswith(end)


def test_one_json_document_with_every_finding_and_fact(busy: Diagnosis) -> None:
    document = json.loads(render_json(busy))
    assert (document["schema_version"], document["harness_version"]) == (1, __version__)
    assert document["environment"] == busy.environment
    assert document["counters"] == {"unavailable": busy.counters}
    found = [(topic, finding.what) for topic, found in busy.findings.items() for finding in found]
    assert [(finding["topic"], finding["what"]) for finding in document["findings"]] == found
    assert [probe["driver"] for probe in document["devices"]] == ["local-sync", "vulkan", "cuda"]
    assert document["devices"][2] == {**vars(NO_CUDA), "devices": []}
    assert document["peers"][0] == {"name": "onnxruntime", "version": "ONNX Runtime 1.31.1", "missing": None}
    # Toolchains without their folders, so that the document can be put into an issue.
    revision = "89ece87b89852100c0a4ac3d515e14842d090967"
    assert document["toolchain"] == {"version": "3.13.0", "revision": revision, "compiler_sha256": "5e" * 32}
    assert document["extra_toolchains"] == [{"version": "3.12.0", "disk_bytes": 627_181_843}]
    assert json.loads(render_json(judge(SILENT)))["toolchain"] is None
