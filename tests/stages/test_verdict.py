"""Good, bad, or not known: a suite as it is now beside a run, with figures that are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import NothingSelected, RunError, SuiteError, UsageError
from harness.progress import Silent
from harness.records.run import Build, Failure, Statistics, ToolchainRecord
from harness.stages import bisect_session
from harness.stages.bisect_session import Judged, judge_now
from harness.stages.options import VerdictOptions
from harness.store.run_directory import RunDirectory
from tests.builders import make_case, make_header
from tests.fakes.fake_toolchain import make_fake_toolchain

CASE = make_case()
RECORD = ToolchainRecord(version="0.0.0", revision="", compiler_sha256="fa" * 32)
Say = Callable[..., Judged]


def write_run(folder: Path, dispatches: int, *, failure: Failure | None = None) -> Path:
    """A run of one case with so many dispatches; its folder."""
    header = make_header("20261121-035012-small", cases=(CASE,), toolchains=(RECORD,))
    statistics = Statistics(
        dispatches=dispatches,
        copies=0,
        fills=0,
        awaits=1,
        submissions=1,
        executables=1,
        transient_bytes=0,
        constant_bytes=0,
        variable_bytes=0,
    )
    code = None if failure is not None else f"{dispatches:064x}"
    build = Build(
        case=CASE.name,
        command=("iree-compile",),
        cache_key="ab",
        module_sha256=code,
        statistics=statistics,
        failure=failure,
    )
    with RunDirectory.create(folder, header) as directory:
        directory.append(build)
    return directory.path


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """What is said where the case has so many dispatches now, and 10 in the run that was good."""
    toolchain = make_fake_toolchain(tmp_path / "tools")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bisect_session, "toolchain_named", lambda *_: toolchain)
    good = write_run(tmp_path / "results", 10)

    def said(now: int | Failure | Exception, **options: Any) -> Judged:
        def run_suite(*_: object, purpose: str, with_reference: bool, **__: object) -> Path:
            assert purpose == "compare"  # which the history leaves out, and `latest` too
            assert not with_reference, "no count needs a clock"
            if isinstance(now, Exception):
                raise now
            failure = now if isinstance(now, Failure) else None
            return write_run(tmp_path / "results", 0 if isinstance(now, Failure) else now, failure=failure)

        monkeypatch.setattr(bisect_session, "run_suite", run_suite)
        given = VerdictOptions(Path("small.toml"), case=CASE.name, against=good, metric="dispatches")
        return judge_now(replace(given, results=tmp_path / "results", **options), Silent())

    return said


@pytest.mark.parametrize(
    ("now", "options", "word"),
    [
        (10, {}, "good"),
        (9, {}, "good"),
        (11, {}, "bad"),
        (11, {"floor": 0.2}, "good"),
        (10, {"case": None}, "good"),  # which may be left out where the run has one
    ],
)
def test_more_than_the_floor_allows_is_worse(say: Say, now: int, options: dict[str, Any], word: str) -> None:
    judged = say(now, **options)
    assert (judged.word, judged.case) == (word, CASE.name)


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (Failure(stage="compile", message="it aborts"), "it fails at compile: it aborts"),
        (SuiteError("small.toml: variants is missing; add it"), "small.toml: variants is missing; add it"),
        (NothingSelected("small.toml: --filter matches no case"), "small.toml: --filter matches no case"),
    ],
)
def test_what_cannot_be_measured_now_cannot_be_told(say: Say, now: Failure | Exception, reason: str) -> None:
    judged = say(now)
    assert (judged.word, judged.reason, judged.trial) == ("cannot tell", reason, None)


def test_a_wrong_question_is_refused(say: Say, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--against \S+: the run has no case 'net/fast@cpu'"):
        say(10, case="net/fast@cpu")
    with pytest.raises(UsageError, match="--metric dispatch: there is no such metric"):
        say(10, metric="dispatch")
    with pytest.raises(UsageError, match=r"--metric flow/tensor.empty: --against \S+ did not count it"):
        say(10, metric="flow/tensor.empty")
    broken = write_run(tmp_path / "other", 10, failure=Failure(stage="compile", message="it aborts"))
    with pytest.raises(RunError, match="cannot be measured there: it fails at compile: it aborts; give another run"):
        say(10, against=broken)
