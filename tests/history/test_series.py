"""Which series a text means, in which order they are shown, and what runs recorded of their machine."""

import shlex

import pytest

from harness.errors import UsageError
from harness.history.series import SeriesRow, choose_series, history_command_line, match_series, reference_of
from tests.history.made import make_series

LATENCY = make_series("aa")
REFERENCE = make_series("bb", role="reference")
DISPATCHES = make_series("cc", metric="dispatches", unit="count")
RATIO = make_series("dd", metric="latency-vs-reference", unit="ratio")
BASELINE = make_series("ee", metric="latency-vs-baseline", unit="ratio")
TILED = make_series("ff", case="rdb/tiled@cpu", case_id="c2")
ODD = make_series("gg", case="rdb/[x]@cpu", metric="flow/flow.dispatch", unit="count")
ROWS = [BASELINE, DISPATCHES, REFERENCE, ODD, RATIO, TILED, LATENCY]
OF_CASE = [LATENCY, REFERENCE, RATIO, BASELINE, DISPATCHES]


@pytest.mark.parametrize(
    ("wanted", "found", "chosen"),
    [
        ("aa", [LATENCY], LATENCY),
        ("rdb/stock@cpu", OF_CASE, LATENCY),
        ("rdb/st*", OF_CASE, LATENCY),
        ("rdb/stock@cpu latency", [LATENCY, REFERENCE], LATENCY),
        ("rdb/stock@cpu/latency", [LATENCY, REFERENCE], LATENCY),
        ("rdb/stock@cpu disp*", [DISPATCHES], DISPATCHES),
        ("rdb/*", [LATENCY, REFERENCE, TILED, RATIO, BASELINE, ODD, DISPATCHES], None),
        ("rdb/[x]@cpu", [ODD], ODD),  # a name, and no pattern
        ("RDB/*", [], None),
    ],
)
def test_ids_names_and_patterns_mean_several_series_or_one(
    wanted: str, found: list[SeriesRow], chosen: SeriesRow | None
) -> None:
    assert match_series(ROWS, wanted) == found
    if chosen is not None:
        assert choose_series(ROWS, wanted, "results") == chosen


def test_what_is_no_choice_is_told_in_a_sentence_with_what_lists_all_and_never_a_password() -> None:
    elsewhere = make_series("hh", machine_class="Ampere Altra, 80 cores")
    both = r"2 series, aa \(rdb/stock@cpu latency, newest, .* 2 cores\), hh \(.*Altra, 80 cores\); give an id"
    for rows, wanted, said in (
        ([LATENCY, elsewhere], "rdb/stock@cpu", rf"--series rdb/stock@cpu: means {both}"),
        (ROWS, None, r"--series is missing: means 7 series, aa \(.* and 1 more; give an id"),
        ([], "x", "--series x: means no series"),
    ):
        with pytest.raises(UsageError, match=said) as caught:
            choose_series(rows, wanted, "https://user:secret@host/x")
        assert "`harness history https://...@host/x --sql " in str(caught.value)
        assert "secret" not in str(caught.value)
    line = history_command_line("my nights", "--sql", "SELECT 'x'").strip("`")
    assert shlex.split(line) == ["harness", "history", "my nights", "--sql", "SELECT 'x'"]


def test_the_reference_is_the_same_cases_on_the_same_machines() -> None:
    elsewhere = make_series("hh", role="reference", machine_class="Ampere Altra, 80 cores", points=900)
    longer = make_series("ii", role="reference", points=90)
    assert reference_of([*ROWS, elsewhere, longer], LATENCY) == longer
    assert reference_of(ROWS, TILED) is reference_of(ROWS, REFERENCE) is None
