"""This machine's peaks: measured by the real toolchain, and told as a failure where a tool fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.roofline.peak_programs import OPERATIONS_PER_ELEMENT, multiply_add_loop
from harness.roofline.peaks import measure_peak
from harness.toolchain import Toolchain
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.roofline.programs import work


def test_the_best_program_is_the_peak(tmp_path: Path, real_toolchain: Toolchain) -> None:
    peak = measure_peak("cpu", 1, real_toolchain, host_cpu="this one", cache=tmp_path)
    assert peak.failure is None
    assert peak.operations_per_s == max(peak.measured[name] for name in ("sgemm 384", "sgemm 768", "FMA loop"))
    assert peak.bytes_per_s == max(peak.measured[name] for name in ("copy", "add", "dot"))
    assert all(np.isfinite(figure) and figure > 0 for figure in peak.measured.values())
    assert len(list(tmp_path.glob("*.vmfb"))) == 1


def test_the_loop_of_multiply_adds_has_the_operations_it_says() -> None:
    assert work(multiply_add_loop(10)).operations == 10 * OPERATIONS_PER_ELEMENT


def test_a_toolchain_that_fails_leaves_a_peak_that_says_so(tmp_path: Path) -> None:
    broken = make_fake_toolchain(tmp_path / "tools", always={"iree-compile": ["--fake-exit=3"]})
    peak = measure_peak("cpu", 2, broken, host_cpu="", cache=tmp_path)
    assert peak.failure is not None
    assert peak.failure.message == "iree-compile exited with status 3"
    assert (peak.device, peak.threads, peak.operations_per_s) == ("cpu", 2, None)
