"""`harness run --resume RUN --skip PATTERN`: what is given up, and where it stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.run import run_one
from harness.errors import UsageError
from harness.records.run import Build, Check, Failure
from harness.stages.context import done_in
from harness.stages.options import RunOptions
from harness.stages.skipping import give_up
from harness.store.run_directory import RunDirectory, load_run
from tests.builders import make_case, make_header

UNBUILT, UNCHECKED, CHECKED, WRONG = (make_case(name) for name in ("unbuilt", "unchecked", "checked", "wrong"))
SKIPPED = replace(make_case("skipped"), skip="not here")
PEER = replace(make_case("peer"), peer="onnxruntime")
NO = Failure(stage="verify", message="no")
GIVEN_UP = "given up with --skip when the run went on"


def checked(case: str, failure: Failure | None = None) -> Check:
    return Check(case=case, against="", command=(), relative_tolerance=0.0, absolute_tolerance=0.0, failure=failure)


@pytest.fixture
def begun(tmp_path: Path) -> RunDirectory:
    """A run with cases at every stage."""
    header = make_header()
    cases = (UNBUILT, UNCHECKED, CHECKED, WRONG, SKIPPED, PEER)
    directory = RunDirectory.create(tmp_path, replace(header, cases=cases))
    for case in (UNCHECKED, CHECKED, WRONG):
        directory.append(Build(case=case.name, command=(), cache_key=""))
    directory.append(checked(CHECKED.name))
    directory.append(checked(WRONG.name, NO))
    return directory


def test_each_case_fails_where_it_stood(begun: RunDirectory) -> None:
    path = begun.path
    with begun:
        pass
    directory, run = RunDirectory.resume(path)
    with directory:
        done = give_up(directory, run, done_in(run), ["net/*"])
    stages = {
        record.case: record.failure.stage
        for records in (done.builds.values(), done.checks.values())
        for record in records
        if record.failure is not None and record.failure.message == GIVEN_UP
    }
    assert stages == {UNBUILT.name: "compile", UNCHECKED.name: "verify", PEER.name: "verify"}
    assert done.lost == {CHECKED.name}
    assert done.checks[WRONG.name].failure == NO
    again = RunDirectory.resume(path)
    with again[0]:
        assert done_in(again[1]) == done


def test_only_what_matches_is_given_up(begun: RunDirectory) -> None:
    path = begun.path
    with begun:
        pass
    directory, run = RunDirectory.resume(path)
    with directory:
        done = give_up(directory, run, done_in(run), ["*/checked@*"])
        assert done.lost == {CHECKED.name}
        assert (len(done.builds), len(done.checks)) == (3, 2)
        with pytest.raises(
            UsageError, match=r"--skip gone\* matches no case of the run, such as net/unbuilt@cpu; corr"
        ):
            give_up(directory, run, done_in(run), ["gone*"])


def test_a_new_run_skips_nothing() -> None:
    with pytest.raises(UsageError, match="--skip is for a run that goes on with --resume"):
        run_one(RunOptions(Path("suite.toml"), skip=("net/*",)))


def test_settings_of_a_run_that_goes_on_are_kept(begun: RunDirectory) -> None:
    before = begun.header.settings
    begun.set(keep_going=True, skip=["net/*"])
    assert load_run(begun.path).header.settings == {**before, "keep_going": True, "skip": ["net/*"]}
