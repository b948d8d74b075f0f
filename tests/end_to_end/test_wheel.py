"""The harness as its wheel installs it, and plugins of an installed package, from suite to report."""

import hashlib
import re
import shutil
from pathlib import Path

import pytest

from harness.records.run import Run
from harness.toolchain import Toolchain
from tests.conftest import MadeOnce
from tests.end_to_end.command import Harness, document
from tests.end_to_end.conftest import OLDER
from tests.end_to_end.plugin_package import COMPILER, EXAMPLE, REPOSITORY, folder_of_packages


@pytest.fixture(scope="module")
def user(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """The installed command in a folder of its own, where the suites of the harness were written out."""
    harness = Harness(tmp_path_factory.mktemp("user"), programs=tools)
    written = harness("new", "examples")
    assert (written.returncode, written.stdout) == (0, "")
    assert written.stderr == "suites, flagsets, docs: begin with `harness run suites/smoke.toml`\n"
    return harness


def files(folder: Path) -> dict[str, bytes]:
    """What lies in a folder, but for what Python keeps there."""
    paths = (path for path in folder.rglob("*.*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_the_wheel_has_all_files_of_the_package(tools: Path) -> None:
    installed = files(folder_of_packages(tools / "python") / "harness")
    ours = files(REPOSITORY / "harness")
    assert {name for name in ours if installed.get(name) != ours[name]} == set()
    assert {Path(name).parts[0] for name in installed.keys() - ours.keys()} == {"shipped"}


def test_suites_flag_sets_and_docs_are_written_out(user: Harness) -> None:
    assert {path.name for path in user.folder.iterdir()} >= {"suites", "flagsets", "docs"}
    for name in ("suites", "flagsets", "docs"):
        assert files(user.folder / name) == files(REPOSITORY / name)
    found = document(user("list", "suites/nightly.toml", "--format", "json"))
    assert len(found["suites"]) == len(list((REPOSITORY / "suites").glob("*.toml"))) - 2, "each but field is whole"


def test_a_suite_of_ones_own_runs_with_a_flag_set_of_the_harness(user: Harness) -> None:
    assert user("new", "suite", "mine").returncode == 0
    suite = user.folder / "mine.toml"
    text = suite.read_text().replace('flags = ["--iree-opt-level=O3"]', 'flagsets = ["data-tiling-dispatch-creation"]')
    suite.write_text(text.replace("baseline =", 'flagset_files = ["flagsets/data-tiling.toml"]\nbaseline ='))
    ended = user("run", "mine.toml", "--budget", "0.1", "--generations", "1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = user.run()
    assert "--iree-dispatch-creation-data-tiling" in run.header.cases[1].compile_flags
    assert run.header.harness_commit == "", "pip notes no commit of a folder"
    assert "product/o3@cpu</summary>" in user("report", "latest", "--format", "markdown").stdout


pytestmark = pytest.mark.timeout(1800)  # the older toolchain may have to be downloaded first
UNTIMED = "--no-measure"


@pytest.fixture
def installed(tools: Path, tmp_path: Path) -> Harness:
    """The command, in a folder with the example's suite."""
    for name in ("example.toml", "product.mlir"):
        shutil.copy(EXAMPLE / name, tmp_path)
    return Harness(tmp_path, programs=tools)


@pytest.fixture(scope="session")
def example(tools: Path, made_once: MadeOnce) -> Harness:
    """A folder in which the example's suite was run; tests only read it."""

    def run(folder: Path) -> None:
        for name in ("example.toml", "product.mlir"):
            shutil.copy(EXAMPLE / name, folder)
        ended = Harness(folder, programs=tools)("run", "example.toml", UNTIMED)
        assert ended.returncode == 0, ended.stdout + ended.stderr

    return Harness(made_once("example", run), programs=tools)


def script_of(variant: str, markdown: str) -> str:
    """The commands that a report prints for a variant."""
    found = re.search(rf"product/{variant}@cpu</summary>\n\n```sh\n(.*?)\n```", markdown, re.DOTALL)
    assert found is not None
    return found[1]


def matched(run: Run, variant: str) -> dict[str, int | None]:
    """How many places each rewrite of a variant matched."""
    (build,) = [build for build in run.builds if build.case == f"product/{variant}@cpu"]
    return {effect.name: effect.matched for effect in build.effects}


def test_every_kind_of_plugin_makes_another_module_that_computes_the_same(example: Harness) -> None:
    run = example.run()
    named = {case.variant: case.plugins for case in run.header.cases}
    assert named["several"] == ("one-exp", "padded-product", "generic-product", "one-exp-pdl", "product-tiles")
    assert named["one-exp-once"] == ("one-exp(limit = 1)",)
    assert named["tiles"] == ("product-tiles(tiles = [2, 32, 4])",)
    places = {variant: matched(run, variant) for variant in ("one-exp", "one-exp-once", "several", "tiles")}
    assert places == {"one-exp": {"one-exp": 2}, "one-exp-once": {"one-exp": 1}, "several": {"one-exp": 2}, "tiles": {}}
    modules = {build.case: build.module_sha256 for build in run.builds}
    assert all(build.failure is None for build in run.builds)
    assert {check.case: check.failure for check in run.checks} == dict.fromkeys(modules)
    distinct = ("stock", "one-exp", "padded", "generic", "tiles", "small-tiles")
    assert len({modules[f"product/{variant}@cpu"] for variant in distinct}) == len(distinct)
    assert modules["product/one-exp@cpu"] == modules["product/one-exp-pdl@cpu"], "the same, written in two ways"


def test_the_printed_commands_make_the_same_modules(example: Harness, installed: Harness) -> None:
    """As they stand, in another folder, with the tools on the path."""
    (path,) = example.runs()
    text = example("report", str(path), "--format", "markdown", "--full").stdout
    modules = {build.case: build.module_sha256 for build in example.run().builds}
    for variant in ("one-exp-once", "several"):
        script = script_of(variant, text)
        assert f"harness export example.toml product --variant {variant} --device cpu" in script
        done = installed.shell(script)
        assert done.returncode == 0, done.stderr
        assert "BM_main" in done.stdout
        (module,) = (installed.folder / f"product.{variant}.cpu").glob("*.vmfb")
        assert hashlib.sha256(module.read_bytes()).hexdigest() == modules[f"product/{variant}@cpu"]


def test_under_another_toolchain_the_rewrites_run_in_its_own_python(
    installed: Harness,
    older: Toolchain,
) -> None:
    ended = installed("run", "example.toml", "--toolchain", OLDER, "--filter", "product/one-exp@cpu", UNTIMED)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = installed.run()
    assert [one.version for one in run.header.toolchains] == [OLDER]
    assert matched(run, "one-exp") == {"one-exp": 2}


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler, cc")
def test_a_kernel_of_ones_own_is_called(installed: Harness) -> None:
    suite = installed.folder / "example.toml"
    suite.write_text(f'{suite.read_text()}\n[variants.own]\nplugins = ["own-product"]\n')
    brief = ("--filter", "product/stock@cpu", "--filter", "product/own@cpu", "--budget", "0.1", "--generations", "1")
    ended = installed("run", "example.toml", *brief)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = installed.run()
    assert all(check.failure is None for check in run.checks), "its products are the same"
    assert any(turn.case == "product/own@cpu" for one in run.rounds for turn in one.turns)
    script = script_of("own", installed("report", "latest", "--format", "markdown").stdout)
    done = installed.shell(script)
    assert done.returncode == 0, done.stderr
    without = re.sub(r" --executable_plugin=\S+", "", script.splitlines()[-1])
    assert installed.shell(without).returncode != 0, "without the plugin nothing has the function"
