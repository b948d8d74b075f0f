"""What each release did: points beside the first release, neighbours judged together, and stretches without figures."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.report.releases import Releases, releases_of, steps
from harness.report.releases_page import short_ratio, short_release
from harness.report.run_report import build_report
from tests.report.builders import FAILS, SKIPPED, WRONG, make_release_run

RELEASES = ("3.4.0", "3.5.0", "3.6.0", "3.7.0", "3.8.0")


def of(fates: list[float | str], *more: list[float | str]) -> Releases:
    lines = {f"m{number}": line for number, line in enumerate((fates, *more))}
    return releases_of(build_report(make_release_run(lines, *RELEASES[: len(fates)])))


def test_a_step_lies_between_measured_neighbours_and_a_point_beside_the_first_that_was_measured() -> None:
    found = of([SKIPPED, 2.0, FAILS, WRONG, 6.0], [4.0, 4.0, 1.0, 1.0, 1.0])
    first, other = found.lines
    assert [(point.state, point.verdict) for point in first.points] == [
        ("not available", None),
        ("measured", None),
        ("fails", None),
        ("wrong", None),
        ("measured", "regressed"),
    ]
    assert first.points[-1].ratio == pytest.approx(3.0, rel=0.01) and first.points[1].ratio == 1.0
    told = [(step.line.name, step.before, step.after, step.between) for step in found.steps]
    assert told == [
        ("m1/stock@local-sync", "3.5.0", "3.6.0", ()),
        ("m0/stock@local-sync", "3.5.0", "3.8.0", ("3.6.0", "3.7.0")),
    ]
    assert found.steps[0].row.verdict == "improved" and found.steps[1].row.ratio == pytest.approx(3.0, rel=0.01)
    # All neighbours are judged, those that did not change among them.
    assert [step.after for step in found.neighbours if step.line is other] == ["3.5.0", "3.6.0", "3.7.0", "3.8.0"]


def test_stretches_say_since_when_a_line_fails_is_wrong_or_works_again() -> None:
    found = of([1.0, FAILS, FAILS, SKIPPED, 1.0], [WRONG, 1.0, 1.0, 1.0, 1.0])
    assert [(each.line.model, each.state, each.first, each.last, each.before) for each in found.stretches] == [
        ("m0", "measured", "3.4.0", "3.4.0", None),
        ("m0", "fails", "3.5.0", "3.6.0", "measured"),
        ("m0", "measured", "3.8.0", "3.8.0", "fails"),
        ("m1", "wrong", "3.4.0", "3.4.0", None),
        ("m1", "measured", "3.5.0", "3.8.0", "wrong"),
    ]
    assert found.stretches[1].why == "failed at compile: it exited with 1"


def test_the_floor_is_the_callers_and_rows_that_a_filter_leaves_out_are_judged_and_not_shown() -> None:
    report = build_report(make_release_run({"a": [1.0, 1.1, 1.1], "b": [1.0, 2.0, 2.0]}, *RELEASES[:3]))
    assert [len(steps(report)), len(steps(report, 0.2)), len(steps(report, 1.5))] == [2, 1, 0]
    kept = replace(report, sections=report.sections[:1])
    (step,) = steps(kept)
    assert step.row.p == next(each.row.p for each in steps(report) if each.line.model == "a")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([1.0, 3.0, FAILS, WRONG, SKIPPED]), min_size=3, max_size=5))
def test_steps_and_stretches_cover_the_line(fates: list[float | str]) -> None:
    found = of(fates)
    measured = [RELEASES[place] for place, fate in enumerate(fates) if not isinstance(fate, str)]
    assert [(step.before, step.after) for step in found.neighbours] == list(pairwise(measured))
    times = [fate for fate in fates if not isinstance(fate, str)]
    assert len(found.steps) == sum(before != after for before, after in pairwise(times))
    states = {RELEASES.index(each.first): each.state for each in found.stretches}
    assert sorted(states) == list(states)
    neighbours = list(states.values())
    assert all(before != after for before, after in pairwise(neighbours))


def test_a_variant_with_another_ones_modules_has_points_and_adds_no_steps() -> None:
    run = make_release_run({"m": [1.0, 2.0, 2.0]}, *RELEASES[:3])
    twins = tuple(replace(case, name=f"twin:{case.toolchain}", variant="twin") for case in run.header.cases)
    builds = tuple(replace(build, case=twin.name) for build, twin in zip(run.builds, twins, strict=True))
    header = replace(run.header, cases=run.header.cases + twins)
    found = releases_of(build_report(replace(run, header=header, builds=run.builds + builds)))
    assert [line.points[1].ratio for line in found.lines] == [pytest.approx(2.0, rel=0.01)] * 2
    assert [step.line.variant for step in found.neighbours] == ["stock", "stock"]


def test_heads_and_ratios_are_as_short_as_they_can_be() -> None:
    names = ("3.0.0", "3.10.0", "3.10.1", "3.14.0rc20261120", "3.13.0+local", "build")
    heads = [("3.0", ""), ("3.10", ""), ("3.10.1", ""), ("3.14", "rc20261120"), ("3.13", "+local"), ("build", "")]
    assert list(map(short_release, names)) == heads
    assert list(map(short_ratio, (1.0, 28.1, 134.0, 0.162, 0.0351))) == ["1.00", "28.1", "134", "0.16", "0.035"]
