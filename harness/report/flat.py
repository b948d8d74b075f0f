"""Row -> one flat record of stable names with units in them: the columns of CSV and the rows of JSON."""

from __future__ import annotations

from harness.report.data import Scalar
from harness.report.values import Row

__all__ = ["Scalar", "flatten"]

# Logarithms differ in their last bits between CPUs; nine digits are the same everywhere, and far below any noise.
_DIGITS = 9


def flatten(row: Row) -> dict[str, Scalar]:
    """A row's facts and figures; None where there is none. What is a list in a row is left to the caller."""
    estimate, storage, reached = row.estimate, row.storage, row.attained
    return {
        "case": row.case,
        "group": row.group,
        "model": row.model,
        "variant": row.variant,
        "device": row.device,
        "toolchain": row.toolchain,
        "baseline": row.baseline,
        "status": row.status,
        "same_as": row.same_as,
        "kind": row.kind,
        "latency_ns": row.latency_ns,
        "latency_low_ns": row.latency_low_ns,
        "latency_high_ns": row.latency_high_ns,
        "generations": row.generations,
        "rounds": row.rounds,
        "ratio": _rounded(estimate.ratio) if estimate else None,
        "ratio_low": _rounded(estimate.low) if estimate else None,
        "ratio_high": _rounded(estimate.high) if estimate else None,
        "ratio_confidence": estimate.confidence if estimate else None,
        "ratio_generations": estimate.generations if estimate else None,
        "ratio_rounds": estimate.rounds if estimate else None,
        "peer": row.peer,
        "ratio_to_best_peer": _rounded(row.peer_estimate.ratio) if row.peer_estimate else None,
        "ratio_to_best_peer_low": _rounded(row.peer_estimate.low) if row.peer_estimate else None,
        "ratio_to_best_peer_high": _rounded(row.peer_estimate.high) if row.peer_estimate else None,
        "operations_per_s": _rounded(reached.operations_per_s) if reached else None,
        "compulsory_bytes_per_s": _rounded(reached.bytes_per_s) if reached else None,
        "operations_per_byte": _rounded(reached.intensity) if reached else None,
        "share_of_peak": _rounded(reached.peak_share) if reached else None,
        "share_of_roof": _rounded(reached.roof_share) if reached else None,
        "instructions_per_call": row.instructions_per_call,
        "reference_ns": row.reference_ns,
        "dispatches": row.dispatches,
        "copies": row.copies,
        "fills": row.fills,
        "transient_bytes": row.transient_bytes,
        "encoded_bytes": storage.encoded_bytes if storage else None,
        "encoded_unpadded_bytes": storage.unpadded_bytes if storage else None,
        "encoded_worst_ratio": _rounded(storage.worst_ratio) if storage else None,
        "dispatch_bytes": row.dispatch_bytes,
        "module_bytes": row.module_bytes,
        "module_sha256": row.module_sha256,
        "compile_ns": row.compile_ns,
        "compile_peak_rss_bytes": row.peak_rss_bytes,
        "host_peak_bytes": row.host_peak_bytes,
        "device_peak_bytes": row.device_peak_bytes,
        "checked_against": row.checked_against,
        "max_absolute_error": row.max_absolute_error,
        "max_relative_error": row.max_relative_error,
        "failure_stage": row.failure.stage if row.failure else None,
        "failure_message": row.failure.message if row.failure else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")
