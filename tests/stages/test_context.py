"""What is said of a failure when it happens, and which cases are not tried beside one that timed out."""

from dataclasses import replace

from harness.process import PAST_TIME
from harness.records.run import Failure
from harness.stages.prepare import FailureNotes, GivenUp, is_timeout
from tests.builders import Notes, make_case

STOCK, FAST, TILED = (make_case(variant) for variant in ("stock", "fast", "tiled"))
BROKEN = Failure(stage="compile", message="it does\nnot compile")
TIMEOUT = Failure(stage="compile", message=f"iree-compile {PAST_TIME} 900 s; give it more with --compile-timeout")


def test_the_same_words_are_printed_once_and_what_the_suite_expects_is_no_news() -> None:
    notes = Notes()
    failures = FailureNotes(notes)
    expected = replace(TILED, expected_failure="not compile")
    for case in (STOCK, expected, FAST):
        failures.case(case, BROKEN)
    failures.model("net", BROKEN, [expected, expected])
    failures.model("lm", replace(BROKEN, stage="model"), [STOCK, expected])
    assert notes.lines == [
        "Failed (compile): net/stock@cpu: it does not compile",
        "Failed (compile): net/fast@cpu: as net/stock@cpu",
        "Failed (model): lm: it does not compile; 1 case fails with it",
    ]


def test_beside_a_timeout_the_other_variants_of_that_model_device_and_release_are_not_tried() -> None:
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
    others = (STOCK, make_case("fast", device="gpu"), replace(FAST, toolchain="3.1.0"))
    assert [given_up.refusal(case, "compile") for case in others] == [None] * 3
    assert given_up.refusal(FAST, "verify") == replace(refused, stage="verify")  # one cause, still that of a compile
    notes = Notes()
    FailureNotes(notes).case(FAST, refused)
    assert notes.lines == []  # it was counted with the one that timed out
    given_up = GivenUp(keep_going=False)
    given_up.note(STOCK, replace(TIMEOUT, stage="verify"))
    assert "with --call-timeout, or" in str(given_up.refusal(FAST, "verify"))
