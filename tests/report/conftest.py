"""The runs and comparisons of builders.py, and where a comment of GitHub's leads."""

import pytest

from harness.records.comparison import Comparison
from harness.records.run import Run
from harness.report.page import Picture
from harness.report.pages import Links
from tests.report import builders
from tests.report.builders import RUN_URL


@pytest.fixture
def full_run() -> Run:
    """Every status and kind that a row can have."""
    return builders.make_full_run()


@pytest.fixture
def small_run() -> Run:
    """A baseline, a faster variant and an inert one."""
    return builders.make_small_run()


@pytest.fixture
def full_comparison() -> Comparison:
    """Every verdict, kind of metric and gate."""
    return builders.make_full_comparison()


@pytest.fixture
def links() -> Links:
    """All that there are."""
    return Links(
        run_url=RUN_URL,
        artifact_url=f"{RUN_URL}/artifacts/9",
        dashboard_url="https://org.github.io/repo/?suite=a&b=1",
        head_commit_url=f"https://github.com/org/repo/commit/0a1b2c3d4e{'0' * 30}",
    )


@pytest.fixture
def pictures() -> tuple[Picture, ...]:
    """A picture for both themes, and one that looks the same in both."""
    where = "https://org.github.io/repo/pr-1"
    both = {"light_url": f"{where}/forest-light.png", "dark_url": f"{where}/forest-dark.png"}
    memory = Picture(title="Memory", alt="Latency against memory", light_url=f"{where}/memory (1).png")
    return (Picture(title="Forest", alt='Ratios: "rdb" is > 1', **both), memory)
