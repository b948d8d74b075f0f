"""What a user can get wrong: one sentence that names it, the right exit status, nothing half-written.

The sentences themselves are held where they are made; here is what a terminal gets of them.
"""

from collections.abc import Callable

import pytest

from tests.end_to_end.command import Harness, refused
from tests.end_to_end.suites import BUILDER, DOUBLE, PARAMS

Change = Callable[..., Harness]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("height = 4", "hieght = 4", "[models.tiny] params.hieght"),
        ("[variants.stock]", '[variants.stock]\nflags = ["--iree-opt-data-tilin"]', "[variants.stock] flags"),
        ("[measure]", "[variants.stock]\n[measure]", "is not valid TOML: Cannot declare ('variants', 'stock') twice"),
    ],
)
def test_a_wrong_suite(suite_with: Change, old: str, new: str, where: str) -> None:
    harness = suite_with((old, new))
    refused(harness, harness("run", "small.toml"), f"small.toml: {where}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run",), "give either a suite, as in `harness run suites/esrgan.toml`, or --resume with a run directory"),
        (("run", "nope.toml"), "nope.toml: there is no such file; check the path"),
        (("run", "small.toml", "--budget", "-1"), "--budget"),
        (("run", "small.toml", "--bogus"), "--bogus"),
        (("run", "small.toml", "--filter", "nothing*"), "--filter nothing* matches no case"),
        (("list", "small.toml", "--toolchain", "iree>=3"), "--toolchain iree>=3: is no version; write the release"),
        (("run", "--resume", "nowhere", "--toolchain", "3.12.0"), "own settings; leave out toolchains"),
        (("run", "--resume", "nowhere"), "nowhere: there is no such folder"),
        (("run", "small.toml", "--results", "small.toml/x"), "small.toml/x: cannot be written (Not a directory)"),
        (("report", "nowhere"), "nowhere: there is no such folder"),
        (("frobnicate",), "frobnicate"),
    ],
)
def test_a_wrong_command_line(harness: Harness, arguments: tuple[str, ...], words: str) -> None:
    ended = harness(*arguments)
    refused(harness, ended, "")
    assert words in ended.stderr


def test_a_model_that_fails_is_a_failed_case(suite_with: Change) -> None:
    harness = suite_with((f"{BUILDER}\n{PARAMS}", 'mlir = "model.mlir"\nfunction = "main"\ninputs = []\n'))
    (harness.folder / "model.mlir").write_text(DOUBLE[:40])
    ended = harness("run", "small.toml", "--format", "csv")
    assert ended.returncode == 3
    assert "failed at model" in ended.stdout


def test_a_comparison_of_no_case(runs: Harness) -> None:
    ended = runs("compare", "results/base", "results/head", "--filter", "nothing*")
    refused(runs, ended, "--filter nothing* matches no case of the comparison, such as product/")
