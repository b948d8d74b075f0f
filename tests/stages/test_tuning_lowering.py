"""The search for lowering configurations of dispatches whose times are known: nothing is compiled or timed."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from harness.errors import CaseError
from harness.stages import tuning_lowering
from harness.stages.tuning_lowering import LoweringSearch
from tests.stages.tuned import Dispatches, Scripted, a_dispatch, found_in, tile


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    with Scripted(tmp_path, monkeypatch) as begun:
        begun.race_s = 0.0
        yield begun


@pytest.fixture
def dispatches(session: Scripted, monkeypatch: pytest.MonkeyPatch) -> Dispatches:
    """One, `conv`, and nothing else."""
    found = Dispatches(session, monkeypatch)
    found.ns, found.taken = {"conv": 1.0}, [a_dispatch("conv")]
    return found


def search(session: Scripted, until_s: float = 100.0, form: str = "best") -> LoweringSearch:
    found = LoweringSearch(session, session.form(form), until_s)
    found.search()
    assert all(found_in(found.dispatches, name).chosen for name in found.winners)
    return found


def test_dispatches_are_tuned_up_to_nine_tenths_each_for_its_share_of_the_seconds(
    session: Scripted, dispatches: Dispatches
) -> None:
    dispatches.ns = {"a": 20.0, "b": 40.0, "b again": 15.0, "c": 15.0, "d": 6.0, "e": 4.0}
    twice = a_dispatch("b", places=("b", "b again"))
    dispatches.taken = [a_dispatch("a"), twice, a_dispatch("c", why="it only moves data"), a_dispatch("d")]
    found = search(session)
    assert [(each.name, each.places, each.share) for each in found.dispatches] == [
        ("b", 2, 0.55),
        ("a", 1, 0.2),
        ("c", 1, 0.15),
    ]
    assert found.covered == pytest.approx(0.9)
    assert found_in(found.dispatches, "c").reason == "it only moves data"
    assert session.seconds == pytest.approx({"b, round 1": 100 * 0.55 / 0.75, "a, round 1": 100.0})


def test_rounds_of_neighbours_go_on_from_what_is_better(session: Scripted, dispatches: Dispatches) -> None:
    dispatches.near = {8: (4, 16), 16: (8, 32)}
    session.ms = {"conv 4": 1.2, "conv 8": 0.7, "conv 16": 0.5, "conv 32": 0.6}
    found = search(session)
    (conv,) = found.dispatches
    assert dispatches.compiled == ["conv own", "conv 4", "conv 8", "conv 16", "conv 32"]
    assert {each.name: each.standing for each in conv.tried} == {
        tile(4).text: "lost",
        tile(8).text: "lost",
        tile(16).text: "best",
        tile(32).text: "lost",
    }
    ratios = [each.ratio for each in conv.tried]
    assert ratios == pytest.approx([1.2, 0.7, 0.5, 0.6], rel=1e-3), "beside the compiler's own"
    assert (conv.own, conv.chosen) == ("Own, tile = [0]", tile(16).text)
    assert conv.alone == pytest.approx(0.5)
    assert found.winners["conv"].configuration == tile(16)
    compiled, raced = [*dispatches.compiled], [*session.raced]
    again = search(session)
    assert (again.dispatches, again.winners) == (found.dispatches, found.winners)
    assert (dispatches.compiled, session.raced) == (compiled, raced), "a search that goes on has what it did itself"


def test_equal_code_is_raced_once_and_what_is_refused_has_its_reason(session: Scripted, dispatches: Dispatches) -> None:
    dispatches.sizes = (1, 2, 4, 8, 16)
    dispatches.refused = {"conv 1": "iree-compile was stopped after 10 s"}
    session.ms = {"conv 2": 0.99}
    dispatches.same = {"conv 4": "conv 2", "conv 8": "conv own", "conv 16": "conv own"}
    dispatches.unmatched = {"conv 16"}
    (conv,) = search(session).dispatches
    assert {each.name: (each.standing, each.reason) for each in conv.tried} == {
        tile(1).text: ("failed", "iree-compile was stopped after 10 s"),
        tile(2).text: ("best", ""),  # one per cent is worth no entry of a spec
        tile(4).text: ("inert", f"gives the code of {tile(2).text}"),
        tile(8).text: ("inert", "it comes to the compiler's own code"),
        tile(16).text: ("failed", "its spec recognises no operation of the dispatch"),
    }
    assert session.raced[0] == [tile(2).text, "own"]
    assert (conv.chosen, conv.alone, conv.reason) == ("", None, "nothing was better than the compiler's own")


def test_what_won_is_tried_first_for_the_next_dispatch(session: Scripted, dispatches: Dispatches) -> None:
    dispatches.ns = {"a": 60.0, "b": 40.0}
    dispatches.taken = [a_dispatch("a"), a_dispatch("b")]
    dispatches.near = {8: (64,)}
    session.ms = {"a 8": 0.6, "a 64": 0.5, "b 64": 0.5}
    found = search(session)
    assert dispatches.compiled == ["a own", "a 4", "a 8", "a 64", "b own", "b 64", "b 4", "b 8"]
    assert [winner.configuration for winner in found.winners.values()] == [tile(64), tile(64)]


def test_one_that_cannot_be_timed_and_one_without_time_leave_the_rest_alone(
    session: Scripted, dispatches: Dispatches
) -> None:
    dispatches.ns = {"a": 50.0, "b": 48.0, "c": 2.0}
    dispatches.taken = [a_dispatch("a"), a_dispatch("b"), a_dispatch("c")]
    dispatches.refused = {"a own": "it does not compile"}
    session.ms = {"b 4": 0.5}
    found = search(session)
    assert found_in(found.dispatches, "a").reason == "it cannot be timed alone: it does not compile"
    assert [*found.winners] == ["b"]
    again = search(session, until_s=session.spent_s + 1.0, form="late")
    assert {each.reason for each in again.dispatches} == {"the time for dispatches was over"}
    assert search(session, until_s=session.spent_s).note == "the time for dispatches was over"


def test_a_search_without_dispatches_says_why(
    session: Scripted, dispatches: Dispatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning_lowering, "take_out", Mock(side_effect=CaseError("ir", "the program cannot be read")))
    assert search(session).note == "its dispatches cannot be taken out: the program cannot be read"
    monkeypatch.setattr(tuning_lowering, "can_profile", lambda _: False)
    assert search(session).note == "IREE 0.0.0 has no profile of dispatches; 3.12 has one"
