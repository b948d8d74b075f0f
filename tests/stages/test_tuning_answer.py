"""What a search answers where it is known what is faster: nothing is compiled or timed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from harness.compare.samplers import Module
from harness.errors import CaseError
from harness.explain.profile import Profile
from harness.records.comparison import Verdict
from harness.records.tuning import TunedDispatch
from harness.stages import tuning_answer
from harness.stages.tune_underway import Untimed
from harness.stages.tuning_answer import Answered, AnswerSearch
from harness.stages.tuning_changes import FoundForms
from harness.stages.tuning_lowering import Lowered, Winner
from harness.stats.rule import Rule
from tests.stages.tuned import ROOT, Scripted, a_dispatch, found_in, tile

CHANGED: Verdict = "unchanged"


@pytest.fixture
def underway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """A spec's text is the names of its dispatches."""
    names = {4: "a", 8: "b"}
    monkeypatch.setattr(
        tuning_answer, "spec_of", lambda entries: "".join(names[best.tiles["tile"][0]] for _, best in entries)
    )
    profiled(monkeypatch, {})
    with Scripted(tmp_path, monkeypatch) as begun:
        yield begun


def profiled(monkeypatch: pytest.MonkeyPatch, factors: Mapping[str, float]) -> None:
    """What dispatches take in the whole program with a spec, beside without; 0.5 of those that are not named."""

    def turns(base: Module, head: Module, *_: object) -> object:
        names = ("a", "b", "b again", "c")
        before = Profile(calls=1, call_ns=1.0, dispatch_ns=dict.fromkeys(names, 100.0))
        after = replace(before, dispatch_ns={name: 100.0 * factors.get(name, 0.5) for name in names})
        return lambda _: (before, after)

    monkeypatch.setattr(tuning_answer, "ProfiledTurns", turns)


def answer(underway: Scripted, single_name: str = "single") -> Answered:
    """Of a search that found `both`, of which `single` is the half that matters, and winners for `a` and `b`."""
    single = replace(underway.form(single_name, "--x"), log_ratio=math.log(0.7))
    both = replace(underway.form("both", "--x", "--y"), log_ratio=math.log(0.6))
    found = FoundForms(best=both, best_single=single, singles=(), combinations=())
    dispatches = [a_dispatch("a"), a_dispatch("b", places=("b", "b again"))]
    winners = {
        each.name: Winner(dispatch=each, root=ROOT, configuration=tile(size))
        for each, size in zip(dispatches, (4, 8), strict=True)
    }
    tuned = tuple(TunedDispatch(name=name, operation=name, places=1, share=0.4) for name in winners)
    untuned = TunedDispatch(name="c", operation="c", places=1, share=0.1, reason="it only moves data")
    search = AnswerSearch(underway, underway.form("start"), found, Rule())
    return search.answer(both, Lowered(dispatches=(*tuned, untuned), winners=winners))


def test_the_whole_with_its_winners_is_confirmed_beside_the_start_and_the_best_single_change(
    underway: Scripted,
) -> None:
    underway.ms = {"--x --y ab": 0.5}
    found = answer(underway)
    assert found.form is not None
    assert (found.answer, found.form.name, found.spec) == ("faster", "with-spec", "ab")
    assert {each.name: (each.whole, each.kept) for each in found.dispatches} == {
        "a": (0.5, True),
        "b": (0.5, True),
        "c": (None, False),
    }
    assert {each.chosen for each in found.dispatches[:2]} == {tile(4).text}, "equal operations have one configuration"
    assert [each.base for each in found.confirmations] == ["the start (stock)", "the best single change (single)"]
    assert [moment.name for moment in underway.moments] == ["with-spec", "with-spec"]


def test_a_winner_that_does_not_help_the_whole_is_dropped(underway: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    profiled(monkeypatch, {"b": 0.9, "b again": 1.09})
    underway.ms = {"--x --y a": 0.5, "--x --y ab": 0.4}
    found = answer(underway)
    assert found.form is not None
    assert (found.form.name, found.spec) == ("with-spec-kept", "a")
    b = found_in(found.dispatches, "b")
    assert (b.whole, b.kept, b.reason) == (pytest.approx(0.995), False, "it does not help the whole")


def test_where_no_winner_helps_the_whole_the_form_goes_without(
    underway: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiled(monkeypatch, {"a": 1.0, "b": 1.2, "b again": 1.2})
    found = answer(underway)
    assert found.form is not None
    assert (found.form.name, found.spec) == ("both", "")
    assert not any(each.kept for each in found.dispatches)


def test_a_device_without_a_profile_keeps_all_winners(underway: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise CaseError("measure", "there is no profile")

    monkeypatch.setattr(tuning_answer, "ProfiledTurns", lambda *_: refuse)
    underway.ms = {"--x --y ab": 0.5}
    found = answer(underway)
    assert found.spec == "ab"
    assert {each.whole for each in found.dispatches} == {None}


def test_a_whole_that_is_wrong_is_taken_apart(underway: Scripted) -> None:
    wrong = Untimed(reason="output 0 differs", wrong=True)
    underway.broken = {"--x --y ab": wrong, "--x --y b": wrong}
    underway.ms = {"--x --y a": 0.5}
    found = answer(underway)
    assert found.form is not None
    assert (found.form.name, found.spec) == ("with-spec-rest", "a")
    assert found_in(found.dispatches, "b").reason == "in the whole program: output 0 differs"


def test_winners_that_are_only_wrong_together_are_left_out(underway: Scripted) -> None:
    underway.broken = {"--x --y ab": Untimed(reason="output 0 differs", wrong=True)}
    found = answer(underway)
    assert found.form is not None
    assert (found.form.name, found.spec) == ("both", "")
    assert found_in(found.dispatches, "a").reason == "together with others: output 0 differs"


def test_a_spec_that_changes_nothing_in_the_whole_is_no_variant(underway: Scripted) -> None:
    underway.code_of = lambda way: " ".join(way.flags)
    found = answer(underway)
    assert found.form is not None and found.form.name == "both"
    nothing = "in the whole program: its tuning spec changes nothing in the whole program"
    assert [each.reason for each in found.dispatches] == [nothing, nothing, "it only moves data"]


def test_what_is_not_better_than_the_best_single_change_leaves_that_as_the_answer(underway: Scripted) -> None:
    underway.ms = {"--x --y ab": 0.5}
    underway.verdicts = {("with-spec", "single"): CHANGED, ("both", "single"): "inconclusive"}
    found = answer(underway)
    assert found.form is not None
    assert (found.answer, found.form.name, found.spec) == ("faster", "single", "")
    a = found_in(found.dispatches, "a")
    assert (a.kept, a.reason) == (False, "the whole program with it was not confirmed faster")
    assert [each.verdict for each in found.confirmations] == [
        "improved",
        CHANGED,
        "improved",
        "inconclusive",
        "improved",
    ]


def test_a_form_with_a_spec_is_not_taken_for_the_plugin_tuned(underway: Scripted) -> None:
    underway.ms = {"--x --y ab": 0.5}
    found = answer(underway, "tuned")
    assert found.form is not None
    assert (found.form.name, found.spec) == ("with-spec", "ab")
    assert [each.base for each in found.confirmations] == ["the start (stock)", "the best single change (tuned)"]


def test_no_variant_without_its_confirmations(underway: Scripted) -> None:
    underway.ms = {"--x --y ab": 0.5}
    asked = [
        ("with-spec", "start"),
        ("with-spec", "single"),
        ("both", "start"),
        ("both", "single"),
        ("single", "start"),
    ]
    verdicts: tuple[Verdict, ...] = ("improved", "inconclusive")
    for combination in product(verdicts, repeat=len(asked)):
        underway.verdicts = said = dict(zip(asked, combination, strict=True))
        underway.batches.clear()
        found = answer(underway)
        confirmed = [
            name
            for name in ("with-spec", "both", "single")
            if {said[pair] for pair in asked if pair[0] == name} == {"improved"}
        ]
        assert (None if found.form is None else found.form.name) == (confirmed[0] if confirmed else None)
        assert found.answer == ("faster" if confirmed else "nothing beats the start")
        assert bool(found.spec) == (confirmed[:1] == ["with-spec"])
