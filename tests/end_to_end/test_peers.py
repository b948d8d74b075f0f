"""Engines beside IREE, from a suite that names them to rows of the same table; and what becomes of those that fail."""

from pathlib import Path

import pytest

from harness.records.run import Build, Check, Lost
from tests.end_to_end.command import Ended, Harness, document
from tests.end_to_end.suites import CPU

_SUITE = """
name = "peers"
baseline = "stock"
peers = [PEERS]

[models.mlp]
builder = "mlp"
params = { layers = 2, width = 16, batch = 4 }

[variants.stock]

""" + CPU.replace("generations = 3", "generations = 2")
STOCK = "mlp/stock@cpu"


@pytest.fixture(scope="module")
def measured(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Harness, Ended]:
    """IREE beside two peers, one that is not here, and some that go wrong as their labels say; tests only read it."""
    peers = [
        '"numpy"',
        '{ name = "numpy", options = { transposed = true }, label = "numpy-turned" }',
        '"absent"',
    ]
    for fate in ("refuses", "raises", "dies", "dies late", "hangs", "wrong", "shape"):
        label = fate.replace(" ", "-")
        peers.append(f'{{ name = "unlucky", options = {{ fate = "{fate}" }}, label = "{label}" }}')
    folder = tmp_path_factory.mktemp("measured")
    (folder / "peers.toml").write_text(_SUITE.replace("PEERS", ", ".join(peers)))
    harness = Harness(folder, programs=tools)
    return harness, harness("run", "peers.toml", "--call-timeout", "5")


def test_peers_are_checked_and_timed_in_the_same_rounds_and_others_are_skipped(measured: tuple[Harness, Ended]) -> None:
    harness, ended = measured
    run = harness.run()
    assert ended.returncode == 3, "some go wrong, and the rest goes on"
    peers, late = {"mlp/numpy@cpu", "mlp/numpy-turned@cpu"}, {"mlp/dies-late@cpu"}
    assert all({turn.case for turn in one_round.turns} - late == {STOCK, *peers} for one_round in run.rounds)
    assert {one_round.generation for one_round in run.rounds} == {0, 1}
    checks = {check.case: (check.against, check.failure) for check in run.checks}
    assert {checks[name] for name in peers} == {checks[STOCK]}
    assert checks[STOCK][1] is None
    assert "skipped: Unlucky: it has a headache" in ended.words
    assert "absent is not installed; pip install 'iree-harness[absent]'" in ended.words


def test_the_report_shows_ratios_to_the_baseline_and_to_the_best_peer(measured: tuple[Harness, Ended]) -> None:
    harness, _ = measured
    (folder,) = map(str, harness.runs())
    text = harness("report", folder, "--format", "markdown").stdout
    assert f"NumPy {harness.run().header.environment['peers']['numpy'].split()[-1]}" in text
    rows = {row["variant"]: row for row in document(harness("report", folder, "--format", "json"))["rows"]}
    best = min(("numpy", "numpy-turned"), key=lambda peer: float(rows[peer]["latency_ns"]))
    assert rows[best]["ratio"] * rows["stock"]["ratio_to_best_peer"] == pytest.approx(1, rel=0.2)


@pytest.mark.parametrize(
    ("fate", "sentence"),
    [
        ("raises", "Unlucky: no such operation: Frobnicate"),
        ("dies", "Unlucky: the worker was ended by SIGABRT while it was at work on mlp/dies@cpu"),
        ("dies-late", "SIGABRT"),
        ("hangs", "took longer than the limit of 5 s"),
        ("wrong", "its output 0 differs in"),
        ("shape", "its output 0 has shape (16, 4) where (4, 16) is right"),
    ],
)
def test_a_peer_that_goes_wrong_fails_its_own_case(measured: tuple[Harness, Ended], fate: str, sentence: str) -> None:
    run = measured[0].run()
    records: list[Build | Check | Lost] = [*run.builds, *run.checks, *run.lost]
    failures = [record.failure for record in records if record.case == f"mlp/{fate}@cpu"]
    (message,) = [failure.message for failure in failures if failure is not None]
    assert sentence in message
