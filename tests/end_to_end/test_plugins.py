"""Plugins of an installed package, from a suite that names them to reports that say what they did."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from harness.records.run import Run
from harness.store.run_directory import load_run
from harness.toolchain import Toolchain
from tests.conftest import MadeOnce
from tests.end_to_end.command import Harness
from tests.end_to_end.plugin_package import COMPILER, EXAMPLE
from tests.end_to_end.test_toolchains import OLDER, older  # noqa: F401 (a fixture)

pytestmark = pytest.mark.timeout(1800)  # the older toolchain may have to be downloaded first
UNTIMED = "--no-measure"


@pytest.fixture
def installed(tools: Path, tmp_path: Path) -> Harness:
    """The command, in a folder with the example's suites."""
    for name in ("example.toml", "own_product.toml", "product.mlir"):
        shutil.copy(EXAMPLE / name, tmp_path)
    return Harness(tmp_path, programs=tools)


@pytest.fixture(scope="session")
def example(packages: Path, made_once: MadeOnce) -> Harness:
    """A folder in which the example's suite was run, with its package on the path; tests only read it."""

    def run(folder: Path) -> None:
        for name in ("example.toml", "product.mlir"):
            shutil.copy(EXAMPLE / name, folder)
        ended = Harness(folder, packages)("run", "example.toml", UNTIMED)
        assert ended.returncode == 0, ended.stdout + ended.stderr

    return Harness(made_once("example", run), packages)


def told(run: Run, variant: str) -> list[tuple[str, int | None, bool]]:
    """What each plugin of a variant did: name, matches, whether the program changed."""
    (build,) = [build for build in run.builds if build.case == f"product/{variant}@cpu"]
    return [(effect.name, effect.matched, effect.changed) for effect in build.effects]


def test_every_kind_of_plugin_does_something_that_is_recorded(example: Harness) -> None:
    run = example.run()
    assert {case.variant: case.plugins for case in run.header.cases} == {
        "stock": (),
        "one-exp": ("one-exp",),
        "one-exp-once": ("one-exp(limit = 1)",),
        "one-exp-pdl": ("one-exp-pdl",),
        "padded": ("padded-product(size = 32)",),
        "generic": ("generic-product",),
        "tiles": ("product-tiles(tiles = [2, 32, 4])",),
        "small-tiles": ("small-tiles",),
        "strong": ("strong",),
        "several": ("one-exp", "padded-product", "generic-product", "one-exp-pdl", "product-tiles"),
    }
    alone = {"one-exp-pdl": "one-exp-pdl", "padded": "padded-product", "generic": "generic-product"}
    alone |= {"tiles": "product-tiles", "small-tiles": "small-tiles"}
    wanted: dict[str, list[tuple[str, int | None, bool]]] = {name: [(one, None, True)] for name, one in alone.items()}
    wanted |= {"one-exp": [("one-exp", 2, True)], "one-exp-once": [("one-exp", 1, True)], "strong": []}
    wanted["several"] = [
        ("one-exp", 2, True),
        ("padded-product", None, True),
        ("generic-product", None, True),
        ("one-exp-pdl", None, False),  # for which one-exp left nothing
        ("product-tiles", None, False),  # for which generic-product left no linalg.matmul
    ]
    assert {variant: told(run, variant) for variant in wanted} == wanted


def test_they_make_other_modules_that_compute_the_same(example: Harness) -> None:
    run = example.run()
    modules = {build.case: build.module_sha256 for build in run.builds}
    assert all(build.failure is None for build in run.builds)
    assert len(run.checks) == len(modules)
    assert all(check.failure is None for check in run.checks)
    assert len({modules[f"product/{one}@cpu"] for one in ("stock", "one-exp", "padded", "generic", "tiles")}) == 5
    assert modules["product/one-exp@cpu"] == modules["product/one-exp-pdl@cpu"], "the same, written in two ways"


def test_the_printed_commands_make_the_same_modules(example: Harness, installed: Harness) -> None:
    """As they stand, in another folder, with the tools on the path."""
    (path,) = example.runs()
    text = example("report", str(path), "--format", "markdown", "--full").stdout
    modules = {build.case: build.module_sha256 for build in example.run().builds}
    for variant in ("one-exp-once", "several"):
        script = re.search(rf"product/{variant}@cpu</summary>\n\n```sh\n(.*?)\n```", text, re.DOTALL)
        assert script is not None
        assert f"harness export example.toml product --variant {variant} --device cpu" in script[1]
        done = installed.shell(script[1])
        assert done.returncode == 0, done.stderr
        assert "BM_main" in done.stdout
        (module,) = (installed.folder / f"product.{variant}.cpu").glob("*.vmfb")
        assert hashlib.sha256(module.read_bytes()).hexdigest() == modules[f"product/{variant}@cpu"]


def test_compile_times_are_compared_of_what_plugins_made_with_their_files(example: Harness) -> None:
    """Everything is compiled again for it, from what the cache keeps."""
    (path,) = example.runs()
    command = ("compare", "--within", str(path), "--filter", "product/several@cpu", "--format", "json")
    ended = example(*command, "--row-budget", "0.01", "--metric", "compile-time", "--results", "compared")
    (row,) = [row for row in json.loads(ended.stdout)["rows"] if row["metric"] == "compile-time"]
    assert row["generations"] > 0, row["reason"]


def test_under_another_toolchain_the_rewrites_run_in_its_own_python(
    installed: Harness,
    older: Toolchain,  # noqa: F811
) -> None:
    patterns = ("--filter", "product/one-exp@cpu", "--filter", "product/padded@cpu")
    ended = installed("run", "example.toml", "--toolchain", OLDER, *patterns, UNTIMED)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = installed.run()
    assert [one.version for one in run.header.toolchains] == [OLDER]
    assert told(run, "one-exp") == [("one-exp", 2, True)]
    assert told(run, "padded") == [("padded-product", None, True)]


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler, cc")
def test_a_kernel_of_ones_own_is_called(installed: Harness) -> None:
    ended = installed("run", "own_product.toml", "--budget", "0.1", "--generations", "1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (path,) = installed.runs()
    run = load_run(path)
    assert told(run, "own") == [("own-product", None, True)]
    assert all(check.failure is None for check in run.checks), "its products are the same"
    assert any(turn.case == "product/own@cpu" for one in run.rounds for turn in one.turns)
    text = installed("report", str(path), "--format", "markdown").stdout
    script = re.search(r"product/own@cpu</summary>\n\n```sh\n(.*?)\n```", text, re.DOTALL)
    assert script is not None
    done = installed.shell(script[1])
    assert done.returncode == 0, done.stderr
    without = re.sub(r" --executable_plugin=\S+", "", script[1].splitlines()[-1])
    done = installed.shell(without)
    assert done.returncode != 0, "without the plugin nothing has the function"


# --- What can be wrong ---


def test_a_compiler_plugin_that_is_no_shared_object_fails_its_case_only(installed: Harness) -> None:
    suite = installed.folder / "example.toml"
    suite.write_text(suite.read_text().replace('["generic-product"]', '["own-pass"]'))
    ended = installed(
        "run", "example.toml", "--filter", "product/stock@cpu", "--filter", "product/generic@cpu", UNTIMED
    )
    assert ended.returncode == 3
    (failure,) = [build.failure for build in installed.run().builds if build.failure is not None]
    assert re.fullmatch(
        r"plugin own-pass: iree-compile exited with status 1: \[IREE Dynamic Plugin ERROR\]: could not load plugin "
        r"library './own_pass-[0-9a-f]{16}\.so': .*file too short.*",
        failure.message,
    )
