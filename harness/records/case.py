"""A case: one model x variant x device x toolchain."""

from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["increase", "decrease", "any"]
ID_DIGITS = 16


@dataclass(frozen=True, kw_only=True)
class Case:
    """The unit of a run. Its name is for people, its id for machines; neither is parsed to learn a fact."""

    id: str  # 16 hex digits: a hash of what is compiled and how it runs, without names and without the toolchain
    name: str  # Unique in a plan: `model/variant@device`, and `model/variant@device:toolchain` where there are several
    model: str
    variant: str
    device: str
    toolchain: str  # Version of the compiler and runtime pair
    baseline: bool  # Whether the others of its group are compared with it
    uri: str
    backend: str
    pin: bool
    compile_flags: tuple[str, ...]  # All of the device and the variant, in their order
    run_flags: tuple[str, ...]  # The same for the runtime's tools and the worker
    plugins: tuple[str, ...]
    tags: tuple[str, ...]
    more_uris: tuple[str, ...] = ()  # Of the devices after the first; () in runs that are older than this field
    threads: int | None = None  # That a peer gets on this device; None: one for each core
    environment: dict[str, str] = field(default_factory=dict)  # Variables that its processes need, by name
    skip: str | None = None  # Why it is not run on this machine, as a sentence; None: it is run
    expected_failure: str | None = None  # Part of the message with which it is known to fail; None: it is not
    expected_mismatch: bool = False  # Whether it is known to run and to give wrong outputs
    peer: str | None = None  # Registered name of the engine that runs it instead of IREE; its label is the variant

    @property
    def uris(self) -> tuple[str, ...]:
        """All of its devices, the first one first."""
        return (self.uri, *self.more_uris)

    @property
    def group(self) -> str:
        """Cases with the same group are measured against each other: one model on one device."""
        return f"{self.model}@{self.device}"

    @property
    def known_to_fail(self) -> bool:
        """Whether the suite says that it fails, in either way."""
        return self.expected_mismatch or self.expected_failure is not None


@dataclass(frozen=True, kw_only=True)
class VariantGroup:
    """Variants that a report shows side by side, the first being the one compared with."""

    title: str
    variants: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Gate:
    """How much a metric of some cases may change before a comparison fails.

    With both limits the wider one counts; with none, any change in the direction is too much.
    """

    name: str
    metric: str  # Its registered name, see harness.metrics
    cases: str = "*"  # A shell pattern on case names
    direction: Direction = "increase"  # Of the change that may fail; all metrics are better when smaller
    relative: float | None = None  # Allowed change as a share of the base, such as 0.05
    absolute: float | None = None  # Allowed change in the metric's unit
    at_most: float | None = None  # Instead of a change, what the metric may be, in its unit
