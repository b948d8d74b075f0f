"""What a case reaches, and which roof is above it."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from harness.records.run import Failure, Peak, Work
from harness.roofline.attained import attained, roof_at

PEAK = Peak(
    device="cpu", threads=1, operations_per_s=100e9, operations_by="FMA loop", bytes_per_s=10e9, bytes_by="copy"
)


def test_a_case_below_the_flat_part_of_the_roof() -> None:
    found = attained(Work(model="m", operations=2_000_000, compulsory_bytes=10_000), 40_000.0, PEAK)
    assert found is not None
    assert (found.operations_per_s, found.bytes_per_s, found.intensity) == (50e9, 0.25e9, 200.0)
    assert (found.peak_share, found.roof_share) == (0.5, 0.5)


def test_a_case_that_memory_bounds() -> None:
    found = attained(Work(model="m", operations=2_000_000, compulsory_bytes=4_000_000), 800_000.0, PEAK)
    assert found is not None
    assert (found.peak_share, found.roof_share) == (0.025, 0.5)


def test_without_a_peak_there_are_rates_and_no_shares() -> None:
    for peak in (None, Peak(device="cpu", threads=1, failure=Failure(stage="measure", message="it broke"))):
        found = attained(Work(model="m", operations=10, compulsory_bytes=10), 1.0, peak)
        assert found is not None
        assert (found.operations_per_s, found.peak_share, found.roof_share) == (1e10, None, None)


def test_a_narrow_type_is_not_held_against_the_peak_of_f32() -> None:
    """A processor with bf16 or i8 units does more of those than the peak that was measured."""
    found = attained(Work(model="m", operations=2_000_000, compulsory_bytes=10_000), 10_000.0, PEAK, narrow=True)
    assert found is not None
    assert found.operations_per_s == 200e9
    assert (found.peak_share, found.roof_share) == (None, None)


def test_a_model_without_arithmetic_or_of_unknown_work_has_no_figures() -> None:
    unknown = Work(model="m", failure=Failure(stage="ir", message="a size is not known"))
    for work in (unknown, Work(model="m", compulsory_bytes=10), Work(model="m", operations=10)):
        assert attained(work, 1.0, PEAK) is None


@given(st.floats(1e-3, 1e6))
def test_a_roof_is_no_higher_than_either_peak(intensity: float) -> None:
    roof = roof_at(intensity, PEAK)
    assert roof is not None
    assert roof <= 100e9
    assert roof <= intensity * 10e9
    assert roof == 100e9 or math.isclose(roof, intensity * 10e9)
