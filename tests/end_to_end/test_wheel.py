"""The harness as its wheel installs it: nothing of the repository is there, and a folder is empty to begin with.

tests/end_to_end/test_plugins.py uses the same environment.
"""

from pathlib import Path

import pytest

from harness.store.run_directory import load_run
from tests.end_to_end.command import Harness, document
from tests.end_to_end.plugin_package import REPOSITORY, folder_of_packages


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
    assert len(found["suites"]) == len(list((REPOSITORY / "suites").glob("*.toml"))) - 1, "each is whole"


def test_a_suite_of_ones_own_runs_with_a_flag_set_of_the_harness(user: Harness) -> None:
    assert user("new", "suite", "mine").returncode == 0
    suite = user.folder / "mine.toml"
    text = suite.read_text().replace('flags = ["--iree-opt-level=O3"]', 'flagsets = ["data-tiling-dispatch-creation"]')
    suite.write_text(text.replace("baseline =", 'flagset_files = ["flagsets/data-tiling.toml"]\nbaseline ='))
    ended = user("run", "mine.toml", "--budget", "0.1", "--generations", "1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (path,) = user.runs()
    run = load_run(path)
    assert "--iree-dispatch-creation-data-tiling" in run.header.cases[1].compile_flags
    assert run.header.harness_commit == "", "pip notes no commit of a wheel"
    report = user("report", "latest", "--format", "markdown")
    assert report.returncode == 0
    assert "product/o3@cpu</summary>" in report.stdout
