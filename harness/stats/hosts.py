"""Generations from several hosts of one class: where their ratio lies, and whether it is one ratio.

Base and head are measured side by side on the same host, so how fast a host is drops out of every sample. What is left
of a host is by how much the ratio itself differs there. Where it differs nowhere, samples of all hosts lie around one
centre, and the signed-rank test of all of them stays exact, however much noisier one host is than another. Where it
does, that test is of a mixture, and its interval too narrow for any host. So each host's own centre is looked at too,
drawn towards that of all as far as noise explains how they differ (Morris 1983, Parametric Empirical Bayes Inference:
Theory and Applications; the variance between hosts as Hedges 1983, A Random Effects Model for Effect Sizes, has it),
and the interval reaches from the lowest to the highest. docs/statistics.md has the reasons and how often it errs.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from harness.stats.intervals import SHOWN, HostCentre, Location
from harness.stats.pairing import FloatArray
from harness.stats.signed_rank import locate


def locate_on_hosts(samples: FloatArray, hosts: Sequence[str], *, confidence: float) -> Location:
    """Where samples lie, each of which one of these hosts gave; of one host alone, what `locate` says."""
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
    return replace(
        where,
        low=min(where.low, float((drawn - widths * (where.centre - where.low)).min())),
        high=max(where.high, float((drawn + widths * (where.high - where.centre)).max())),
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
