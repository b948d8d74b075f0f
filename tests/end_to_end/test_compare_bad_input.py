"""Everything a user can get wrong about `harness compare`: one sentence, status 2, and no comparison left behind."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from tests.end_to_end.compared import BASE, HEAD, STOCK, comparisons, edit, refused, with_cache
from tests.end_to_end.conftest import Harness


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "give two sides, as in `harness compare results/base results/head`"),
        ((BASE,), "give two sides, as in `harness compare results/base results/head`"),
        ((BASE, HEAD, HEAD), "give two sides"),
        ((BASE, "--within", BASE), f"--within {BASE} compares the variants of that run; leave out {BASE}"),
        ((BASE, BASE), f"{BASE} is given twice; `harness compare --within {BASE}` compares its variants"),
        ((BASE, "nowhere"), "nowhere: is not a run directory (it has no run.json); give one from results/"),
        (("--within", "results"), "results: is not a run directory"),
        ((BASE, HEAD, "--filter", "nothing*"), "--filter nothing* matches no case of the comparison, such as product/"),
        ((BASE, "iree==nonsense"), "--toolchain iree==nonsense: is no version; write the release"),
        (("iree==3.13.0", "iree==3.12.0"), "two toolchains are compared on a suite; give one with --suite"),
        ((BASE, HEAD, "--row-budget", "0"), "Invalid value"),
        ((BASE, HEAD, "--results", "small.toml/x"), "small.toml/x: cannot be written (Not a directory)"),
    ],
)
def test_a_wrong_command_line(runs: Harness, arguments: tuple[str, ...], sentence: str) -> None:
    refused(runs, runs("compare", *arguments), sentence)


def test_runs_that_cannot_be_read_or_have_nothing_in_common(runs: Harness) -> None:
    header = runs.folder / HEAD / "run.json"
    whole = header.read_text()
    header.write_text(whole[:200])
    refused(runs, runs("compare", BASE, HEAD), f"{HEAD}/run.json: is damaged; take the run from a backup")
    header.write_text(whole)
    edit(header, lambda one: one.update(schema_version=99))
    refused(runs, runs("compare", BASE, HEAD), f"{HEAD}/run.json: has schema 99, and this harness reads 1; upgrade it")
    header.write_text(whole)
    edit(header, lambda one: [case.update(id=case["id"][::-1]) for case in one["cases"]])
    refused(runs, runs("compare", BASE, HEAD), f"{BASE} and {HEAD} have no case in common; compare runs of one suite")
    header.write_text(whole)
    builds = runs.folder / HEAD / "builds.jsonl"
    builds.write_text("{}\n" + builds.read_text())
    refused(runs, runs("compare", BASE, HEAD), f"{HEAD}/builds.jsonl: line 1 is damaged (")


def test_a_run_of_another_build_of_the_compiler(runs: Harness) -> None:
    edit(runs.folder / BASE / "run.json", lambda header: header["toolchains"][0].update(compiler_sha256="0" * 64))
    release = version("iree-base-compiler")
    refused(
        runs,
        runs("compare", BASE, HEAD),
        f"{BASE}: IREE {release} here has another compiler than the run's; make the run again",
    )


def test_modules_that_are_gone(runs: Harness, tmp_path: Path) -> None:
    finished = with_cache(runs, tmp_path / "empty", "compare", "--within", BASE)
    refused(
        runs,
        finished,
        f"the module of {STOCK} in {BASE} is no longer in the cache; make the run again, or compare what was recorded "
        "with --no-remeasure",
    )


def test_a_comparison_that_was_damaged_is_not_printed_again(runs: Harness) -> None:
    assert runs("compare", BASE, HEAD).returncode == 0
    (path,) = comparisons(runs)
    kept = path / "comparison.json"
    for text in (kept.read_text()[:300], "[]", '{"schema_version": 2}'):
        kept.write_text(text)
        finished = runs("report", str(path))
        assert (finished.returncode, finished.stdout) == (2, "")
        assert finished.stderr.startswith(f"harness: {kept}: is ")
