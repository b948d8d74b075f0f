"""Where rows are measured: the Protocol that `remeasure` takes, and this machine as one place.

Hosts of a fleet are another, see harness.fleet.rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from harness.compare.engine import Together, in_turn
from harness.compare.pairs import Known, Pair
from harness.compare.samplers import LatencySampler, Module, group_of_row, sample_compiles, settings_of_row
from harness.compare.task import Batch, Generation
from harness.measure import last_core
from harness.measure.alone import only_one_measures
from harness.process import Limits
from harness.progress import Progress
from harness.records.run import HostRecord, Round
from harness.suite.present import why_gone


@dataclass(frozen=True, kw_only=True)
class Work:
    """A pair whose modules are here."""

    name: str  # Unique among the rows of a comparison
    pair: Pair
    base: Module
    head: Module
    control: bool  # Whether it is an A/A control


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How generations of a row come about; the fields are those of harness.compare.task.Task."""

    sample: Callable[[int], Generation]
    hosts: int = 1
    batch: Batch | None = None
    noise: float = 0.0


class RowPlace(Protocol):
    """Where rows are measured."""

    @property
    def abreast(self) -> int:
        """How many rows are measured at the same time."""
        ...

    @property
    def hosts(self) -> tuple[HostRecord, ...]:
        """Of a fleet, the hosts that rows are on; (): this machine."""
        ...

    def missing(self, works: Sequence[Work]) -> Mapping[str, Known]:
        """Rows that cannot be measured there, by name, with why; asked once, before anything is measured."""
        ...

    def alone(self, *, wait: bool) -> AbstractContextManager[Together]:
        """Let nothing else of the harness compute there while rows are measured; give what walks the rows."""
        ...

    def latencies(self, work: Work, *, seed: int, call_limit_s: float, on_round: Callable[[Round], None]) -> Sampling:
        """Measure a row's latencies."""
        ...

    def compiles(self, work: Work, limits: Limits) -> Sampling:
        """Measure a row's compile times, with nothing else on that machine."""
        ...


@dataclass(frozen=True, kw_only=True)
class ThisMachine:
    """This machine."""

    progress: Progress
    noise: float = 0.0  # The smallest change that its last selfcheck found, as a share; 0: not known
    abreast: int = 1
    hosts: tuple[HostRecord, ...] = ()

    def missing(self, works: Sequence[Work]) -> Mapping[str, Known]:
        """Rows whose device the runs had and this machine does not have now."""
        absent = _absent_devices(works)
        return {work.name: absent[work.pair.case.device] for work in works if work.pair.case.device in absent}

    @contextmanager
    def alone(self, *, wait: bool) -> Iterator[Together]:
        """One row after the other."""
        with only_one_measures(self.progress.note, wait=wait):
            yield in_turn

    def latencies(self, work: Work, *, seed: int, call_limit_s: float, on_round: Callable[[Round], None]) -> Sampling:
        """In fresh workers; rounds come as they end."""
        group, settings = group_of_row(work.name, work.base, work.head), settings_of_row(seed, call_limit_s)
        return Sampling(sample=LatencySampler(group, settings, on_round), noise=self.noise)

    def compiles(self, work: Work, limits: Limits) -> Sampling:
        """On the core on which latencies are measured too."""
        return Sampling(sample=partial(sample_compiles, work.base, work.head, last_core(), limits))


def _absent_devices(works: Sequence[Work]) -> dict[str, Known]:
    """By name: devices that the runs had and that are not here now."""
    absent = {}
    for work in works:
        case = work.pair.case
        for toolchain in (work.base.loadable.toolchain, work.head.loadable.toolchain):
            if reason := why_gone(case.uris, toolchain, case.environment):
                absent[case.device] = Known(verdict="failed", reason=reason)
    return absent
