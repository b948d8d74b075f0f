"""Rates that were counted, with what they may really be."""

from __future__ import annotations


def rate_bounds(hits: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's exact binomial interval (1934) of a rate; (0, 1) without trials.

    With no hit or nothing but hits the whole error goes to the one open side, so that 0 of 300 has the upper bound
    1 - 0.05 ** (1 / 300) = 0.99 %.
    """
    from scipy.special import betaincinv  # scipy.stats takes a second to import

    if trials <= 0:
        return 0.0, 1.0
    tail = 1 - confidence if hits in (0, trials) else (1 - confidence) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1 - tail))
    return low, high
