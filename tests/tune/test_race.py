"""A race: who leaves, who stays whatever one generation says, when it ends, and what it says of each."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.tune.race import Race, RaceRule

# Logarithms of times beside the reference's.
TIMES = {"best": -0.20, "close": -0.199, "slower": -0.10, "slow": 1.0}


def raced(times: dict[str, float], *, noise: float = 0.005, rule: RaceRule | None = None, seed: int = 0) -> Race:
    """A race to its end, in which the reference strays by as much as a candidate does."""
    rng = np.random.default_rng(seed)
    race = Race(tuple(times), rule)
    while not race.is_over:
        reference = rng.normal(0, noise)
        race.add({name: times[name] + rng.normal(0, noise) - reference for name in race.alive})
    return race


def test_what_is_close_gets_the_time() -> None:
    race = raced(TIMES)
    standings = race.standings()
    assert race.alive == ("best", "close")
    assert standings["slow"].generations == 1
    assert standings["slower"].generations < standings["close"].generations == race.generations < race.rule.most
    assert raced(TIMES, rule=RaceRule(least=4)).standings()["slow"].generations == 4
    assert Race(("only",)).is_over
    best = standings["best"]
    assert best.ratio == pytest.approx(math.exp(-0.2), rel=0.01)
    assert best.low is not None and best.high is not None and best.low < math.exp(-0.2) < best.high < best.low * 1.03
    race.add(dict.fromkeys(TIMES, -2.0))
    assert (race.alive, race.standings()["slow"].generations) == (("best", "close"), 1), "who has left stays out"


@given(odd=st.integers(0, 5), far=st.floats(0.0, 0.3))
def test_one_odd_generation_is_nothing_to_leave_for(odd: int, far: float) -> None:
    rng = np.random.default_rng(0)
    race = Race([str(number) for number in range(8)])
    for number in range(6):
        race.add({name: rng.normal(0, 0.005) + (far if name == "3" and number == odd else 0.0) for name in race.names})
    assert "3" in race.alive


def test_a_race_of_equals_ends_when_they_are_known_to_be_within_the_margin() -> None:
    equal = dict.fromkeys(map(str, range(6)), 0.0)
    coarse, fine = (raced(equal, rule=RaceRule(margin=margin)) for margin in (0.03, 0.001))
    assert coarse.generations < fine.generations == fine.rule.most
    assert coarse.alive == tuple(equal)


def test_a_candidate_with_more_noise_than_the_rest_is_judged_by_its_own() -> None:
    rng = np.random.default_rng(3)
    race = Race([str(number) for number in range(8)])
    for _ in range(12):
        race.add({name: rng.normal(0.03, 0.1) if name == "7" else rng.normal(0, 0.002) for name in race.names})
    assert "7" in race.alive


def test_one_without_samples_leaves_and_a_race_that_all_were_lost_from_is_over() -> None:
    race = Race(("a", "mute", "late"))
    for number in range(3):
        race.add({"a": 0.0, "mute": None, "late": 0.001 if number else None})
    assert race.alive == ("a", "late")
    assert race.standings()["mute"].ratio is None
    assert race.standings()["late"].generations == 2
    lost = Race(("a", "b"))
    lost.add({})
    assert not lost.is_over and lost.leader is None
    lost.add({})
    assert lost.is_over and lost.alive == ()


def test_the_best_hardly_ever_leaves() -> None:
    times = {"best": -0.02, **dict.fromkeys(map(str, range(7)), 0.0)}
    races = [raced(times, noise=0.01, seed=seed) for seed in range(20)]
    assert sum("best" not in race.alive for race in races) <= 1
