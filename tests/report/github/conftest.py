"""The comparisons of the other reports, and those that only a pull request's comment is tried with."""

from __future__ import annotations

import pytest

from harness.records.comparison import Comparison
from harness.report.github import Image, Images, Links
from tests.report.comparison.conftest import (  # noqa: F401 (fixtures)
    full_comparison,
    make_comparison,
    make_row,
    make_timed,
    nasty_comparison,
    quiet_comparison,
    recorded_comparison,
)

RUN_URL = "https://github.com/org/repo/actions/runs/123"
COMMIT_URL = "https://github.com/org/repo/commit/"


@pytest.fixture
def links() -> Links:
    """All that there are."""
    return Links(
        run_url=RUN_URL,
        artifact_url=f"{RUN_URL}/artifacts/9",
        dashboard_url="https://org.github.io/repo/?suite=a&b=1",
        base_commit_url=f"{COMMIT_URL}9b05f1760b{'0' * 30}",
        head_commit_url=f"{COMMIT_URL}0a1b2c3d4e{'0' * 30}",
    )


@pytest.fixture
def images() -> Images:
    """A picture for both themes, and one that looks the same in both."""
    where = "https://org.github.io/repo/pr-1"
    return Images(
        entries=(
            Image(
                title="Forest",
                alt='Ratios: "rdb" is > 1',
                light_url=f"{where}/forest-light.png",
                dark_url=f"{where}/forest-dark.png",
            ),
            Image(title="Memory", alt="Latency against memory", light_url=f"{where}/memory (1).png"),
        )
    )


@pytest.fixture
def failed_comparison() -> Comparison:
    """Nothing works any more."""
    return make_comparison(
        [
            make_row(
                f"{model}/stock@cpu",
                verdict="failed",
                reason="fails at compile: iree-compile exited with status 1",
                stderr=f"model.mlir:100:3: error: '{model}.op' failed to legalize\n",
            )
            for model in ("conv", "mm", "rdb")
        ]
    )


@pytest.fixture
def missing_comparison() -> Comparison:
    """One benchmark is gone and one is new; the others are compared all the same."""
    return make_comparison(
        [
            make_timed("conv/stock@cpu", 9.31, 1.001, "unchanged", reason="the interval lies within 1 %"),
            make_row("mm/stock@cpu", verdict="missing", reason="the head has no such case"),
            make_row("vit/stock@cpu", verdict="new", reason="the base has no such case", head_value=12.5e6, ratio=None),
        ]
    )


@pytest.fixture
def undecided_comparison() -> Comparison:
    """Rows that took all their time and are not decided."""
    why = "a difference is likely, but not known to be within or beyond 1 %; more generations would tell"
    return make_comparison(
        [
            make_timed("mm/stock@cpu", 1.9, 1.013, "inconclusive", p=0.031, seconds=15.0, reason=why),
            make_timed("mm/tiled@cpu", 1.2, 0.985, "inconclusive", p=0.027, seconds=15.0, reason=why),
        ]
    )
