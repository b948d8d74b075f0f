"""Steps between the releases of a run: which are told, with what cause; and the lines that its page draws."""

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

from harness.dashboard.kept import explanation_file
from harness.dashboard.steps import lines_table, step_facts
from tests.dashboard.made import EVIL, NIGHTS, OVER, a_history, over_releases, run_id, table
from tests.report.explanations import make_explanation

LINE = "rdb/stock@local-sync"


def test_steps_are_told_by_size_with_the_cause_that_an_explanation_of_the_same_two_releases_gives() -> None:
    made, releases = a_history().gathered, over_releases()
    sides = make_explanation()
    same = make_explanation(
        case=LINE,
        base=replace(sides.base, toolchains=("3.9.0 (f17ed20a11)",)),
        head=replace(sides.head, toolchains=("3.10.0 (f17ed20a11)",)),
        sentence="it takes -5 % of the tiles",
    )
    larger, step = step_facts(made, releases, [same, make_explanation(case=LINE)])
    assert larger["where"] == "latency, 3.10.0 to 3.12.0" and larger["between"] == ("3.11.0",)
    assert (larger["file"], larger["worse"]) == ("", True)
    assert (step["file"], step["sentence"]) == (explanation_file(same), "it takes \u22125 % of the tiles")
    asked = {name: values[0] for name, values in parse_qs(urlsplit(step["address"]).fragment).items()}
    assert asked == {"line": LINE, "metric": "latency", "release": "3.10.0"}
    # Of a line that a newer run has too, and of a run of long ago, nothing is told.
    found = releases[OVER]
    assert step_facts(made, {OVER: found, run_id(NIGHTS - 2): found}, []) == step_facts(made, releases, [])
    assert step_facts(made, {run_id(3): found}, []) == []


def test_the_lines_of_a_run_stand_by_their_largest_step_with_what_each_release_did() -> None:
    lines = lines_table(over_releases()[OVER])
    assert lines["lines"] == [f"{EVIL}/stock@local-sync", LINE, "same/stock@local-sync"]
    points = table(lines["points"])
    assert [points["text"][place] for place in (0, 2, 5)] == ["1.00", "fails", "2.00"]
    assert [points["shade"][place] for place in (0, 2, 5)] == ["even", "failed", "slower-4"]
    assert "exited with 1" in points["why"][2]
    steps = {place: since for place, since in enumerate(points["since"]) if since is not None}
    assert steps == {3: 1, 5: 0}  # each with the release before it that was measured
