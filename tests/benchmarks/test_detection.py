"""How detectors are scored."""

import pytest

from benchmarks.history.detection_kinds import NONE, stepped
from benchmarks.history.detection_scores import Said, score

STEP = stepped("steps", "made up", (50, 0.05))


def said(index: int, *, up: bool = True, reach: int = 0) -> Said:
    return Said(index=index, end=index, low=index - reach, high=index + reach, up=up, drift=False)


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
