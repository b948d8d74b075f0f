"""Names beside points: none covers another, none covers a point, none leaves the plot."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.plots.labels import Box, place_labels

BOUNDS = Box(left=0, bottom=0, right=400, top=300)
POINTS = st.lists(st.tuples(st.floats(10, 390), st.floats(10, 290)), max_size=20)


@settings(deadline=None)
@given(POINTS, st.floats(10, 200))
def test_names_never_overlap(points: list[tuple[float, float]], width: float) -> None:
    places = place_labels(points, [(width, 14.0)] * len(points), BOUNDS)
    found = [place.box for place in places if place is not None]
    assert len(places) == len(points)
    for number, box in enumerate(found):
        assert BOUNDS.holds(box)
        assert not any(box.overlaps(other) for other in found[number + 1 :])
        assert not any(box.left < x < box.right and box.bottom < y < box.top for x, y in points)


def test_a_lone_name_stands_to_the_right_of_its_point() -> None:
    (place,) = place_labels([(100, 100)], [(50.0, 14.0)], BOUNDS)
    assert place is not None
    assert not place.far
    assert place.box.left > 100
    assert place.box.bottom < 100 < place.box.top


def test_at_the_right_edge_it_stands_to_the_left() -> None:
    (place,) = place_labels([(390, 100)], [(50.0, 14.0)], BOUNDS)
    assert place is not None
    assert place.box.right < 390


def test_a_line_is_left_free_where_another_place_is_as_near() -> None:
    line = Box(left=0, right=400, bottom=99, top=101)
    (place,) = place_labels([(100, 100)], [(50.0, 14.0)], BOUNDS, [line])
    assert place is not None
    assert not place.box.overlaps(line)


def test_of_many_at_one_place_those_without_room_have_no_name() -> None:
    places = place_labels([(200, 150)] * 200, [(120.0, 14.0)] * 200, BOUNDS)
    assert None in places
    assert sum(place is not None and place.far for place in places) > 5
