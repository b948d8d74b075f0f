"""The diagnosis for programs: one JSON document."""

from __future__ import annotations

import dataclasses
import json

from harness import __version__
from harness.doctor.examine import Diagnosis

SCHEMA_VERSION = 1


def render_json(diagnosis: Diagnosis) -> str:
    """The findings and the facts behind them as one JSON document with `schema_version`; it ends in a line break.

    `toolchain` is null where there is none, `counters.unavailable` null where hardware counters work. The environment
    names no host, no user and no folder, so that the document can be put into an issue.
    """
    document = {
        "schema_version": SCHEMA_VERSION,
        "harness_version": __version__,
        "toolchain": dataclasses.asdict(diagnosis.toolchain) if diagnosis.toolchain else None,
        "extra_toolchains": [dataclasses.asdict(one) for one in diagnosis.extra_toolchains],
        "devices": [dataclasses.asdict(probe) for probe in diagnosis.probes],
        "vulkan_drivers": {name: dataclasses.asdict(probe) for name, probe in diagnosis.vulkan_drivers.items()},
        "peers": [dataclasses.asdict(one) for one in diagnosis.peers],
        "counters": {"unavailable": diagnosis.counters},
        "environment": diagnosis.environment,
        "findings": [dataclasses.asdict(finding) for finding in diagnosis.findings],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
