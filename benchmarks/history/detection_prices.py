"""The table in harness/stats/change_points/model.py: what noise alone gains, by the length of the series."""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from benchmarks.history.detection_series import Noise, heavy, slow, white
from harness.stats.change_points.model import ALPHA, path, pull_in_spikes
from harness.stats.pairing import FloatArray

SIZES = (8, 10, 12, 15, 20, 30, 50, 100, 200, 400, 1000, 2000)
NOISES: dict[str, Noise] = {
    "white": white,
    "heavy": heavy,
    "slow 0.3": partial(slow, lag_one=0.3),
    "slow 0.6": partial(slow, lag_one=0.6),
}
# Where the path may stop: about the price itself. Whether it is a little off hardly matters.
_LEAST = 10.0
_SEED = 2026


def gains(noise: Noise, size: int, series: int) -> FloatArray:
    """The highest price at which each of so many series would show a change."""
    random = np.random.default_rng([_SEED, size])
    paths = (path(pull_in_spikes(noise(random, size)), _LEAST) for _ in range(series))
    return np.array([max((stop.surplus(0.0) / stop.changes for stop in stops[1:]), default=0.0) for stops in paths])


def print_prices(series: int, processes: int) -> None:
    """Simulate, and print the two rows of the table: the worst noise's quantile and the exponential tail's length."""
    jobs = [(size, name) for size in SIZES for name in NOISES]
    with ProcessPoolExecutor(processes) as pool:
        found = {
            job: pool.submit(gains, NOISES[job[1]], job[0], series if job[0] <= 400 else series // 2) for job in jobs
        }
        for size in SIZES:
            each = {name: found[size, name].result() for name in NOISES}
            prices = {name: float(np.quantile(one, 1 - ALPHA)) for name, one in each.items()}
            worst = each[max(prices, key=lambda name: prices[name])]
            beyond = worst[worst > np.quantile(worst, 0.95)]
            fold = float(np.mean(beyond - np.quantile(worst, 0.95)))
            shown = ", ".join(f"{name} {price:.2f}" for name, price in prices.items())
            sys.stdout.write(f"{size:5d}: price {max(prices.values()):.2f}, fold {fold:.2f} ({shown})\n")
            sys.stdout.flush()
