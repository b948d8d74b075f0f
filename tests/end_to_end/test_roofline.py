"""A run counts its models' work and measures this machine's peaks, and `harness plot` draws it."""

from __future__ import annotations

import json

from tests.end_to_end.conftest import Harness


def test_a_run_can_be_held_against_the_machine_it_was_made_on(harness: Harness) -> None:
    finished = harness("run", "small.toml", "--format", "json")
    assert finished.returncode == 0, finished.stderr
    run = harness.run()
    (work,) = run.work
    assert work.failure is None
    pixels, products = 4 * 4, 9 * sum((8 + 4 * n) * (4 if n < 4 else 8) for n in range(5))
    assert 2 * pixels * products < work.operations < 2.2 * pixels * products
    assert 0 < work.compulsory_bytes <= work.footprint_bytes
    (peak,) = run.peaks
    assert (peak.device, peak.threads, peak.failure) == ("cpu", 1, None)
    rows = {row["variant"]: row for row in json.loads(finished.stdout)["rows"]}
    assert 0 < rows["stock"]["share_of_roof"] < 1.5
    assert rows["inert"]["operations_per_s"] == rows["stock"]["operations_per_s"]
    (path,) = harness.runs()
    assert "FLOP a call on at least" in (path / "report.md").read_text()

    drawn = harness("plot", str(path), "--out", "picture.svg")
    assert drawn.returncode == 0, drawn.stderr
    assert "channels-last" in (harness.folder / "picture.svg").read_text()
    refused = harness("plot", str(path), "--out", "picture.pdf")
    assert refused.returncode == 2
    assert refused.stderr == "harness: --out picture.pdf: does not end in .svg or .png; name a file that does\n"
