"""What is said of a failure when it happens."""

from __future__ import annotations

from dataclasses import replace

from harness.records.run import Failure
from harness.stages.failures import FailureNotes, GivenUp, is_timeout
from tests.builders import Notes, make_case

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
    assert refused == Failure(
        stage="compile",
        message="not tried, since net/stock@cpu timed out; give it more with --compile-timeout, or try every case with "
        "--keep-going",
    )
    assert not is_timeout(refused)
    assert [given_up.refusal(case, "compile") for case in (STOCK, ELSEWHERE, OTHER_RELEASE)] == [None] * 3
    at_call = given_up.refusal(FAST, "verify")
    assert at_call == replace(refused, stage="verify")  # one cause, and still that of a compile
    calls = GivenUp(keep_going=False)
    calls.note(STOCK, replace(TIMEOUT, stage="verify"))
    at_call = calls.refusal(FAST, "verify")
    assert at_call is not None and "with --call-timeout, or" in at_call.message
    notes = Notes()
    FailureNotes(notes).case(FAST, refused)
    assert notes.lines == []  # it was counted with the one that timed out


def test_all_are_tried_where_the_user_says_so() -> None:
    given_up = GivenUp(keep_going=True)
    assert not given_up.note(STOCK, TIMEOUT)
    assert given_up.refusal(FAST, "compile") is None
