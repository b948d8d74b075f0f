"""Noise of candidates between generations: drawn, or played back from a recording of `make verdicts`."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.verdicts.recorded_runs import OUTLIERS, WIDTHS
from benchmarks.verdicts.recording import read
from benchmarks.verdicts.stream_names import is_quiet, slowdown_of
from harness.stats.pairing import FloatArray

# A recorded stream with fewer generations says little about how often it is far off.
_LEAST = 75
_LENGTH = 20_000


def drawn() -> dict[str, list[FloatArray]]:
    """Streams of log ratios of equal programs, as wide as was measured; most are close, one in twenty is far off."""
    rng = np.random.default_rng(0)
    streams = {"drawn, normal 0.5 %": [rng.normal(0, 0.005, _LENGTH)]}
    for width, deviation in WIDTHS[:3]:
        far = np.sqrt(max((deviation / width) ** 2 - (1 - OUTLIERS), OUTLIERS) / OUTLIERS)
        odd = np.where(rng.random(_LENGTH) < OUTLIERS, far, 1.0)
        name = f"drawn, {width:.1%} and one in {round(1 / OUTLIERS)} of {width * far:.0%}"
        streams[name] = [rng.normal(0, width, _LENGTH) * odd]
    return streams


def recorded(path: Path) -> dict[str, list[FloatArray]]:
    """Streams of log ratios of a module against itself, or against one slowed a little, less their median.

    In groups: one thread or several, with nothing else that computes or beside others.
    """
    logs: Mapping[str, list[float]] = defaultdict(list)
    for recorded in read(path):
        if recorded.generation.log_ratio is not None:
            logs[recorded.stream].append(recorded.generation.log_ratio)
    groups: Mapping[str, list[FloatArray]] = defaultdict(list)
    for stream, values in logs.items():
        if len(values) >= _LEAST:
            threads = "several threads" if slowdown_of(stream)[0] == "threads" else "one thread"
            groups[f"{threads}, {'alone' if is_quiet(stream) else 'beside others'}"].append(
                np.array(values) - np.median(values)
            )
    return dict(groups)


def courses(stream: FloatArray, generations: int, candidates: int, rng: np.random.Generator) -> FloatArray:
    """What each candidate strays by; shape (generations, candidates).

    Each goes through the stream from a place of its own, in the stream's order, so that what follows on each other
    there does so here. A recorded ratio holds the noise of two modules, so this is noise times sqrt(2).
    """
    starts = rng.integers(0, stream.size, candidates)
    signs = rng.choice((-1.0, 1.0), candidates)
    played: FloatArray = stream[(starts + np.arange(generations)[:, None]) % stream.size] * signs
    return played
