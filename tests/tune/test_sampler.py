"""What a sampler asks for: sets of changes that exclude nothing of each other, promising ones first, none twice."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.tune.changes import Sampler

GROUPS = (("O2", "O3"), ("tiling",), ("layout",), ("padding",))
ALONE = {"O2": -0.02, "O3": -0.10, "tiling": -0.20, "layout": 0.30, "padding": 0.0}


def told(alone: Mapping[str, float | None]) -> Sampler:
    sampler = Sampler(GROUPS)
    for name, log_ratio in alone.items():
        sampler.tell({name}, log_ratio)
    return sampler


def test_what_helped_alone_is_asked_for_together_first() -> None:
    assert told(ALONE).ask() == frozenset({"O3", "tiling"})


def test_two_that_hurt_each_other_are_taken_apart() -> None:
    sampler = told({**ALONE, "padding": -0.15})
    sampler.tell({"O3", "tiling", "padding"}, 0.5)
    sampler.tell({"tiling", "padding"}, 0.5)
    asked = sampler.ask()
    assert asked is not None and not {"tiling", "padding"} <= asked


def test_nothing_is_added_to_what_failed() -> None:
    sampler = told({**ALONE, "O3": None})
    sampler.tell({"O2", "tiling"}, None)
    asked = list(iter(sampler.ask, None))
    assert asked, "and it ends"
    assert not any("O3" in chosen or {"O2", "tiling"} <= chosen for chosen in asked)


log_ratios = st.none() | st.floats(-1, 1)


@settings(max_examples=20, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(ALONE, log_ratios)), st.lists(log_ratios, min_size=12, max_size=12))
def test_sets_are_possible_new_and_the_same_again(alone: dict[str, float | None], answers: list[float | None]) -> None:
    def search() -> list[frozenset[str]]:
        sampler, asked = told(alone), []
        for answer in answers:
            chosen = sampler.ask()
            if chosen is None:
                break
            asked.append(chosen)
            sampler.tell(chosen, answer)
        return asked

    asked = search()
    assert asked == search()
    assert len(set(asked)) == len(asked)
    assert all(len(chosen) > 1 for chosen in asked)
    assert all(len(chosen.intersection(group)) <= 1 for chosen in asked for group in GROUPS)
