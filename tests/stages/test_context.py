"""What is said of a failure when it happens."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.run import run_one
from harness.errors import UsageError
from harness.records.run import Build, Check, Failure
from harness.stages.context import FailureNotes, GivenUp, done_in, give_up, is_timeout, unchecked
from harness.stages.options import RunOptions
from harness.store.run_directory import RunDirectory
from tests.builders import Notes, make_case, make_header

STOCK, FAST, TILED = (make_case(variant) for variant in ("stock", "fast", "tiled"))
BROKEN = Failure(stage="compile", message="it does\nnot compile")


def test_the_same_words_are_printed_once() -> None:
    notes = Notes()
    failures = FailureNotes(notes)
    failures.case(STOCK, BROKEN)
    failures.case(FAST, BROKEN)
    assert notes.lines == [
        "Failed (compile): net/stock@cpu: it does not compile",
        "Failed (compile): net/fast@cpu: as net/stock@cpu",
    ]


def test_what_the_suite_expects_is_no_news() -> None:
    notes = Notes()
    failures = FailureNotes(notes)
    expected = replace(FAST, expected_failure="not compile")
    failures.case(expected, BROKEN)
    failures.model("net", BROKEN, [expected, expected])
    assert notes.lines == []
    failures.model("net", BROKEN, [STOCK, expected])
    assert notes.lines == ["Failed (compile): net: it does not compile; 1 case fails with it"]


# ----------------------------------------------------------------------------------------- beside a case that timed out

TIMEOUT = Failure(
    stage="compile", message="iree-compile ran past its limit of 900 s; give it more with --compile-timeout"
)
ELSEWHERE = make_case("fast", device="gpu")
OTHER_RELEASE = replace(FAST, toolchain="3.1.0")


def test_the_other_variants_of_that_model_and_device_are_not_tried() -> None:
    given_up = GivenUp(keep_going=False)
    assert not given_up.note(STOCK, BROKEN)
    assert given_up.note(STOCK, TIMEOUT)
    assert given_up.note(TILED, TIMEOUT)  # was under way
    refused = given_up.refusal(FAST, "compile")
    assert refused is not None and refused.message == (
        "not tried, since net/stock@cpu timed out; give it more with --compile-timeout, or try every case with "
        "--keep-going"
    )
    assert not is_timeout(refused)
    assert [given_up.refusal(case, "compile") for case in (STOCK, ELSEWHERE, OTHER_RELEASE)] == [None] * 3
    assert given_up.refusal(FAST, "verify") == replace(refused, stage="verify")  # one cause, still that of a compile
    calls = GivenUp(keep_going=False)
    calls.note(STOCK, replace(TIMEOUT, stage="verify"))
    assert "with --call-timeout, or" in str(calls.refusal(FAST, "verify"))
    notes = Notes()
    FailureNotes(notes).case(FAST, refused)
    assert notes.lines == []  # it was counted with the one that timed out


# --- `run --resume RUN --skip PATTERN` ---

UNBUILT, UNCHECKED, CHECKED, WRONG = (make_case(name) for name in ("unbuilt", "unchecked", "checked", "wrong"))
SKIPPED = replace(make_case("skipped"), skip="not here")
PEER = replace(make_case("peer"), peer="onnxruntime")
NO = Failure(stage="verify", message="no")


def test_each_case_that_matches_fails_where_it_stood(tmp_path: Path) -> None:
    """Of a run with cases at every stage."""
    cases = (UNBUILT, UNCHECKED, CHECKED, WRONG, SKIPPED, PEER)
    with RunDirectory.create(tmp_path, make_header(cases=cases)) as begun:
        for case in (UNCHECKED, CHECKED, WRONG):
            begun.append(Build(case=case.name, command=(), cache_key=""))
        begun.append(replace(unchecked(CHECKED, NO), failure=None))
        begun.append(unchecked(WRONG, NO))
    directory, run = RunDirectory.resume(begun.path)
    with directory:
        words = r"--skip gone\* matches no case of the run, such as net/unbuilt@cpu; corr"
        with pytest.raises(UsageError, match=words):
            give_up(directory, run, done_in(run), ["gone*"])
        some = give_up(directory, run, done_in(run), ["*/wrong@*"])
        assert (len(some.builds), len(some.checks), some.lost) == (3, 2, frozenset())
        done = give_up(directory, run, done_in(run), ["net/*"])
    records: list[Build | Check] = [*done.builds.values(), *done.checks.values()]
    stages = {record.case: record.failure.stage for record in records if record.failure not in (None, NO)}
    assert stages == {UNBUILT.name: "compile", UNCHECKED.name: "verify", PEER.name: "verify"}
    assert done.lost == {CHECKED.name}
    assert done.checks[WRONG.name].failure == NO
    again, run = RunDirectory.resume(begun.path)
    with again:
        assert done_in(run) == done


def test_a_new_run_skips_nothing() -> None:
    with pytest.raises(UsageError, match="--skip is for a run that goes on with --resume"):
        run_one(RunOptions(Path("suite.toml"), skip=("net/*",)))
