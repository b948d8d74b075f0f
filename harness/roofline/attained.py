"""A case's latency and its model's work -> how much of the machine it uses."""

from __future__ import annotations

from dataclasses import dataclass

from harness.records.run import Peak, Work


@dataclass(frozen=True, kw_only=True)
class Attained:
    """What one case reaches; shares are None where the machine's peak was not measured.

    Attributes:
        operations_per_s: Arithmetic operations of its model by its latency.
        bytes_per_s: The same of its model's compulsory traffic; what really goes to memory is no less.
        intensity: Operations for each byte of compulsory traffic.
        peak_share: Of the peak of arithmetic, which is that of f32; None too for a model of a narrower type.
        roof_share: Of the roof above its intensity: the peak of arithmetic, or what memory can feed if that is lower.
    """

    operations_per_s: float
    bytes_per_s: float
    intensity: float
    peak_share: float | None = None
    roof_share: float | None = None


# Of these a processor may do more at once than of f32, whose peak is the only one that is measured.
NARROW_TYPES = frozenset({"f16", "bf16", "i8", "i16"})


def attained(work: Work, latency_ns: float, peak: Peak | None, *, narrow: bool = False) -> Attained | None:
    """What a case of that latency reaches; None for a model without arithmetic or of unknown work.

    Args:
        narrow: Whether the model computes in a type narrower than f32, so that there is no peak to hold it against.
    """
    if work.failure is not None or not work.operations or not work.compulsory_bytes or not latency_ns > 0:
        return None
    operations_per_s = work.operations / latency_ns * 1e9
    intensity = work.operations / work.compulsory_bytes
    known = None if narrow else peak
    top = known.operations_per_s if known is not None else None
    roof = roof_at(intensity, known) if known is not None else None
    return Attained(
        operations_per_s=operations_per_s,
        bytes_per_s=work.compulsory_bytes / latency_ns * 1e9,
        intensity=intensity,
        peak_share=operations_per_s / top if top else None,
        roof_share=operations_per_s / roof if roof else None,
    )


def roof_at(intensity: float, peak: Peak) -> float | None:
    """The most operations a second of a program of that many operations for each byte."""
    if not peak.operations_per_s or not peak.bytes_per_s:
        return None
    return min(peak.operations_per_s, intensity * peak.bytes_per_s)
