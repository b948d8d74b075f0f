"""A made-up history: how large it is, which series it has, and what happens to each of them, and when.

Every night the same suite is measured with two toolchains, a reference that never changes and that day's newest. What
happens to a series is decided by its case's number alone, so that what should be found is known beforehand.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Literal

from harness.store.schema import Role

# What happens to the timings of a case, by its number modulo 10.
Fate = Literal["quiet", "step", "drift", "spikes", "two states", "machine"]
FATES: tuple[Fate, ...] = (
    "quiet", "quiet", "step", "quiet", "drift", "quiet", "spikes", "two states", "machine", "quiet",
)  # fmt: skip

STEP = 1.05
DRIFT = 1.02
DRIFT_RUNS = 50
NOISE = 0.01

SUITE = "made"
REFERENCE = "3.12.0"
MACHINE = "3f2a91c04b7e"
CPU = "AMD EPYC"
CORES = 2
SYSTEM = "Debian GNU/Linux 12 (bookworm)"
FIRST_NIGHT = datetime(2024, 1, 1, 2, 0, tzinfo=timezone.utc)
VARIANTS = ("stock", "data-tiling", "inline", "ukernels", "winograd")
DEVICE = "cpu"
DEVICE_FACTS = "this CPU, on the thread that calls"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One of the series that a case has."""

    metric: str
    unit: str
    role: Role

    @property
    def is_timed(self) -> bool:
        """Whether it is noisy."""
        return self.unit in ("ns", "ratio")


KINDS = (
    Kind(metric="latency", unit="ns", role="newest"),
    Kind(metric="latency", unit="ns", role="reference"),
    Kind(metric="latency-vs-baseline", unit="ratio", role="newest"),
    Kind(metric="latency-vs-reference", unit="ratio", role="newest"),
    Kind(metric="module-size", unit="bytes", role="newest"),
    Kind(metric="dispatches", unit="count", role="newest"),
    Kind(metric="transient-memory", unit="bytes", role="newest"),
    Kind(metric="device-peak-memory", unit="bytes", role="newest"),
)


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a history is."""

    series: int
    runs: int

    @property
    def cases(self) -> int:
        """So many as it takes; the last may have fewer series than the others."""
        return -(-self.series // len(KINDS))


@dataclass(frozen=True, kw_only=True)
class Night:
    """One run."""

    number: int
    started: datetime

    @property
    def run(self) -> str:
        """Its id."""
        return f"{self.started:%Y%m%d-%H%M%S}-{SUITE}"

    @property
    def toolchain(self) -> str:
        """That day's newest."""
        return f"3.14.0rc{self.started:%Y%m%d}"

    @property
    def revision(self) -> str:
        """The newest's commit."""
        return digest(self.toolchain, 40)


def nights(runs: int) -> list[Night]:
    """One a day."""
    return [Night(number=number, started=FIRST_NIGHT + timedelta(days=number)) for number in range(runs)]


@dataclass(frozen=True, kw_only=True)
class MadeCase:
    """One case, and what happens to it.

    Attributes:
        latency_ns: Of the reference, before anything happens.
        at: Number of the first run at which its fate is seen; that of a quiet one is never reached.
    """

    number: int
    model: str
    variant: str
    latency_ns: float
    fate: Fate
    at: int

    @property
    def name(self) -> str:
        """Without a toolchain."""
        return f"{self.model}/{self.variant}@{DEVICE}"

    @property
    def id(self) -> str:
        """As a case's: 16 hex digits."""
        return digest(self.name, 16)

    @property
    def dispatches(self) -> int:
        """Before anything happens."""
        return 4 + self.number % 60

    def level(self, number: int, role: Role) -> float:
        """How much slower than at first it is in a run, noise, spikes and states aside; a share of `latency_ns`."""
        if number < self.at or (role == "reference" and self.fate != "machine"):
            return 1.0
        if self.fate == "drift":
            return 1.0 + (DRIFT - 1.0) * min(1.0, (number - self.at + 1) / DRIFT_RUNS)
        return STEP if self.fate in ("step", "machine") else 1.0


def made_cases(cases: int, runs: int) -> Iterator[MadeCase]:
    """Five variants a model; whatever happens is seen between 3/10 and 7/10 of the way."""
    for number in range(cases):
        fate = FATES[number % len(FATES)]
        yield MadeCase(
            number=number,
            model=f"model-{number // len(VARIANTS):04}",
            variant=VARIANTS[number % len(VARIANTS)],
            latency_ns=1e5 * 10 ** (3 * (number // len(VARIANTS) * 37 % 101) / 101) * (1 - 0.07 * (number % 5)),
            fate=fate,
            at=runs if fate == "quiet" else int(runs * (0.3 + 0.4 * (number * 53 % 97) / 97)),
        )


def digest(text: str, digits: int) -> str:
    """Hex digits that are the same everywhere."""
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
