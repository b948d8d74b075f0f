"""Two modules -> generations of one row: both in fresh workers, taking turns call by call."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from harness.compare.engine import Generation
from harness.errors import CaseError
from harness.measure import Group, LoadableModule, Settings, measure_generation
from harness.records.run import Lost, Round
from harness.stats import tabulate_rounds
from harness.stats.pairing import FloatArray

BASE, HEAD = "base", "head"

# Generations differ by their memory layout about as much as rounds within a quarter of a second do, and a fresh worker
# costs a tenth of a second: longer generations would narrow a row's interval no more than more of them do.
GENERATION_S = 0.25


class LatencySampler:
    """Measures one row; every generation has fresh workers."""

    def __init__(
        self,
        *,
        name: str,
        uri: str,
        base: LoadableModule,
        head: LoadableModule,
        cpus: frozenset[int] | None,
        settings: Settings,
        on_round: Callable[[Round], None],
        more_uris: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Take the two sides as they are; on_round gets each round as it ends, while nothing is timed."""
        self._sides = (replace(base, name=BASE), replace(head, name=HEAD))
        self._group = Group(
            name=name, uri=uri, more_uris=more_uris, environment=environment or {}, cases=self._sides, cpus=cpus
        )
        self._settings = settings
        self._on_round = on_round

    def sample(self, number: int) -> Generation:
        """Measure one generation; the side that is loaded first changes each time, since it gets other addresses.

        Raises:
            CaseError: A side cannot be loaded or called; the message says which.
        """
        started = time.monotonic()
        group = replace(self._group, cases=self._sides if number % 2 == 0 else self._sides[::-1])
        rounds: list[Round] = []
        for item in measure_generation(group, number, self._settings):
            if isinstance(item, Lost):
                failure = item.failure
                raise CaseError(failure.stage, f"the {item.case}'s module: {failure.message}", failure.stderr)
            rounds.append(item)
            self._on_round(item)
        return summarise_generation(rounds, time.monotonic() - started)


def summarise_generation(rounds: list[Round], seconds: float) -> Generation:
    """One generation's rounds as one sample; base and head are the medians in nanoseconds per call.

    Args:
        rounds: Of one generation, with cases named base and head.
        seconds: Wall time that it took.
    """
    times = tabulate_rounds(rounds)
    ratios = times.log_ratios(HEAD, BASE)
    return Generation(
        log_ratio=ratios[0].centre if ratios else None,
        base=_median(times.ns_per_call(BASE)),
        head=_median(times.ns_per_call(HEAD)),
        rounds=ratios[0].logs.size if ratios else 0,
        seconds=seconds,
    )


def _median(generations: tuple[FloatArray, ...]) -> float | None:
    return float(np.median(generations[0])) if generations else None
