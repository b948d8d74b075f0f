"""Series are searched in processes of their own, each with one thread."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from harness.history.search import Values, search
from harness.progress import Silent


def test_a_searching_process_limits_its_threads_before_numpy_is_loaded() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import harness.history.worker, sys; print('numpy' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert told == "False\n"


def test_limits_of_threads_stay_in_the_processes_that_search() -> None:
    before = dict(os.environ)
    values = np.repeat([1.0, 2.0], 30) * (1 + 0.01 * np.random.default_rng(0).standard_normal(60))
    batches = [[Values(series="a335a65fb23408a2", values=values, exact=False)]]

    found = search(batches, points=60, jobs=2, progress=Silent())

    assert [point.index for point in found["a335a65fb23408a2"]] == [30]
    assert dict(os.environ) == before
