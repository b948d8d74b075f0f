"""`--toolchain` with real releases: one that is installed from the package index, beside the one that is here."""

import csv
import io
import json

import pytest

from harness.toolchain import Toolchain
from tests.end_to_end.command import Harness
from tests.end_to_end.conftest import OLDER

# The first test of the first session downloads 200 MB.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def two(harness: Harness, older: Toolchain, real_toolchain: Toolchain) -> tuple[str, ...]:
    """The options that give the installed toolchain and the older one."""
    return ("--toolchain", real_toolchain.version, "--toolchain", f"iree=={older.version}")


def test_two_releases_side_by_side(harness: Harness, two: tuple[str, ...], real_toolchain: Toolchain) -> None:
    ended = harness("run", "small.toml", *two, "--format", "csv")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    new = real_toolchain.version
    run = harness.run()
    assert [one.version for one in run.header.toolchains] == [new, OLDER]
    assert [case.name for case in run.header.cases][:2] == [f"tiny/stock@cpu:{new}", f"tiny/stock@cpu:{OLDER}"]
    # Each toolchain's own inert variant is known without measuring.
    timed = {f"tiny/{variant}@cpu:{one}" for variant in ("stock", "channels-last") for one in (new, OLDER)}
    assert all({turn.case for turn in one.turns} == timed for one in run.rounds)
    assert {one.case for one in run.references} == timed
    assert len({check.against for check in run.checks}) == 1  # one release says what is right for all
    rows = {(row["variant"], row["toolchain"]): row for row in csv.DictReader(io.StringIO(ended.stdout))}
    assert rows["stock", new]["baseline"] == "true"
    for key in (("stock", OLDER), ("channels-last", new), ("channels-last", OLDER)):
        assert float(rows[key]["ratio"]) > 0
        assert rows[key]["ratio_generations"] == "3"


def test_a_bisect_compiles_each_release_once_and_counts(
    harness: Harness, older: Toolchain, real_toolchain: Toolchain
) -> None:
    ends = ("--good", f"iree=={older.version}", "--bad", real_toolchain.version, "--release", older.version)
    what = ("bisect", "small.toml", "--case", "tiny/stock@cpu", "--metric", "dispatches", "--format", "json")
    ended = harness(*what, *ends)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert [position["name"] for position in found["positions"]] == [OLDER, real_toolchain.version]
    assert all(position["run"] and not position["unusable"] for position in found["positions"])
    (trial, *_) = found["trials"]
    assert (trial["base"], trial["head"], trial["exact"]) == (OLDER, real_toolchain.version, True)
    assert trial["base_value"] > 0
    assert bool(found["steps"]) == (trial["base_value"] != trial["head_value"])
