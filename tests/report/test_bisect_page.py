"""What is printed of a bisect: the answer as a sentence, the steps or causes, and all that was tried."""

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.records.bisection import Bisection, CommitPoint, FoundCause, FoundStep, OpenStretch, Position, Trial
from harness.report import render
from harness.report.bisect_page import answer
from tests.builders import make_bisection

SLOWER = Trial(
    base="3.6.0",
    head="3.7.0",
    floor=0.01,
    verdict="regressed",
    ratio=1.42,
    ci_low=1.4,
    ci_high=1.44,
    base_value=10e6,
    head_value=14.2e6,
    generations=22,
    belongs="head",
)
EQUAL = replace(SLOWER, verdict="unchanged", ratio=1.0, ci_low=0.999, ci_high=1.001)
FAILED = Trial(base="3.6.0", head="3.6.1", floor=0.18, verdict="failed", reason="it fails at compile: no")
PLACED = replace(SLOWER, head="3.6.5", verdict="inconclusive", ci_low=None, ci_high=None, placed=True)
STEP = FoundStep(before="3.6.0", after="3.7.0", size=SLOWER)
FOUND = make_bisection(
    positions=(
        Position(name="3.6.0", revision="12" * 20, run="a"),
        Position(name="3.6.1", unusable="it fails at compile: no"),
        Position(name="3.7.0", revision="ab" * 20, run="b"),
    ),
    trials=(SLOWER, FAILED, PLACED),
    open=(OpenStretch(first="3.6.5", last="3.7.0", reason="it is too noisy"),),
    steps=(STEP,),
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
    open=(),
    trials=(replace(SLOWER, base="none", head="1+2+3"),),
    causes=(
        FoundCause(
            parts=(1, 3),
            size=replace(SLOWER, base="none", head="1+3"),
            alone=(replace(EQUAL, base="none", head="1"),),
            untold=True,
        ),
        FoundCause(parts=(2,), beside=(1, 3), size=SLOWER, inside=("--x-opt-level=O3",)),
    ),
)
COMMITS = replace(
    FOUND,
    over="commits",
    settings={"repo": "../iree"},
    commits=(
        CommitPoint(name="3.6.0", toolchain="a"),
        CommitPoint(name="3.7.0", toolchain="b", subject="Tile by eight", unbuilt=2),
    ),
)
NONE = replace(FOUND, steps=(), open=())
COUNTED = Trial(base="3.6.0", head="3.7.0", floor=0.0, verdict="regressed", base_value=0.0, head_value=3.0, exact=True)
COPIES = replace(NONE, metric="copies", unit="count", floor=0.0)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            replace(FOUND, steps=(replace(STEP, passed_over=("3.6.1",), explanation="It tiles otherwise."),)),
            "Since 3.7.0 at the latest: latency 1.420 [1.400, 1.440] times that of 3.6.0; it may have begun with 3.6.1,"
            " which cannot be measured. It tiles otherwise.",
        ),
        (
            replace(NONE, trials=(EQUAL,)),
            "No change of the latency of net/stock@cpu by more than 1 %: 3.7.0 has 1.000 [0.999, 1.001] times that of "
            "3.6.0.",
        ),
        (
            replace(NONE, open=(OpenStretch(first="3.6.0", last="3.7.0", reason="it is too noisy"),)),
            "It is not known when the latency of net/stock@cpu changed: it is too noisy.",
        ),
        (
            replace(PARTS, causes=(), trials=(replace(EQUAL, base="none", head="1+2+3"),)),
            "No part of fast is found to change the latency of stock: 1+2+3 has 1.000 [0.999, 1.001] times that of "
            "none.",
        ),
        (
            PARTS,
            "--a and --c together: latency 1.420 [1.400, 1.440] times that of stock; --b (of what it sets: "
            "--x-opt-level=O3): latency 1.420 [1.400, 1.440] times that of stock with part 1+3.",
        ),
        (
            replace(COMMITS, steps=(replace(STEP, passed_over=("3.6.1",)),)),
            "Since 3.7.0 (Tile by eight) at the latest: latency 1.420 [1.400, 1.440] times that of 3.6.0; it may have "
            "begun with 3.6.1, which cannot be measured, or with 2 commits between them of which there is no build.",
        ),
        # Counts are said as they are.
        (replace(COPIES, steps=(replace(STEP, size=COUNTED),)), "Since 3.7.0: copies 3, and 0 with 3.6.0."),
    ],
)
def test_the_answer(found: Bisection, sentence: str) -> None:
    assert answer(found) == sentence


def test_the_page_has_all_that_was_tried(snapshot: SnapshotAssertion) -> None:
    assert render(FOUND, "markdown") == snapshot


def test_each_cause_stands_beside_what_its_parts_do_alone() -> None:
    text = render(PARTS, "markdown")
    assert "| `2` | 1+3 | ▲ regressed | 1.420 [1.400, 1.440] | 10.00 | 14.20 |" in text
    assert "Each alone:\n\n- `1+3`: 1: 1.000 [0.999, 1.001] (unchanged)\n" in text
    assert "- `1+3`: a smaller set could not be told, so there may be one\n" in text


def test_a_step_and_a_cause_lead_to_their_explanations_and_what_is_not_finished_says_how_to_go_on() -> None:
    step = replace(STEP, explanation_id="a-id")
    kept = replace(FOUND, steps=(step,), settings={"results": "here"}, finished=False, notes=("The budget was spent",))
    text = render(kept, "terminal", width=200)
    assert "harness report here/a-id" in text and "harness ir" not in text
    assert f"harness bisect --resume here/{FOUND.id}" in text and "The budget was spent" in text
    causes = replace(PARTS, causes=(replace(PARTS.causes[1], explanation_id="b-id"),))
    assert "harness report b-id" in render(causes, "terminal", width=200)


def test_commits_are_told_by_their_subjects_and_listed_by_git() -> None:
    text = render(COMMITS, "terminal", width=200)
    assert "latency of net/stock@cpu from commit 3.6.0 to 3.7.0" in text and "github.com" not in text
    assert "git -C ../iree log --oneline 3.6.0..3.7.0" in text and text.count("Tile by eight") == 2
