"""What becomes of a search that has found forms and winners: what is confirmed, remembered and said at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from harness.compare.samplers import Module
from harness.errors import CaseError
from harness.explain.profile import Profile
from harness.records.bisection import Trial
from harness.records.comparison import Verdict
from harness.records.run import PluginEffect
from harness.records.tuning import TunedDispatch
from harness.stages import tune_session, tuning, tuning_changes, tuning_lowering
from harness.stages.tune_session import TuneSession, Untimed
from harness.stages.tuning import Answered, AnswerSearch, tune_model
from harness.stages.tuning_changes import FoundForms
from harness.stages.tuning_lowering import Lowered, Winner
from harness.stats.rule import Rule
from harness.tune.changes import Change
from tests.stages.tuned import ROOT, Scripted, a_change, a_dispatch, found_in, tile

Begin = Callable[..., Scripted]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """A search that has these changes to choose from."""
    monkeypatch.setattr(tuning_lowering, "can_profile", lambda _: False)
    with ExitStack() as stack:

        def begun(*changes: Change, **options: Any) -> Scripted:
            monkeypatch.setattr(tuning_changes, "changes_for", lambda *_, **__: changes)
            return stack.enter_context(Scripted(tmp_path, monkeypatch, **options))

        yield begun


# --- what is remembered ---


def test_a_race_is_played_back_where_the_same_race_and_not_where_others_do(begin: Begin) -> None:
    session = begin()
    session.ms = {"--a": 0.5, "--b": 0.4}
    a, b = session.form("a", "--a"), session.form("b", "--b")

    def leader(**contenders: Any) -> str:
        racers = {name: form.racer for name, form in contenders.items()}
        return session.race("whole", racers, "a", stage="race", seconds=10.0).leader

    leader(a=a)
    before = len(session.raced)
    assert leader(a=a, b=b) == "b", "a longer budget lets others into a race of the same name"
    both = len(session.raced)
    assert both > before
    assert leader(a=a, b=b) == "b"
    assert len(session.raced) == both
    assert leader(a=a, b=session.form("b", "--slow")) == "a", "another program of the same name"
    assert len(session.raced) > both


def test_what_is_confirmed_is_a_program_and_not_its_name(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    session, ratios = begin(), iter((0.5, 0.9))

    def tried(*_: object) -> Trial:
        return Trial(base="", head="", floor=0.01, verdict="improved", ratio=next(ratios))

    monkeypatch.setattr(tune_session, "try_pair", tried)

    def ratio(*flags: str) -> float | None:
        head, start = session.form("with-spec", *flags), session.form("start")
        return TuneSession.confirm(session, head, start, Rule(), 1.0).ratio

    assert [ratio("--a"), ratio("--a"), ratio("--b")] == [0.5, 0.5, 0.9]


# --- the line ---

NOTHING = "net@cpu: nothing that was tried is confirmed faster than stock"


@pytest.mark.parametrize(("without", "isolates"), [((), True), (("isolate",), False), (("*",), False)])
def test_nothing_is_isolated_against_the_users_will(begin: Begin, without: tuple[str, ...], isolates: bool) -> None:
    session = begin(without=without)
    session.code_of = lambda _: ""
    found = tune_model(session)
    assert ("isolated-1" in session.batches) is isolates
    assert (found.answer, found.sentence) == ("nothing beats the start", NOTHING)


CHANNELS_FIRST = PluginEffect(name="isolate", changed=False, matched=0, left_alone={"convolutions": 1})


@pytest.mark.parametrize(("effects", "forms"), [((), 1), ((CHANNELS_FIRST,), 2)])
def test_other_forms_are_isolated_where_the_program_has_convolutions(
    begin: Begin, effects: tuple[PluginEffect, ...], forms: int
) -> None:
    session = begin(*map(a_change, ("--a", "--b", "--c")))
    session.ms, session.effects = {"--a": 0.5, "--b": 0.51, "--c": 0.9}, effects
    session.code_of = lambda way: " ".join(way.flags)
    session.verdicts = {("a", "start"): "unchanged"}
    tune_model(session)
    assert sum("isolated" in batch for batch in session.batches) == forms


@pytest.mark.parametrize(
    ("verdict", "seconds", "sentence"),
    [
        ("unchanged", 0.1, NOTHING),
        ("unchanged", 1.5, f"{NOTHING}; 17 of 21 changes tried; give it 3m"),
        ("inconclusive", 0.1, f"{NOTHING}, though o2 may take 0.500 of its "),
        ("unchanged", 9.0, "net@cpu: the budget of 100 s ended before timing o2; 0 of 21 changes tried; give it 35m"),
    ],
)
def test_the_answer_says_what_was_not_tried_and_what_seems_faster(
    begin: Begin, verdict: Verdict, seconds: float, sentence: str
) -> None:
    others = (a_change(f"--x{number}") for number in range(20))
    session = begin(replace(a_change("--o2"), is_level=True), *others, without=("isolate",), budget=100.0)
    session.compile_s, session.ms = seconds, {"--o2": 0.5}
    session.takes_s = {"--o2": 60.0} if seconds > 2 else {}
    session.verdicts = {("o2", "start"): verdict}
    found = tune_model(session)
    assert found.sentence.startswith(sentence)
    assert found.answer == ("budget too small" if "budget" in sentence else "nothing beats the start")


def test_a_budget_in_which_nothing_was_tried_is_too_small(begin: Begin) -> None:
    assert tune_model(begin(without=("*",), budget=0.01)).answer == "budget too small"


# --- what is confirmed ---


@pytest.fixture
def session(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """A spec's text is the names of its dispatches."""
    names = {4: "a", 8: "b"}
    monkeypatch.setattr(tuning, "spec_of", lambda entries: "".join(names[best.tiles["tile"][0]] for _, best in entries))
    profiled(monkeypatch, {})
    return begin()


def profiled(monkeypatch: pytest.MonkeyPatch, factors: Mapping[str, float]) -> None:
    """What dispatches take in the whole program with a spec, beside without; 0.5 of those that are not named."""

    def turns(base: Module, head: Module, *_: object) -> object:
        names = ("a", "b", "b again", "c")
        before = Profile(calls=1, call_ns=1.0, dispatch_ns=dict.fromkeys(names, 100.0))
        after = replace(before, dispatch_ns={name: 100.0 * factors.get(name, 0.5) for name in names})
        return lambda _: (before, after)

    monkeypatch.setattr(tuning, "ProfiledTurns", turns)


def answer(session: Scripted, single_name: str = "single") -> Answered:
    """Of a search that found `both`, of which `single` is the half that matters, and winners for `a` and `b`."""
    single = replace(session.form(single_name, "--x"), log_ratio=math.log(0.7))
    both = replace(session.form("both", "--x", "--y"), log_ratio=math.log(0.6))
    found = FoundForms(best=both, best_single=single, singles=(), combinations=())
    dispatches = [a_dispatch("a"), a_dispatch("b", places=("b", "b again"))]
    winners = {
        each.name: Winner(dispatch=each, root=ROOT, configuration=tile(size))
        for each, size in zip(dispatches, (4, 8), strict=True)
    }
    tuned = tuple(TunedDispatch(name=name, operation=name, places=1, share=0.4) for name in winners)
    untuned = TunedDispatch(name="c", operation="c", places=1, share=0.1, reason="it only moves data")
    search = AnswerSearch(session, session.form("start"), found, Rule())
    return search.answer(both, Lowered(dispatches=(*tuned, untuned), winners=winners))


def name_of(found: Answered) -> tuple[str, str]:
    """The form that is the answer, and its spec."""
    return ("", found.spec) if found.form is None else (found.form.name, found.spec)


@pytest.mark.parametrize("single", ["single", "tuned"])  # the latter is a plugin's name, too
def test_the_whole_with_its_winners_is_confirmed_beside_the_start_and_the_best_single_change(
    session: Scripted, single: str
) -> None:
    session.ms = {"--x --y ab": 0.5}
    found = answer(session, single)
    assert name_of(found) == ("with-spec", "ab")
    assert {each.name: (each.whole, each.kept) for each in found.dispatches} == {
        "a": (0.5, True),
        "b": (0.5, True),
        "c": (None, False),
    }
    assert {each.chosen for each in found.dispatches[:2]} == {tile(4).text}, "equal operations have one configuration"
    assert [each.base for each in found.confirmations] == ["the start (stock)", f"the best single change ({single})"]
    assert [moment.name for moment in session.moments] == ["with-spec", "with-spec"]


WRONG = Untimed(reason="output 0 differs", wrong=True)
APART, TOGETHER = "in the whole program: output 0 differs", "together with others: output 0 differs"


@pytest.mark.parametrize(
    ("factors", "broken", "form", "reasons"),
    [
        ({"b": 0.9, "b again": 1.09}, (), ("with-spec-kept", "a"), ("", "it does not help the whole")),
        ({"a": 1.0, "b": 1.2, "b again": 1.2}, (), ("both", ""), ("it does not help the whole",) * 2),
        ({}, ("--x --y ab", "--x --y b"), ("with-spec-rest", "a"), ("", APART)),
        ({}, ("--x --y ab",), ("both", ""), (TOGETHER,) * 2),
    ],
    ids=["one does not help", "none helps", "one is wrong", "they are wrong together"],
)
def test_winners_that_the_whole_refutes_are_dropped(
    session: Scripted,
    factors: Mapping[str, float],
    broken: tuple[str, ...],
    form: tuple[str, str],
    reasons: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profiled(monkeypatch, factors)
    session.ms, session.broken = {"--x --y a": 0.5, "--x --y ab": 0.4}, dict.fromkeys(broken, WRONG)
    found = answer(session)
    assert name_of(found) == form
    assert tuple(each.reason for each in found.dispatches[:2]) == reasons
    assert [each.kept for each in found.dispatches[:2]] == [not reason for reason in reasons]


def test_a_device_without_a_profile_keeps_all_winners(session: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise CaseError("measure", "there is no profile")

    monkeypatch.setattr(tuning, "ProfiledTurns", lambda *_: refuse)
    session.ms = {"--x --y ab": 0.5}
    found = answer(session)
    assert (found.spec, {each.whole for each in found.dispatches}) == ("ab", {None})


def test_a_spec_that_changes_nothing_in_the_whole_is_no_variant(session: Scripted) -> None:
    session.code_of = lambda config: " ".join(config.flags)
    found = answer(session)
    nothing = "in the whole program: its tuning spec changes nothing in the whole program"
    assert name_of(found) == ("both", "")
    assert [each.reason for each in found.dispatches] == [nothing, nothing, "it only moves data"]


def test_no_variant_without_its_confirmations(session: Scripted) -> None:
    session.ms = {"--x --y ab": 0.5}
    asked = [(name, base) for name in ("with-spec", "both") for base in ("start", "single")]
    asked.append(("single", "start"))
    verdicts: tuple[Verdict, ...] = ("improved", "inconclusive")
    for combination in product(verdicts, repeat=len(asked)):
        session.verdicts = said = dict(zip(asked, combination, strict=True))
        session.batches.clear()
        found = answer(session)
        bases = {name: {said[pair] for pair in asked if pair[0] == name} for name, _ in asked}
        confirmed = [name for name, verdict in bases.items() if verdict == {"improved"}]
        assert name_of(found) == (confirmed[0] if confirmed else "", "ab" if confirmed[:1] == ["with-spec"] else "")
        if not found.spec:
            a = found_in(found.dispatches, "a")
            assert (a.kept, a.reason) == (False, "the whole program with it was not confirmed faster")
