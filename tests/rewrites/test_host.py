"""The vector unit that register tiles are derived for, where a suite does not say it."""

from __future__ import annotations

import pytest

from harness.rewrites.host import host_vector_unit, vector_unit


@pytest.mark.parametrize(
    ("cpuinfo", "machine", "unit"),
    [
        ("processor\t: 0\nflags\t\t: fpu sse2 avx2 avx512f avx512bw\n", "x86_64", (64, 32)),
        ("processor\t: 0\nflags\t\t: fpu sse2 avx avx2\n", "x86_64", (32, 16)),
        ("processor\t: 0\nflags\t\t: fpu sse2\n", "x86_64", (16, 16)),
        ("processor\t: 0\nFeatures\t: fp asimd\n", "aarch64", (16, 32)),
        ("", "arm64", (16, 32)),
        ("", "AMD64", (16, 16)),
    ],
    ids=["AVX-512", "AVX2", "SSE", "Linux on ARM", "macOS", "nothing known"],
)
def test_registers_by_processor(cpuinfo: str, machine: str, unit: tuple[int, int]) -> None:
    assert vector_unit(cpuinfo, machine) == unit


def test_a_flag_is_a_whole_word() -> None:
    assert vector_unit("flags : avx512fp16 avx2_like", "x86_64") == (16, 16)


def test_this_machine_has_one() -> None:
    assert host_vector_unit().registers >= 16
