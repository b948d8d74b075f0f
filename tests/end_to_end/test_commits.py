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


def test_a_rows_command_in_a_comment_repeats_it_in_a_fresh_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two commits, the second breaks one variant and removes a model that only the first one's suite names."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    repository = tmp_path / "repository"
    git(tmp_path, "init", "--quiet", str(repository))
    works = SUITE % f'"{PIPELINE}(util.func(canonicalize))"'
    base = commit(repository, "Canonicalize", suites__small_toml=works, models__double_mlir=DOUBLE)
    broken = SUITE.replace("double.mlir", "twice.mlir") % f'"{PIPELINE}(util.func(no-such-pass))"'
    head = commit(repository, "Break it", suites__small_toml=broken, models__double_mlir="", models__twice_mlir=DOUBLE)

    sides = ("main~1", "main", "--suite", "suites/small.toml", "--results", str(tmp_path / "results"))
    ended = Harness(repository)("compare", *sides, "--format", "json")
    assert ended.returncode == 3, ended.stderr
    found = document(ended)
    assert verdicts(found) == {STOCK: "identical", PASSES: "failed"}
    assert "'no-such-pass' does not refer to a registered pass" in latencies(found)[PASSES]["reason"]
    assert [(found[side]["label"], found[side]["commit"], found[side]["subject"]) for side in ("base", "head")] == [
        ("main~1", base, "Canonicalize"),
        ("main", head, "Break it"),
    ]
    assert git(repository, "status", "--porcelain") == ""

    git(tmp_path, "clone", "--quiet", str(repository), "here")
    comment = read_figures(tmp_path / "results" / found["id"])
    assert isinstance(comment, Comparison)
    for row, status in zip(comment.rows, (0, 3), strict=True):
        command = f"harness compare {base} {head} --suite suites/small.toml --filter {row.case}"
        assert row.repro[0] == command
        again = Harness(tmp_path / "here").shell(f"{command} --format json || test $? = {status}")
        assert verdicts(document(again)) == {row.case: row.verdict}
