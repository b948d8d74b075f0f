"""Two commits of a repository side by side, and what a comment says of a row: that its command repeats it elsewhere."""

import os
from pathlib import Path

import pytest

from harness.github.posting import read_figures
from harness.records.comparison import Comparison
from tests.builders import commit, git
from tests.end_to_end.command import Harness, document, latencies, verdicts
from tests.end_to_end.suites import DOUBLE, PIPELINE

SUITE = """
name = "small"
baseline = "stock"

[models.double]
mlir = "../models/double.mlir"
function = "main"
inputs = [{ shape = [4] }]

[variants.stock]

[variants.passes]
flags = [%s]

[devices.vm]
uri = "local-sync"
backend = "vmvx"
compile_flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=vmvx"]
"""
STOCK, PASSES = "double/stock@vm", "double/passes@vm"
SIDES = ("main~1", "main", "--suite", "suites/small.toml")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits, the second of which breaks one variant and removes a model that only the first one's suite names."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "--quiet")
    works = SUITE % f'"{PIPELINE}(util.func(canonicalize))"'
    commit(folder, "Canonicalize", suites__small_toml=works, models__double_mlir=DOUBLE)
    broken = SUITE.replace("double.mlir", "twice.mlir") % f'"{PIPELINE}(util.func(no-such-pass))"'
    commit(folder, "Break it", suites__small_toml=broken, models__double_mlir="", models__twice_mlir=DOUBLE)
    return folder


def checkout(repository: Path, folder: Path) -> Harness:
    git(folder, "clone", "--quiet", str(repository), "here")
    return Harness(folder / "here")


def test_a_rows_command_in_a_comment_repeats_it_in_a_fresh_checkout(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    measured = Harness(repository)
    ended = measured("compare", *SIDES, "--format", "json", "--results", str(tmp_path / "results"))
    assert ended.returncode == 3, ended.stderr
    found = document(ended)
    assert verdicts(found) == {STOCK: "identical", PASSES: "failed"}
    assert "'no-such-pass' does not refer to a registered pass" in latencies(found)[PASSES]["reason"]
    base, head = (git(repository, "rev-parse", name) for name in SIDES[:2])
    assert [(found[side]["label"], found[side]["commit"], found[side]["subject"]) for side in ("base", "head")] == [
        ("main~1", base, "Canonicalize"),
        ("main", head, "Break it"),
    ]
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "worktree", "list").count("\n") == 0

    (folder,) = (tmp_path / "results").glob("*-compare")
    comment = read_figures(folder)
    assert isinstance(comment, Comparison)
    reader = checkout(repository, tmp_path)
    for row, status in zip(comment.rows, (0, 3), strict=True):
        command = f"harness compare {base} {head} --suite suites/small.toml --filter {row.case}"
        assert row.repro[0] == command
        again = reader.shell(f"{command} --format json || test $? = {status}")
        assert verdicts(document(again)) == {row.case: row.verdict}
