"""What makes points one series, and what makes them two."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.history.points import series_id, toolchain_role
from harness.history.tables import tables_of
from harness.history.values import Point
from harness.records.case import Case
from tests.history.made import NEWEST, REFERENCE, make_night

texts = st.text(max_size=12)
definitions = st.tuples(texts, texts, texts, texts, st.sampled_from(["newest", "reference", "other"]), texts)


@given(definitions)
def test_the_same_definition_is_the_same_series_in_every_process(definition: tuple[str, ...]) -> None:
    found = series_id(*definition)  # type: ignore[arg-type]  # hypothesis gives text where a role is wanted

    assert found == series_id(*definition)  # type: ignore[arg-type]
    assert len(found) == 16
    assert set(found) <= set("0123456789abcdef")


def test_an_id_stays_what_it_is_since_histories_are_kept() -> None:
    assert series_id("esrgan", "c0bca5be6afb3971", "latency", "AMD EPYC, 2 cores", "newest") == "a335a65fb23408a2"


@given(definitions, definitions)
def test_whatever_differs_makes_another_series(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    same = series_id(*one) == series_id(*other)  # type: ignore[arg-type]  # as above

    assert same == (one == other)


@pytest.mark.parametrize(
    ("places", "roles"), [(1, ["newest"]), (2, ["reference", "newest"]), (3, ["reference", "other", "newest"])]
)
def test_the_last_toolchain_is_the_newest_and_the_first_of_several_the_reference(places: int, roles: list[str]) -> None:
    assert [toolchain_role(place, places) for place in range(places)] == roles


def points(**given: object) -> list[Point]:
    return tables_of(make_night(**given)).points  # type: ignore[arg-type]  # each is a keyword of make_night


def series_of(found: list[Point], role: str, metric: str = "latency") -> set[str]:
    return {point.series for point in found if point.role == role and point.metric == metric}


def test_the_newest_release_may_change_within_a_series_and_the_reference_may_not() -> None:
    before, after = points(toolchains=("3.11.0", "3.12.0")), points(toolchains=("3.12.0", "3.13.0"))

    assert series_of(before, "newest") == series_of(after, "newest")
    assert not series_of(before, "reference") & series_of(after, "reference")
    assert not series_of(before, "newest", "latency-vs-reference") & series_of(after, "newest", "latency-vs-reference")


def test_two_other_toolchains_of_one_run_are_two_series() -> None:
    found = points(toolchains=("3.10.0", "3.11.0", "3.12.0", "3.13.0"))

    others = [point for point in found if point.role == "other" and point.metric == "latency"]
    assert len({point.series for point in others}) == len(others) == 4


def test_no_run_has_two_points_of_one_series_even_where_two_variants_have_the_same_flags() -> None:
    run = make_night(toolchains=(REFERENCE, NEWEST))
    alike = tuple(replace(case, id="c0bca5be6afb3971") for case in run.header.cases)

    found = tables_of(replace(run, header=replace(run.header, cases=alike))).points

    assert len({point.series for point in found}) == len(found)


def test_a_renamed_variant_goes_on_with_its_series() -> None:
    run = make_night(toolchains=(NEWEST,))
    renamed = {
        case.name: replace(case, name=f"net/new-{case.variant}@cpu", variant=f"new-{case.variant}")
        for case in run.header.cases
    }

    def swapped(case: Case) -> Case:
        return renamed[case.name]

    other = replace(
        run,
        header=replace(run.header, cases=tuple(map(swapped, run.header.cases)), baseline="new-stock"),
        builds=tuple(replace(build, case=renamed[build.case].name) for build in run.builds),
        rounds=tuple(
            replace(one, turns=tuple(replace(turn, case=renamed[turn.case].name) for turn in one.turns))
            for one in run.rounds
        ),
    )

    before, after = tables_of(run).points, tables_of(other).points
    assert [point.series for point in before] == [point.series for point in after]
    assert before != after


def test_every_field_of_a_point_is_filled() -> None:
    found = points()

    assert {field.name for field in dataclasses.fields(Point)} == set(vars(found[0]))
    assert all(point.machine_class and point.unit and point.toolchain and point.revision for point in found)
