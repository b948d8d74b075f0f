"""A search whose programs and times are known: the best form, and what is confirmed, remembered and said of it."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from harness.compare.samplers import Module
from harness.errors import CaseError
from harness.explain.profile import Profile
from harness.records.bisection import Trial
from harness.records.comparison import Verdict
from harness.records.tuning import TunedDispatch
from harness.stages import tune_session, tuning, tuning_changes, tuning_lowering
from harness.stages.tune_session import TuneSession, Untimed
from harness.stages.tuning import AnswerSearch, tune_model
from harness.stages.tuning_changes import ChangeSearch
from harness.stages.tuning_lowering import LoweringSearch, Winner
from harness.stats.rule import Rule
from harness.tune.changes import Change
from tests.stages.tuned import ROOT, Scripted, a_change, a_dispatch, found_in, tile

Begin = Callable[..., Scripted]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """A search that has these changes to choose from."""
    monkeypatch.setattr(tuning_lowering, "can_profile", lambda _: False)
    with ExitStack() as stack:

        def begun(*changes: str | Change, **options: Any) -> Scripted:
            offered = tuple(each if isinstance(each, Change) else a_change(each) for each in changes)
            monkeypatch.setattr(tuning_changes, "changes_for", lambda *_, **__: offered)
            return stack.enter_context(Scripted(tmp_path, monkeypatch, **options))

        yield begun


# --- what is remembered ---


def test_what_is_remembered_is_known_by_its_programs_and_not_by_their_names(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, ratios = begin(), iter((0.5, 0.9))
    session.ms = {"--a": 0.5, "--b": 0.4}

    def leader(*flags: str) -> str:
        forms = [session.form(name, flag) for name, flag in zip("ab", flags, strict=False)]
        racers = {form.name: form.racer for form in forms}
        return session.race("whole", racers, "a", stage="race", seconds=9.0, log_ratio=0.0).leader

    raced = [(leader(*flags), len(session.raced)) for flags in (("--a",), ("--a", "--b"), ("--a", "--b"))]
    assert [name for name, _ in raced] == ["a", "b", "b"], "a longer budget lets others into a race of the same name"
    assert raced[0][1] < raced[1][1] == raced[2][1]
    assert leader("--a", "--slow") == "a", "another program of the same name"
    trial = Trial(base="", head="", floor=0.01, verdict="improved")
    monkeypatch.setattr(tune_session, "try_pair", lambda *_: replace(trial, ratio=next(ratios)))
    forms, start = [session.form("with-spec", flag) for flag in ("--a", "--a", "--b")], session.form("start")
    assert [TuneSession.confirm(session, form, start, Rule(), 1.0).ratio for form in forms] == [0.5, 0.5, 0.9]


# --- the line ---

NOTHING = "net@cpu: nothing that was tried is confirmed faster than stock"


@pytest.mark.parametrize(("without", "forms"), [((), 2), (("isolate",), 0)])
def test_forms_are_isolated_until_one_has_something_to_isolate_unless_the_user_does_not_want_it(
    begin: Begin, without: tuple[str, ...], forms: int
) -> None:
    session = begin("--a", "--b", "--c", without=without)
    session.ms = {"--a": 0.5, "--b": 0.51, "--c": 0.9}
    session.code_of = lambda way: " ".join(way.flags)
    session.verdicts = {("a", "start"): "unchanged", ("b", "start"): "unchanged"}
    found = tune_model(session)
    assert sum("isolated" in batch for batch in session.batches) == forms
    assert (found.answer, found.sentence) == ("nothing beats the start", NOTHING)


@pytest.mark.parametrize(
    ("verdict", "seconds", "sentence"),
    [
        ("unchanged", 1.5, f"{NOTHING}; 17 of 21 changes tried; give it 3m"),
        ("inconclusive", 0.1, f"{NOTHING}, though o2 may take 0.500 of its "),
        ("unchanged", 9.0, "net@cpu: the budget of 100 s ended before timing o2; 0 of 21 changes tried; give it 35m"),
    ],
)
def test_the_answer_says_what_was_not_tried_and_what_seems_faster(
    begin: Begin, verdict: Verdict, seconds: float, sentence: str
) -> None:
    others = (f"--x{number}" for number in range(20))
    session = begin(level("--o2"), *others, without=("isolate",), budget=100.0)
    session.compile_s, session.ms = seconds, {"--o2": 0.5}
    session.takes_s = {"--o2": 60.0} if seconds > 2 else {}
    session.verdicts = {("o2", "start"): verdict}
    found = tune_model(session)
    assert found.sentence.startswith(sentence)
    assert found.answer == ("budget too small" if "budget" in sentence else "nothing beats the start")


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


def answer(session: Scripted) -> AnswerSearch:
    """Of a search that found `both`, of which `single` is the half that matters, and winners for `a` and `b`."""
    changes, lowering = ChangeSearch(session, session.form("start")), LoweringSearch(session, session.form("b"), 0)
    changes.best_single = replace(session.form("single", "--x"), log_ratio=math.log(0.7))
    changes.best = replace(session.form("both", "--x", "--y"), log_ratio=math.log(0.6))
    for each, size in ((a_dispatch("a"), 4), (a_dispatch("b", places=("b", "b again")), 8)):
        lowering.winners[each.name] = Winner(dispatch=each, root=ROOT, configuration=tile(size))
        lowering.dispatches.append(TunedDispatch(name=each.name, operation=each.name, places=1, share=0.4))
    untuned = TunedDispatch(name="c", operation="c", places=1, share=0.1, reason="it only moves data")
    lowering.dispatches.append(untuned)
    search = AnswerSearch(session, session.form("start"), changes, Rule())
    search.search(changes.best, lowering)
    return search


def name_of(found: AnswerSearch) -> tuple[str, str]:
    """The form that is the answer, and its spec."""
    return ("", found.spec) if found.form is None else (found.form.name, found.spec)


def reasons(found: AnswerSearch) -> tuple[str, str]:
    """Why the winners for `a` and `b` are not kept; "" of those that are."""
    a, b = (found.dispatches[name] for name in ("a", "b"))
    assert (a.kept, b.kept) == (not a.reason, not b.reason)
    return a.reason, b.reason


def test_the_whole_with_its_winners_is_confirmed_beside_the_start_and_the_best_single_change(
    session: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.ms = {"--x --y ab": 0.5}
    found = answer(session)
    assert name_of(found) == ("with-spec", "ab")
    assert [(each.whole, each.kept) for each in found.dispatches.values()] == [(0.5, True), (0.5, True), (None, False)]
    assert {found.dispatches[name].chosen for name in "ab"} == {tile(4).text}, "equal operations have one configuration"
    assert [each.base for each in found.confirmations] == ["the start (stock)", "the best single change (single)"]
    assert [moment.name for moment in session.moments] == ["with-spec", "with-spec"]

    def refuse(_: int) -> object:
        raise CaseError("measure", "there is no profile")

    monkeypatch.setattr(tuning, "ProfiledTurns", lambda *_: refuse)
    session.batches.clear()
    session.ms = {"--x --y --z ab": 0.4}
    session.code_of = lambda config: f"{' '.join(config.flags)} --z {'ab' if config.plugins else ''}".strip()
    found = answer(session)
    assert (found.spec, reasons(found), found.dispatches["a"].whole) == ("ab", ("", ""), None), "nothing refutes them"


@pytest.mark.parametrize(
    ("factors", "broken", "form", "why"),
    [
        ({"b": 0.9, "b again": 1.09}, (), ("with-spec-kept", "a"), ("", "it does not help the whole")),
        ({"a": 1.0, "b": 1.2, "b again": 1.2}, (), ("both", ""), ("it does not help the whole",) * 2),
        ({}, ("--x --y ab",), ("both", ""), ("in the whole program: output 0 differs",) * 2),
    ],
    ids=["one does not help", "none helps", "they are wrong"],
)
def test_winners_that_the_whole_refutes_are_dropped(
    session: Scripted,
    factors: Mapping[str, float],
    broken: tuple[str, ...],
    form: tuple[str, str],
    why: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profiled(monkeypatch, factors)
    session.ms = {"--x --y a": 0.5, "--x --y ab": 0.4}
    session.broken = dict.fromkeys(broken, Untimed(reason="output 0 differs", wrong=True))
    found = answer(session)
    assert name_of(found) == form
    assert reasons(found) == why


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
            assert reasons(found)[0] == "the whole program with it was not confirmed faster"


# --- the best form ---


def level(flag: str) -> Change:
    """One of the compiler's own levels."""
    return replace(a_change(flag), is_level=True)


def search(session: Scripted) -> ChangeSearch:
    found = ChangeSearch(session, session.form("start"))
    found.search()
    assert found.best_single is None or len(found.best_single.changes) == 1
    return found


def test_what_becomes_of_each_change_alone(begin: Begin) -> None:
    session = begin("--fast", "--slow", "--idle", "--twin", "--broken", "--wrong", "--crash", lowering=False)
    codes = {"--idle": "", "--twin": "--fast"}
    session.code_of = lambda way: " ".join(sorted(codes.get(flag, flag) for flag in way.flags)).strip()
    session.ms = {"--fast": 0.5, "--slow": 1.5, "--fast --slow": 0.75}
    session.broken = {
        "--broken": Untimed(reason="iree-compile stopped after 300 s"),
        "--wrong": Untimed(reason="output 0 differs", wrong=True),
    }
    session.lost = {"--crash": "the worker died"}
    found = search(session)
    assert {name: (each.standing, each.reason) for name, each in found.singles.items()} == {
        "fast": ("best", ""),
        "slow": ("lost", ""),
        "idle": ("inert", "its module has the bytes of start's"),
        "twin": ("inert", "its module has the bytes of fast's"),
        "broken": ("failed", "iree-compile stopped after 300 s"),
        "wrong": ("wrong", "output 0 differs"),
        "crash": ("failed", "the worker died"),
    }
    assert [found.singles[name].ratio for name in ("fast", "slow")] == pytest.approx([0.5, 1.5])
    assert found.best.name == "fast" and found.best is not found.best_single
    assert found.best_single is not None and found.best_single.log_ratio == pytest.approx(math.log(0.5))
    assert found.combinations == [], "what is slow alone is not combined"
    assert session.start_ns == pytest.approx(1e6)


def test_what_compiles_for_long_is_left_out_and_levels_come_first(begin: Begin) -> None:
    session = begin("--slow", level("--o2"), *(f"--x{number}" for number in range(45)), budget=20.0)
    session.ms, session.takes_s = {"--o2": 0.5}, {"--o2": 0.9, "--slow": 5.0}
    found = search(session)
    assert (found.best.name, found.untried_levels) == ("o2", [])
    assert found.singles["slow"].standing == found.singles["x44"].standing == "untried"
    assert (found.singles["slow"].reason, found.singles["x44"].reason) == (
        "late",
        "the time for single changes was over",
    )


def test_effects_that_add_up_are_found_together_and_told_beside_the_start(begin: Begin) -> None:
    session = begin("--a", "--b", "--c")
    session.ms = {"--a": 0.5, "--b": 0.8, "--c": 0.998, "--a --b": 0.4, "--a --b --c": 0.3998, "--a --c": 0.5}
    found = search(session)
    assert found.best.name == "a+b", "a change that gains less than its price is left out, c"
    assert found.best.parts == ("--a", "--b")
    assert math.exp(found.best.log_ratio) == pytest.approx(0.4, rel=0.01)
    assert found_in(found.combinations, "a+b").ratio == pytest.approx(0.4, rel=0.01)
    (best,) = (moment for moment in session.moments if moment.name == "a+b")
    assert best.best and best.ratio == pytest.approx(0.4, rel=0.01)
    assert found.best_single is not None and found.best_single.name == "a"


def test_combinations_that_are_wrong_or_of_known_bytes_or_contradict_each_other_are_not_raced(begin: Begin) -> None:
    session = begin(a_change("--a", ("e",)), "--b", "--c", "--d", a_change("--e", ("a",)))
    session.ms = {"--a": 0.5, "--b": 0.8, "--c": 0.8, "--d": 0.8, "--e": 0.51, "--a --c": 0.4}
    session.broken = {"--a --b": Untimed(reason="output 0 differs", wrong=True)}
    session.code_of = lambda way: {"--a --d": "--a"}.get(code := " ".join(sorted(way.flags)), code)
    found = search(session)
    assert found.best.name == "a+c"
    standings = {each.name: each.standing for each in found.combinations}
    assert (standings["a+b"], standings["a+d"]) == ("wrong", "inert")
    assert not any({"a", "e"} <= set(name.split("+")) for name in standings)


def test_batches_in_vain_end_the_search_and_a_better_one_begins_their_count_anew(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = (frozenset({f"x{number}", f"x{number + 1}"}) for number in range(30))
    monkeypatch.setattr(tuning_changes, "Sampler", lambda _: Mock(ask=lambda: next(pairs, None)))
    session = begin(*(f"--x{number}" for number in range(31)), budget=1000.0)
    session.ms = {"--x10 --x9": 0.9}  # asked for in the third batch
    assert search(session).best.name == "x10+x9"
    assert len([batch for batch in session.batches if "together" in batch]) == 3 + 3
