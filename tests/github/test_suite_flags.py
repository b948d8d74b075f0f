"""Flags of the base's own suite, by a path that an artifact chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.github.suite_flags import suite_flags

SUITE = """\
name = "small"
baseline = "stock"
flagset_files = ["sets.toml"]

[models.net]
mlir = "net.mlir"
function = "main"
inputs = []

[variants.stock]

[variants.tuned]
flags = ["--iree-opt-data-tiling"]
flagsets = ["deep"]
run_flags = ["--task_topology_max_group_count=2"]
%s

[devices.cpu]
uri = "local-task"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local"]
"""
OF_SUITE = {
    "--iree-opt-data-tiling",
    "--iree-opt-level=O3",
    "--iree-hal-target-device=local",
    "--task_topology_max_group_count=2",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A tree with a suite and its flag sets, and one folder deeper nothing."""
    tree = tmp_path / "tree"
    (tree / "suites").mkdir(parents=True)
    (tree / "suites/small.toml").write_text(SUITE % "")
    (tree / "suites/sets.toml").write_text('[flagsets.deep]\ncompile = ["--iree-opt-level=O3"]\n')
    (tree / "suites/net.mlir").write_text("func.func @main() { return }\n")
    return tree


def test_flags_of_variants_devices_and_flag_sets(checkout: Path) -> None:
    assert suite_flags(checkout, "suites/small.toml", pytest.fail) == OF_SUITE


def test_flags_of_a_plugin_that_is_installed(checkout: Path) -> None:
    (checkout / "suites/small.toml").write_text(SUITE % 'plugins = ["halide-schedule"]')
    (flag,) = suite_flags(checkout, "suites/small.toml", pytest.fail) - OF_SUITE
    assert flag.startswith("--iree-codegen-transform-dialect-library=halide-schedule-")
    (checkout / "suites/small.toml").write_text(SUITE % 'plugins = ["not-installed"]')
    assert suite_flags(checkout, "suites/small.toml", pytest.fail) == OF_SUITE


@pytest.mark.parametrize(
    "suite",
    [
        "suites/other.toml",
        "../forged.toml",
        "suites/../../forged.toml",
        "suites/link.toml",
        "suites/net.mlir",
        "suites/broken.toml",
        "/etc/passwd",
        "suites",
        "",
        "a\0b.toml",
        "a\nb.toml",
        "x" * 5000 + ".toml",
    ],
)
def test_what_is_no_suite_of_the_base_has_no_flags(checkout: Path, suite: str) -> None:
    forged = checkout.parent / "forged.toml"
    forged.write_text((checkout / "suites/small.toml").read_text())
    (checkout / "suites/link.toml").symlink_to(forged)
    (checkout / "suites/broken.toml").write_text("[" * 100)
    sentences: list[str] = []
    assert suite_flags(checkout, suite, sentences.append) == frozenset()
    (sentence,) = sentences
    assert sentence.isprintable()
    assert "its flags are in no command" in sentence


def test_a_tree_that_is_not_there(tmp_path: Path) -> None:
    sentences: list[str] = []
    assert suite_flags(tmp_path / "gone", "suites/small.toml", sentences.append) == frozenset()
    assert len(sentences) == 1
