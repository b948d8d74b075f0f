"""Do the devices that a suite lists fit those that a module was compiled for? Asked before it runs.

IREE's runtime takes a list that is longer than the program's without a word and leaves the rest idle, and it answers a
shorter one with a page of target attributes. A module says itself what it was compiled for: it carries the message of
its own search for each of its devices, with the device's name and all that it may be.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_SEARCH = re.compile(rb"HAL device `([^`]+)` not found or unavailable: ([\x20-\x7e]+)")
# What follows the kind up to the list of executable targets holds the ordinal, where there is one.
_TARGET = re.compile(r'#hal\.device\.target<"([^"]+)"([^\[]*)')
_ORDINAL = re.compile(r"\bordinal = (\d+)")
_FALLBACK = "#hal.device.fallback"
_LOCAL = "local"


class Place(NamedTuple):
    """A device as programs ask for it: the first, second, ... of its kind, which is `local`, `vulkan`, `cuda`, ..."""

    kind: str
    ordinal: int

    def __str__(self) -> str:
        """As --iree-hal-target-device has it."""
        return f"{self.kind}[{self.ordinal}]"


def module_devices(module: Path) -> dict[str, tuple[Place, ...]]:
    """By name, what each of a module's devices may be, in order of preference; () where another stands in for it."""
    if not module.is_file() or not module.stat().st_size:
        return {}  # which the runtime tells better
    with module.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = [(name.decode(), target.decode()) for name, target in _SEARCH.findall(content)]
    return {name: () if _FALLBACK in target else _places(target) for name, target in found}


def _places(target: str) -> tuple[Place, ...]:
    places = []
    for kind, rest in _TARGET.findall(target):
        ordinal = _ORDINAL.search(rest)
        places.append(Place(kind, int(ordinal[1]) if ordinal else 0))
    return tuple(places)


def misfit(devices: Mapping[str, Sequence[Place]], uris: Sequence[str]) -> str | None:
    """Why these devices are not the program's, as a sentence; None: they fit, or the module does not say.

    Args:
        devices: What `module_devices` found.
        uris: As they are given to the runtime, in order.
    """
    if not devices or not all(devices.values()):
        return None
    given = _given(uris)
    for name, places in devices.items():
        if not set(places) & set(given):
            wanted = " or ".join(map(str, places))
            return f"the program needs a device {name} ({wanted}), and uri has none; add one to uri"
    used = {place for places in devices.values() for place in places}
    for place, uri in zip(given, uris, strict=True):
        if place not in used:
            known = ", ".join(f"{name} = {' or '.join(map(str, places))}" for name, places in devices.items())
            return (
                f"nothing of the program is for {uri} ({place}), one of {len(uris)} devices in uri, since it was "
                f"compiled for {known}; shorten uri, or name it in --iree-hal-target-device"
            )
    return None


def _given(uris: Sequence[str]) -> list[Place]:
    kinds = [uri.split("://", 1)[0] for uri in uris]
    kinds = [_LOCAL if kind.startswith(f"{_LOCAL}-") else kind for kind in kinds]
    return [Place(kind, kinds[:position].count(kind)) for position, kind in enumerate(kinds)]
