"""How detectors are scored, and what is written of it."""

from pathlib import Path

import pytest

from benchmarks.history.detection import main, read_record, write_record
from benchmarks.history.detection_detectors import OWN
from benchmarks.history.detection_kinds import DRIFTS, NONE, STEPS, stepped
from benchmarks.history.detection_scores import Said, Score, score
from benchmarks.history.detection_tables import BEGIN, END, Scores, key

STEP = stepped("steps", "made up", (50, 0.05))
DRIFT = DRIFTS[1]  # first point 150, last 199


def said(index: int, *, end: int | None = None, up: bool = True, reach: int = 0, drift: bool = False) -> Said:
    return Said(
        index=index, end=index if end is None else end, low=index - reach, high=index + reach, up=up, drift=drift
    )


@pytest.mark.parametrize(
    ("what", "found", "exact", "covered", "more"),
    [
        ([], 0, 0, 0, 0),
        ([said(50)], 1, 1, 1, 0),
        ([said(52, reach=2)], 1, 0, 1, 0),
        ([said(52)], 1, 0, 0, 0),
        ([said(56)], 0, 0, 0, 1),
        ([said(50, up=False)], 0, 0, 0, 1),
        ([said(50), said(80)], 1, 1, 1, 1),
    ],
)
def test_a_step_is_found_near_its_place(what: list[Said], found: int, exact: int, covered: int, more: int) -> None:
    one = score(STEP, what)
    assert (one.found, one.exact, one.covered, one.more) == (found, exact, covered, more)
    assert one.flagged == bool(what)
    without = score(NONE[0], what)
    assert (without.found, without.flagged, without.more) == (0, bool(what), bool(what))


@pytest.fixture
def scores() -> Scores:
    return {
        key(NONE[0]): {OWN: Score(series=300), "Otava 0.8.0": Score(series=40, flagged=5)},
        key(STEPS[0]): {OWN: Score(series=300, found=300, matched=300, exact=290, covered=299, width=330)},
        key(DRIFT): {OWN: Score(series=300, found=290, matched=290, drifts=200, covered=270, width=9000)},
    }


def test_a_record_is_written_again(scores: Scores, tmp_path: Path) -> None:
    record, document = tmp_path / "record.json", tmp_path / "history.md"
    document.write_text(f"{BEGIN}\n{END}\n")
    write_record(record, scores)
    assert read_record(record) == scores
    main(["--replay", "--record", str(record), "--document", str(document)])
    assert "12.50 % (4.19 to 26.80; 5 of 40)" in document.read_text()
