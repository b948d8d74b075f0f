"""Which machines' figures may be compared: those of one class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.text import one_line

UNKNOWN = "a machine of which nothing is known"


def machine_class(environment: Mapping[str, Mapping[str, Any]], device: str = "") -> str:
    """`AMD EPYC 7B13, 2 cores, Linux x86_64 (virtual)`: what a run's environment says, versions left out.

    Two machines of a class may differ in speed, and one machine may change. A new kernel or driver begins no new class,
    so that its effect is seen as a step; another processor or number of cores does.

    Args:
        environment: Of a run's header, see harness.machine.environment.
        device: The suite's name for one; the class then has the device's name too, where the run knows it, so that two
            GPUs beside the same processor are two classes.
    """
    machine, cpu = environment.get("machine", {}), environment.get("cpu", {})
    cores = cpu.get("usable_cores")
    system = " ".join(str(machine[key]) for key in ("system", "architecture") if key in machine)
    virtual = " (virtual)" if machine.get("virtual") else ""
    parts = [
        str(cpu.get("model", "")),
        "" if cores is None else f"{cores} core{'' if cores == 1 else 's'}",
        f"{system}{virtual}" if system else "",
        str(environment.get("device_names", {}).get(device, "")),
    ]
    return one_line(", ".join(part for part in parts if part)) or UNKNOWN
