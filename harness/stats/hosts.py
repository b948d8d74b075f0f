"""Generations from several hosts of one class: where their ratio lies, and whether it is one ratio.

Base and head are measured side by side on the same host, so how fast a host is drops out of every sample. What is left
of a host is by how much the ratio itself differs there. Where it differs nowhere, samples of all hosts lie around one
centre, and the signed-rank test of all of them stays exact, however much noisier one host is than another. Where it
does, that test is of a mixture, and its interval too narrow for any host. So each host's own centre is looked at too,
drawn towards that of all as far as noise explains how they differ (Morris 1983, Parametric Empirical Bayes Inference:
Theory and Applications; the variance between hosts as Hedges 1983, A Random Effects Model for Effect Sizes, has it),
and the interval reaches from the lowest to the highest. docs/statistics.md has the reasons and how often it errs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.stats.intervals import Location
from harness.stats.pairing import FloatArray
from harness.stats.signed_rank import locate

# Hosts are shown to differ where one ratio for all would rank their samples so far apart at most this often.
SHOWN = 0.05


@dataclass(frozen=True, kw_only=True)
class HostCentre:
    """What one host says of a row."""

    host: str  # Its name
    centre: float  # Hodges and Lehmann's estimate from its own log ratios
    drawn: float  # The same, drawn towards that of all hosts as far as noise explains how they differ
    size: int  # Its samples


@dataclass(frozen=True, kw_only=True)
class HostsLocation(Location):
    """Where samples of several hosts lie: as wide as the hosts differ; p is of no difference on any of them."""

    hosts: tuple[HostCentre, ...]  # In the order of their names
    p_alike: float  # Of the hosts having one ratio; small where they differ. 1 where that cannot be told.

    @property
    def differ(self) -> bool:
        """Whether the hosts are shown to have different ratios."""
        return self.p_alike <= SHOWN

    @property
    def lowest(self) -> float:
        """That of the host with the lowest ratio."""
        return min(self.centre, *(host.drawn for host in self.hosts))

    @property
    def highest(self) -> float:
        """That of the host with the highest."""
        return max(self.centre, *(host.drawn for host in self.hosts))


def locate_on_hosts(samples: FloatArray, hosts: Sequence[str], *, confidence: float) -> Location:
    """Where samples of several hosts lie, a HostsLocation; of one host, what `locate` says.

    Args:
        samples: As of `locate`.
        hosts: Of each sample, in the same order.
        confidence: Of the two-sided interval, between 0 and 1.
    """
    where = locate(samples, confidence=confidence)
    names = list(dict.fromkeys(hosts))
    if len(names) < 2:
        return where
    labels = np.array(hosts)
    parts = [samples[labels == name] for name in names]
    centres = np.array([_centre(part) for part in parts])
    p_alike = _p_alike(parts)
    differing = 1.0 if p_alike <= SHOWN else _differing(parts, centres)
    drawn = where.centre + differing * (centres - where.centre)
    # Morris's variance of a centre that is drawn so far, (1 - B) V / n + B V / n[h], as a multiple of V / n.
    widths = np.sqrt([1 + differing * (samples.size / part.size - 1) for part in parts])
    return HostsLocation(
        centre=where.centre,
        low=min(where.low, float((drawn - widths * (where.centre - where.low)).min())),
        high=max(where.high, float((drawn + widths * (where.high - where.centre)).max())),
        p=where.p,
        size=where.size,
        hosts=tuple(
            HostCentre(host=names[at], centre=float(centres[at]), drawn=float(drawn[at]), size=parts[at].size)
            for at in sorted(range(len(names)), key=names.__getitem__)
        ),
        p_alike=p_alike,
    )


def _centre(samples: FloatArray) -> float:
    """Hodges and Lehmann's estimate (1963), as harness.stats.signed_rank has it of all samples."""
    rows, columns = np.triu_indices(samples.size)
    return float(np.median((samples[rows] + samples[columns]) / 2))


def _differing(parts: Sequence[FloatArray], centres: FloatArray) -> float:
    """Of the variance between the hosts' centres, the share that samples within hosts do not explain.

    Hedges's estimate of moments (1983), and 1 less that by which Morris (1983) shrinks, without his correction for how
    well it is known. Where no host has two samples, all of it counts as the hosts'.
    """
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    freedom = sum(part.size - 1 for part in parts)
    pooled = squares / freedom if freedom else 0.0
    within = float(np.mean([(part.var(ddof=1) if part.size > 1 else pooled) / part.size for part in parts]))
    between = max(0.0, float(centres.var(ddof=1)) - within)
    return between / (between + within) if between > 0 else 0.0


def _p_alike(parts: Sequence[FloatArray]) -> float:
    """Kruskal and Wallis's test (1952), with its correction for ties; by the chi-squared approximation."""
    from scipy.special import chdtrc  # scipy.stats takes a second to import

    samples = np.concatenate(parts)
    values, places, counts = np.unique(samples, return_inverse=True, return_counts=True)
    if values.size < 2:
        return 1.0
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    size, middle = samples.size, (samples.size + 1) / 2
    ends = np.cumsum([part.size for part in parts])[:-1]
    between = sum(part.size * (part.mean() - middle) ** 2 for part in np.split(ranks, ends))
    p = float(chdtrc(len(parts) - 1, (size - 1) * between / float(((ranks - middle) ** 2).sum())))
    return p if math.isfinite(p) else 1.0
