"""Engines beside IREE, from a suite that names them to rows of the same table; and what becomes of those that fail."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.records.run import Build, Check, Lost, Run
from harness.store.run_directory import load_run
from tests.end_to_end.command import document, timed
from tests.end_to_end.plugin_package import EXAMPLE, Beside, lay_out
from tests.end_to_end.suites import CPU

_SUITE = """
name = "peers"
baseline = "stock"
peers = [PEERS]

[models.product]
mlir = "product.mlir"
function = "main"
inputs = [{ shape = [10, 20], seed = 1 }, { shape = [20, 30], seed = 2 }, { shape = [10, 30], seed = 3 }]
tolerance = { relative = 1e-3 }

[variants.stock]

[variants.strong]
flags = ["--iree-opt-level=O3"]

""" + CPU.replace("generations = 3", "generations = 2")


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on Python's path with the example package."""
    return lay_out(tmp_path_factory.mktemp("packages"))


class Bench:
    """The command in a folder with one suite, whose peers each test chooses."""

    def __init__(self, folder: Path, packages: Path) -> None:
        self.harness = Beside(folder, packages)
        self.folder = folder
        shutil.copy(EXAMPLE / "product.mlir", folder)

    def run(self, *peers: str, options: tuple[str, ...] = ()) -> tuple[int, str, Run | None]:
        """Exit status, all that was printed, and the run, if there is one."""
        (self.folder / "peers.toml").write_text(_SUITE.replace("PEERS", ", ".join(peers)))
        ended = self.harness("run", "peers.toml", "--results", "results", *options)
        runs = sorted((self.folder / "results").glob("*-peers"))
        return ended.returncode, ended.stdout + ended.stderr, load_run(runs[-1]) if runs else None


@pytest.fixture
def bench(tmp_path: Path, packages: Path) -> Bench:
    return Bench(tmp_path, packages)


def unlucky(fate: str) -> str:
    return f'{{ name = "unlucky-product", options = {{ fate = "{fate}" }}, label = "unlucky" }}'


def failure_of(run: Run | None, case: str) -> str:
    assert run is not None
    records: list[Build | Check | Lost] = [*run.builds, *run.checks, *run.lost]
    return next(
        (record.failure.message for record in records if record.case == case and record.failure is not None), ""
    )


def test_peers_are_checked_and_timed_in_the_same_rounds(bench: Bench) -> None:
    status, _, run = bench.run(
        '"numpy-product"',
        '{ name = "numpy-product", options = { method = "einsum" }, label = "numpy-einsum" }',
    )
    assert status == 0
    assert run is not None
    peers = {"product/numpy-product@cpu", "product/numpy-einsum@cpu"}
    assert {turn.case for turn in run.rounds[0].turns} >= {"product/stock@cpu", *peers}
    checks = {check.case: check for check in run.checks}
    for name in peers:
        assert checks[name].against == "product/stock@cpu"
        assert checks[name].failure is None
    assert set(run.header.environment["peers"]) == {"numpy-product", "numpy-einsum"}


def test_the_report_shows_ratios_to_the_baseline_and_to_the_best_peer(bench: Bench) -> None:
    _, _, run = bench.run('"numpy-product"')
    assert run is not None
    folder = bench.folder / "results" / run.header.id
    text = bench.harness("report", str(folder), "--format", "markdown").stdout
    assert "vs numpy-product" in text
    assert "best peer" in text
    assert f"numpy {run.header.environment['peers']['numpy-product'].split()[-1]}" in text
    rows = {row["variant"]: row for row in document(bench.harness("report", str(folder), "--format", "json"))["rows"]}
    assert rows["numpy-product"]["peer"] == "numpy-product"
    assert rows["numpy-product"]["ratio"] * rows["stock"]["ratio_to_best_peer"] == pytest.approx(1, rel=0.2)
    assert rows["numpy-product"]["ratio_to_best_peer"] is None


@pytest.mark.parametrize(
    ("fate", "sentence"),
    [
        ("raises", "Unlucky: no such operation: Frobnicate"),
        ("dies", "Unlucky: the worker was ended by SIGABRT while it was at work on product/unlucky@cpu"),
        ("wrong", "its output 0 differs in"),
        ("shape", "its output 0 has shape (30, 10) where (10, 30) is right"),
    ],
)
def test_a_peer_that_goes_wrong_fails_its_own_case_and_the_rest_goes_on(bench: Bench, fate: str, sentence: str) -> None:
    status, _, run = bench.run(unlucky(fate))
    assert status == 3
    assert failure_of(run, "product/unlucky@cpu").startswith(sentence)
    assert run is not None
    assert timed(run) >= {"product/stock@cpu"}
    assert "product/unlucky@cpu" not in timed(run)


def test_a_peer_that_hangs_is_stopped(bench: Bench) -> None:
    status, _, run = bench.run(unlucky("hangs"), options=("--call-timeout", "5"))
    assert status == 3
    assert "took longer than the limit of 5 s" in failure_of(run, "product/unlucky@cpu")
    assert run is not None
    assert timed(run) >= {"product/stock@cpu"}


def test_a_peer_that_dies_while_it_is_timed_is_lost_and_the_others_are_measured(bench: Bench) -> None:
    status, _, run = bench.run(unlucky("dies late"))
    assert status == 3
    assert "SIGABRT" in failure_of(run, "product/unlucky@cpu")
    assert run is not None
    assert timed(run) >= {"product/stock@cpu"}


def test_a_peer_without_a_program_for_the_model_is_skipped_with_its_reason(bench: Bench) -> None:
    status, text, run = bench.run(unlucky("refuses"))
    assert status == 0
    assert "skipped: Unlucky: it has a headache" in " ".join(text.split())
    assert run is not None
    assert "product/unlucky@cpu" not in timed(run)


def test_a_peer_that_is_not_installed_is_skipped_with_the_line_that_installs_it(bench: Bench) -> None:
    status, text, _ = bench.run('"absent-product"')
    assert status == 0
    assert "absent is not installed; pip install 'iree-harness[absent]'" in " ".join(text.split())


@pytest.mark.parametrize(
    ("peers", "sentence"),
    [
        (['"numpi-product"'], "peers.toml: peers: there is no peer 'numpi-product'; did you mean \"numpy-product\"?"),
        (
            ['{ name = "numpy-product", options = { methode = "einsum" } }'],
            "peers: numpy-product.methode is not an option of peer 'numpy-product'; did you mean \"method\"?",
        ),
        (
            ['"numpy-product"', '"numpy-product"'],
            "peers.toml: peers: 'numpy-product' is there twice; give one of them a label of its own",
        ),
        (
            ['{ name = "numpy-product", label = "strong" }'],
            "peers.toml: peers: 'strong' is the name of a variant; give the peer another label",
        ),
    ],
)
def test_wrong_peers_are_refused_before_anything_runs(bench: Bench, peers: list[str], sentence: str) -> None:
    status, text, run = bench.run(*peers)
    assert (status, run) == (2, None)
    assert sentence in " ".join(text.split())
