"""Shards are joined by `merge`: into one run like any other, with the host of each group, or not at all."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.history.series import open_history
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Peak
from harness.report import render
from harness.report.rows import rows_of
from harness.report.run_report import build_report
from harness.store.files import read_document
from harness.store.merging import Outcome, check_folder, merge
from harness.store.run_directory import RunDirectory, load_run
from harness.suite.cases import Shard
from tests.report.builders import make_build, make_case, make_failed_build, make_header, make_rounds
from tests.store.made import edit, fates, finished_as_it_is

MODELS = ("block", "conv", "mm", "relu", "softmax")
WHOLE = "20261121-031500-esrgan-joined"
ADVICE = "give all shards of one run, each once, in one command"
CPUS = {"3f2a91c04b7e": "AMD EPYC 7B13", "0123456789ab": "Neoverse-V2"}
ONE, TWO = CPUS


def an_environment(machine: str) -> dict[str, dict[str, Any]]:
    return {
        "machine": {"id": machine, "system": "Linux", "architecture": "x86_64"},
        "cpu": {"model": CPUS[machine], "usable_cores": 2},
        "devices": {"cpu": "this CPU"},
        "peers": {},
    }


def a_run(results: Path, models: Sequence[str], shard: Shard | None = None, **header: Any) -> Path:
    """A finished run of these models, of which `mm/fast` did not compile."""
    every = [make_case(model, variant, "cpu") for model in models for variant in ("stock", "fast")]
    cases: tuple[Case, ...] = tuple(case for case in every if shard is None or shard.has(case))
    with RunDirectory.create(results, make_header(cases, harness_commit="c0ffee", **header)) as directory:
        for case in cases:
            failed = case.name == "mm/fast@cpu"
            directory.append(make_failed_build(case) if failed else make_build(case, code=case.name.encode().hex()))
            if failed:
                directory.log(case.name, "error: no")
        for group in dict.fromkeys(case.group for case in cases):
            times = {case.name: 1e6 for case in cases if case.group == group and case.name != "mm/fast@cpu"}
            for measured in make_rounds(group, times, generations=3, rounds=4):
                directory.append(measured)
        directory.append(Peak(device="cpu", threads=1, operations_per_s=1e9, bytes_per_s=1e9))
        directory.finish(lambda run: render(run, "markdown", full=True), rows_of)
    return directory.path


def make_shards(folder: Path, *machines: str, models: Sequence[str] = MODELS, **header: Any) -> list[Path]:
    """The runs of all shards, of which each has a results folder of its own, as artifacts of a workflow have it."""
    found = []
    for number, machine in enumerate(machines, start=1):
        shard = Shard(number=number, count=len(machines))
        facts = {
            "environment": an_environment(machine),
            "settings": {"budget_s": 9.0, "generations": 3, "purpose": "", "skip": [machine], "shard": str(shard)},
            "command": ("harness", "run", "suites/esrgan.toml", "--shard", str(shard)),
        }
        found.append(a_run(folder / f"shard-{number}", models, shard, **{**facts, **header}))
    return found


def joined(into: Path | str, *sources: Path) -> list[Outcome]:
    return merge(
        [str(source) for source in sources], str(into), rows_of, lambda run: render(run, "markdown"), Progress()
    )


def refusal(into: Path, *sources: Path) -> str:
    """Why shards are not joined, after a look that nothing was written."""
    *_, refused = joined(into, *sources)
    assert refused.fate == "refused"
    assert not list(into.glob("2*"))
    assert "\n" not in refused.why
    return refused.why


@pytest.mark.parametrize("url", [False, True])
def test_shards_become_the_run_that_they_are_parts_of_each_a_host_with_its_groups(tmp_path: Path, url: bool) -> None:
    shards = make_shards(tmp_path, ONE, TWO, ONE)
    into = f"memory://{tmp_path.name}/all" if url else str(tmp_path / "into")
    for fate in ("copied", "already there"):
        outcomes = joined(into, *(shard.parent for shard in reversed(shards)))
        assert [outcome.fate for outcome in outcomes] == ["joined"] * 3 + [fate]
        assert [outcome.why for outcome in outcomes[:3]] == [f"shard {number}/3 of {WHOLE}" for number in (3, 2, 1)]
    if url:
        return
    folder = Path(into) / WHOLE
    assert [path.name for path in Path(into).iterdir() if path.name[0] != "."] == [WHOLE]
    assert check_folder(folder, name=WHOLE).state == "ok"
    run = load_run(folder)
    whole = load_run(a_run(tmp_path / "whole", MODELS, environment=an_environment(ONE)))
    assert run.header.command == ("harness", "run", "suites/esrgan.toml")
    assert not run.header.settings.keys() & {"shard", "skip"}
    figures = [
        {(row.case, row.status, row.latency_ns, row.kind) for row in build_report(made).rows()} for made in (run, whole)
    ]
    assert figures[0] == figures[1]
    assert [path.name for path in (folder / "logs").iterdir()] == ["mm,fast@cpu.stderr.txt"]
    parts = {f"shard-{number}": load_run(shard).header for number, shard in enumerate(shards, start=1)}
    assert {host.name: host.environment for host in run.hosts} == {
        name: part.environment for name, part in parts.items()
    }
    assert run.host_of_group == {case.group: name for name, part in parts.items() for case in part.cases}
    assert {(measured.group, measured.host) for measured in run.rounds} == set(run.host_of_group.items())
    assert {peak.host for peak in run.peaks} == set(parts)
    assert "3 hosts" in (folder / "report.md").read_text()


def test_joined_runs_have_a_history_as_others(tmp_path: Path) -> None:
    for day in (21, 22):
        started, name = f"2026-11-{day}T03:15:00+00:00", f"202611{day}-031500-esrgan"
        joined(tmp_path / "into", *make_shards(tmp_path / str(day), ONE, TWO, started=started, id=name))
    with open_history(str(tmp_path / "into")) as history:
        assert set(history.query("SELECT points FROM series WHERE metric = 'latency'")["points"]) == {2}


def test_a_shard_without_cases_is_not_missing_and_no_host(tmp_path: Path) -> None:
    shards = make_shards(tmp_path, ONE, ONE, ONE, models=["mm"])
    assert fates(joined(tmp_path / "into", *shards))[WHOLE] == "copied"
    run = load_run(tmp_path / "into" / WHOLE)
    assert (len(run.header.cases), len(run.hosts)) == (2, 1)


def test_a_shard_that_is_missing_there_twice_or_cannot_be_read_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = make_shards(tmp_path, ONE, TWO, ONE)
    into = tmp_path / "into"
    assert refusal(into, shards[0]) == f"these shards are missing: 2/3, 3/3; {ADVICE}"
    assert refusal(into, *shards, shards[0]) == f"{shards[0]} and {shards[0]} are the same shard; {ADVICE}"
    with monkeypatch.context() as patch:
        patch.setattr("harness.store.merging.read_document", partial(read_document, limit_bytes=1))
        assert "stderr.txt: is larger than" in refusal(into, *shards)
    (shards[1] / "finished.json").unlink()
    assert refusal(into, *shards) == f"these shards are missing: 2/3; {ADVICE}"


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"suite_sha256": "ee" * 32}, f"their suite files differ ({'5e' * 32}; {'ee' * 32})"),
        ({"toolchains": ()}, "their releases of IREE differ ([('3.13.0', "),
        ({"harness_version": "9"}, "their versions of the harness differ (0.1.0 c0ffee; 9 c0ffee)"),
        ({"settings": {"budget_s": 1.0}}, "their settings budget_s differ (9.0; 1.0)"),
        ({"settings": {"shard": "2/4"}}, "their numbers of shards differ (3; 4)"),
        ({"settings": {"shard": "../../x"}}, "these shards are missing: 2/3"),
    ],
)
def test_shards_of_other_runs_are_refused(tmp_path: Path, other: dict[str, Any], why: str) -> None:
    shards = make_shards(tmp_path, ONE, ONE, ONE)
    changed = json.loads((shards[1] / "run.json").read_text())
    edit(shards[1] / "run.json", **{**other, "settings": {**changed["settings"], **other.get("settings", {})}})
    finished_as_it_is(shards[1])
    said = refusal(tmp_path / "into", *shards)
    assert said.removeprefix(f"{shards[1]} is not of the same run as {shards[0]}: ").startswith(why)
