"""Cases that stay in the plan and are not run here, each with a sentence that says why."""

from __future__ import annotations

import pytest

from harness.records.case import Case
from harness.suite.cells import suits
from harness.suite.load import FlagSet
from tests.plan.conftest import a_device, a_suite, a_variant, plan


def case_with(flag_set: FlagSet, *, backend: str = "llvm-cpu", toolchain: str = "3.13.0") -> Case:
    suite = a_suite(a_variant("tiled", flag_sets=(flag_set,)), devices=(a_device("here", backend=backend),))
    (case,) = plan(suite, toolchain=toolchain)
    return case


def test_a_device_that_is_not_there() -> None:
    suite = a_suite(devices=(a_device("cpu"), a_device("gpu")))
    cases = plan(suite, unavailable={"gpu": "no CUDA device; install the NVIDIA driver (libcuda)"})
    assert [case.skip for case in cases] == [None, "no CUDA device; install the NVIDIA driver (libcuda)"]


def test_a_flag_set_for_other_backends() -> None:
    tiling = FlagSet(name="tiling", backends=("llvm-cpu", "vmvx"))
    assert case_with(tiling, backend="vmvx").skip is None
    assert case_with(tiling, backend="cuda").skip == "flag set tiling is for llvm-cpu, vmvx, and device here is cuda"


def test_a_flag_set_for_other_releases() -> None:
    tiling = FlagSet(name="tiling", toolchains=">=3.8,<4")
    assert case_with(tiling, toolchain="3.8.0").skip is None
    assert case_with(tiling, toolchain="3.7.1").skip == "flag set tiling is for IREE >=3.8,<4, and this is 3.7.1"


def test_a_device_that_is_not_there_is_the_first_reason() -> None:
    suite = a_suite(a_variant("tiled", flag_sets=(FlagSet(name="tiling", backends=("cuda",)),)))
    (case,) = plan(suite, unavailable={"cpu": "gone"})
    assert case.skip == "gone"


@pytest.mark.parametrize(
    ("specifier", "release", "suited"),
    [
        ("", "3.13.0", True),
        (">=3.8", "3.13.0", True),
        (">=3.8", "3.7.9", False),
        ("==3.13.*", "3.13.1", True),
        (">=3.8,!=3.9.0", "3.9.0", False),
        (">=3.13.0rc1", "3.13.0rc20260901", True),
        ("<3.13", "3.14.0rc20260901", False),
        (">=3.13", "3.14.0rc20260901", True),
    ],
)
def test_releases_are_version_specifiers_and_nightly_builds_count(specifier: str, release: str, suited: bool) -> None:
    assert suits(FlagSet(name="tiling", toolchains=specifier), release) is suited


def test_skipping_changes_no_identity() -> None:
    anywhere, elsewhere = FlagSet(name="tiling"), FlagSet(name="tiling", backends=("cuda",))
    assert case_with(anywhere).id == case_with(elsewhere).id
