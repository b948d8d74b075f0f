"""`harness explain` with the real compiler and runtime: parts that add up, what differs, and what is kept."""

import pytest

from tests.end_to_end.command import Harness, document

SLOW = "product/slow@cpu"
BASE, HEAD = "results/base", "results/head"


@pytest.mark.timing
def test_a_slow_variant_is_explained_drawn_and_printed_again(runs: Harness) -> None:
    command = ("explain", "--within", BASE, "--variant", "slow", "--budget", "10")
    ended = runs(*command, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    found = document(ended)
    assert (found["case"], found["method"], found["latency"]["verdict"]) == (SLOW, "profile", "regressed")
    for side in ("base", "head"):
        elsewhere = found[f"{side}_elsewhere"]
        spent = sum(part[f"{side}_ns"] for part in found["parts"])
        total = spent + sum(elsewhere["device_ns"].values()) + elsewhere["host_ns"]
        assert total == pytest.approx(found["latency"][f"{side}_value"])
    changed = [part for part in found["parts"] if part["verdict"] == "regressed"]
    assert changed and changed[0]["differs_at"] and changed[0]["what"]
    assert found["sentence"].startswith(SLOW)
    assert found["command"] == ["harness", *command, "--format", "json"]

    folder = next(path for path in (runs.folder / "results").iterdir() if path.name.endswith("-explain"))
    assert folder.name == found["id"]
    again = runs("report", "latest")
    assert again.returncode == 0
    assert "Where the time goes" in again.words
    out = runs.folder / "waterfall.svg"
    assert runs("plot", "latest", "--kind", "waterfall", "--out", str(out)).returncode == 0
    assert out.stat().st_size > 1_000
