"""What is printed of a bisect: the answer as a sentence, the steps or causes, and all that was tried."""

from dataclasses import replace

import pytest

from harness.records.bisection import Bisection, FoundCause, FoundStep, OpenStretch, Position, Trial
from harness.report import render
from harness.report.bisect_page import answer
from tests.builders import make_bisection

SLOWER = Trial(
    base="3.6.0",
    head="3.7.0",
    floor=0.01,
    verdict="regressed",
    reason="confirmed in 11 fresh generations",
    ratio=1.42,
    ci_low=1.4,
    ci_high=1.44,
    p=1e-6,
    base_value=10e6,
    head_value=14.2e6,
    generations=22,
    seconds=12.4,
    belongs="head",
)
SAME = Trial(
    base="3.6.0", head="3.7.0", floor=0.01, verdict="identical", reason="the module has the same bytes", ratio=1.0
)
FAILED = Trial(
    base="3.6.0", head="3.6.1", floor=0.18, verdict="failed", reason="it fails at compile: no", belongs="unknown"
)
FOUND = make_bisection(
    positions=(
        Position(name="3.6.0", revision="12" * 20, run="a"),
        Position(name="3.6.1", unusable="it fails at compile: no"),
        Position(name="3.7.0", revision="ab" * 20, run="b"),
    ),
    trials=(SLOWER, FAILED),
    steps=(FoundStep(before="3.6.0", after="3.7.0", size=SLOWER),),
    error=2 / 900,
    machine="a machine",
)
PARTS = replace(
    FOUND,
    over="flags",
    ends=("stock", "fast"),
    parts=("--a", "--b", "--c"),
    steps=(),
    positions=(),
    trials=(replace(SLOWER, base="none", head="1+2+3"),),
    causes=(
        FoundCause(
            parts=(1, 3),
            size=replace(SLOWER, base="none", head="1+3"),
            alone=(replace(SLOWER, base="none", head="1", verdict="unchanged", ratio=1.0, ci_low=0.99, ci_high=1.01),),
            untold=True,
        ),
        FoundCause(parts=(2,), beside=(1, 3), size=SLOWER, inside=("--x-opt-level=O3",)),
    ),
)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (FOUND, "Since 3.7.0: latency 1.420 [1.400, 1.440] times that of 3.6.0."),
        (
            replace(FOUND, steps=(replace(FOUND.steps[0], passed_over=("3.6.1",), explanation="It tiles otherwise."),)),
            "Since 3.7.0 at the latest: latency 1.420 [1.400, 1.440] times that of 3.6.0; it may have begun with 3.6.1,"
            " which cannot be measured. It tiles otherwise.",
        ),
        (
            replace(
                FOUND, steps=(), trials=(replace(SLOWER, verdict="unchanged", ratio=1.0, ci_low=0.999, ci_high=1.001),)
            ),
            "The latency of net/stock@cpu does not change by more than 1 %: 3.7.0 has 1.000 [0.999, 1.001] times that "
            "of 3.6.0.",
        ),
        (
            replace(FOUND, steps=(), trials=(SAME,)),
            "The latency of net/stock@cpu does not change by more than 1 %: 3.7.0 beside 3.6.0: the module has the "
            "same bytes.",
        ),
        (
            replace(FOUND, steps=(), open=(OpenStretch(first="3.6.0", last="3.7.0", reason="it is too noisy"),)),
            "It is not known when the latency of net/stock@cpu changed: it is too noisy.",
        ),
        (
            PARTS,
            "--a and --c together: latency 1.420 [1.400, 1.440] times that of stock; --b (of what it sets: "
            "--x-opt-level=O3): latency 1.420 [1.400, 1.440] times that of stock with part 1+3.",
        ),
        (
            replace(PARTS, causes=(), trials=(replace(PARTS.trials[0], ratio=1.001, ci_low=0.999, ci_high=1.003),)),
            "No part of fast is found to change the latency of stock: 1+2+3 has 1.001 [0.999, 1.003] times that of "
            "none.",
        ),
    ],
)
def test_the_answer(found: Bisection, sentence: str) -> None:
    assert answer(found) == sentence


def test_counts_are_said_as_they_are() -> None:
    size = Trial(base="3.6.0", head="3.7.0", floor=0.0, verdict="regressed", base_value=0.0, head_value=3.0, exact=True)
    found = replace(FOUND, metric="copies", unit="count", steps=(FoundStep(before="3.6.0", after="3.7.0", size=size),))
    assert answer(found) == "Since 3.7.0: copies 3, and 0 with 3.6.0."
    more = replace(size, base_value=10.0, head_value=14.0, ratio=1.4)
    assert answer(replace(found, steps=(replace(found.steps[0], size=more),))) == (
        "Since 3.7.0: copies 14, and 10 with 3.6.0."
    )
    same = replace(size, base_value=10.0, head_value=10.0, ratio=1.0, verdict="unchanged")
    unchanged = replace(found, floor=0.0, steps=(), trials=(same,))
    assert answer(unchanged) == "The copies of net/stock@cpu do not change: 3.7.0 has 10, 3.6.0 has 10."


def test_the_page_has_all_that_was_tried() -> None:
    text = " ".join(render(FOUND, "terminal", width=160).split())
    for part in (
        "small.toml: latency of net/stock@cpu from IREE 3.6.0 to 3.7.0",
        "▲ regressed",
        "1.420 [1.400, 1.440]",
        "it fails at compile: no",
        "https://github.com/iree-org/iree/compare/1212121212...ababababab",
        "harness ir iree==3.6.0 iree==3.7.0 --suite small.toml --case net/stock@cpu",
        "The chance that the one measurement is wrong is at most 0.3 %",
    ):
        assert part in text
    assert "`3.7.0`" in render(FOUND, "markdown")


def test_a_step_and_a_cause_lead_to_their_explanations() -> None:
    step = replace(FOUND.steps[0], explanation="It tiles otherwise.", explanation_id="a-id")
    text = render(replace(FOUND, steps=(step,), settings={"results": "here"}), "terminal", width=200)
    assert "harness report here/a-id" in text
    assert "harness ir" not in text
    cause = replace(PARTS.causes[1], explanation="It tiles otherwise.", explanation_id="b-id")
    found = replace(PARTS, causes=(cause,))
    assert answer(found).endswith("times that of stock with part 1+3. It tiles otherwise.")
    assert "harness report b-id" in render(found, "terminal", width=200)


def test_what_was_placed_is_no_finding_and_what_was_not_searched_may_be() -> None:
    placed = replace(SLOWER, head="3.6.5", verdict="inconclusive", ci_low=None, ci_high=None, placed=True)
    aside = OpenStretch(first="3.6.5", last="3.7.0", reason="not searched, since", aside=True)
    text = render(replace(FOUND, trials=(SLOWER, placed), open=(aside,)), "terminal", width=200)
    (line,) = (line for line in text.splitlines() if line.startswith("3.6.5"))
    assert "placed" in line
    assert "inconclusive" not in text
    assert "the one measurement is wrong" in text
    assert "Not known between 3.6.5 and 3.7.0: not searched, since" in text
    assert f"harness bisect --resume {FOUND.id} --all-steps" in text


def test_one_that_is_not_finished_says_how_to_go_on() -> None:
    text = render(replace(FOUND, finished=False, notes=("The budget was spent",)), "terminal", width=200)
    assert f"harness bisect --resume {FOUND.id}" in text
    kept = replace(FOUND, finished=False, settings={"results": "elsewhere"})
    assert f"--resume elsewhere/{FOUND.id}" in render(kept, "terminal", width=200)
    assert "The budget was spent" in text
