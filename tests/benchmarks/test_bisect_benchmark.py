"""A small part of the simulated bisects, and the place that their tables have in the documents."""

import numpy as np
import pytest

from benchmarks.bisect import KINDS, Kind, Program, line
from harness.compare.engine import Generation

LOGS = np.random.default_rng(0).normal(0, 0.003, 400)
QUIET = Program(
    name="quiet A/A",
    generations=tuple(Generation(log_ratio=log, base=1e6, head=1e6, rounds=20, seconds=0.4) for log in LOGS),
    processes=np.full(50, 1e6),
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_plain_step_is_named_and_nothing_else(kind: Kind) -> None:
    name, step, right, wrong, *_ = line(kind, 1.0, [QUIET], 4, [16])
    assert (name, step) == (kind.name, "100 %")
    assert (right, wrong) == ("100.0 %", "0.0 %")
