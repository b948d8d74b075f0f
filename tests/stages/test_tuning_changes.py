"""The search for the best form of a program whose times are known: nothing is compiled or timed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.stages import tuning_changes
from harness.stages.tune_session import Untimed
from harness.stages.tuning_changes import ChangeSearch, FoundForms
from harness.tune.changes import Change
from tests.stages.tuned import Scripted, a_change, found_in

Begin = Callable[..., Scripted]


def level(flag: str) -> Change:
    """One of the compiler's own levels."""
    return replace(a_change(flag), is_level=True)


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """A search that has these changes to choose from."""
    with ExitStack() as stack:

        def begun(*changes: str | Change, **options: Any) -> Scripted:
            offered = tuple(each if isinstance(each, Change) else a_change(each) for each in changes)
            monkeypatch.setattr(tuning_changes, "changes_for", lambda *_, **__: offered)
            return stack.enter_context(Scripted(tmp_path, monkeypatch, **options))

        yield begun


def search(session: Scripted) -> FoundForms:
    found = ChangeSearch(session, session.form("start")).search()
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
    assert {each.name: (each.standing, each.reason) for each in found.singles} == {
        "fast": ("best", ""),
        "slow": ("lost", ""),
        "idle": ("inert", "its module has the bytes of start's"),
        "twin": ("inert", "its module has the bytes of fast's"),
        "broken": ("failed", "iree-compile stopped after 300 s"),
        "wrong": ("wrong", "output 0 differs"),
        "crash": ("failed", "the worker died"),
    }
    assert found_in(found.singles, "fast").ratio == pytest.approx(0.5)
    assert found_in(found.singles, "slow").ratio == pytest.approx(1.5)
    assert found.best.name == "fast" and found.best is not found.best_single
    assert found.best_single is not None and found.best_single.log_ratio == pytest.approx(math.log(0.5))
    assert found.combinations == (), "what is slow alone is not combined"
    assert session.start_ns == pytest.approx(1e6)


def test_the_time_for_changes_alone_is_limited(begin: Begin) -> None:
    session = begin(*(f"--x{number}" for number in range(20)), budget=10.0)
    session.compile_s = 0.2
    found = search(session)
    assert list(session.batches)[:2] == ["alone-1", "alone-2"]
    untried = [each for each in found.singles if each.standing == "untried"]
    assert [each.name for each in untried] == ["x16", "x17", "x18", "x19"]
    assert {each.reason for each in untried} == {"the time for single changes was over"}


def test_a_level_that_takes_long_may_take_the_time_of_what_comes_later(begin: Begin) -> None:
    session = begin(level("--o2"), *(f"--x{number}" for number in range(45)), budget=20.0)
    session.ms, session.takes_s = {"--o2": 0.5}, {"--o2": 3.0}
    found = search(session)
    assert found.best.name == "o2" and found.untried_levels == ()


def test_a_plugin_that_finds_nothing_is_not_compiled(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning_changes, "looks_of", lambda _, change: [change.name] * (change.name != "flag"))
    monkeypatch.setattr(tuning_changes, "find_idle", lambda _, looks, __: [name for name in looks if name == "idle"])
    session = begin("--idle", "--busy", "--flag")
    each = found_in(search(session).singles, "idle")
    assert session.batches["alone-1"] == ["busy", "flag"]
    assert (each.standing, each.reason) == ("inert", "it finds nothing to change in the program")


@pytest.mark.parametrize(
    ("budget", "others", "standing", "late_batches", "reason"),
    [
        (100.0, 30, "best", 1, ""),
        (20.0, 30, "untried", 1, "it took more than 1.5 s, and the time for single changes was over"),
        (20.0, 45, "untried", 0, "it took more than 0.5 s, and the time for single changes was over"),
    ],
)
def test_what_takes_long_waits_for_the_others_and_may_take_what_is_left(
    budget: float, others: int, standing: str, late_batches: int, reason: str, begin: Begin
) -> None:
    session = begin("--slow", *(f"--x{number}" for number in range(others)), budget=budget)
    session.ms, session.takes_s = {"--slow": 0.5}, {"--slow": 5.0}
    each = found_in(search(session).singles, "slow")
    assert (each.standing, each.reason) == (standing, reason)
    batches = [name for name in session.batches if "together" not in name]
    assert [name.startswith("late-") for name in batches].count(True) == late_batches
    assert "slow" in session.batches[batches[0]] and (not late_batches or batches[-1].startswith("late-"))


def test_effects_that_add_up_are_found_together_and_told_beside_the_start(begin: Begin) -> None:
    session = begin("--a", "--b", "--c")
    session.ms = {"--a": 0.5, "--b": 0.8, "--c": 0.998, "--a --b": 0.4, "--a --b --c": 0.3998, "--a --c": 0.5}
    found = search(session)
    assert found.best.name == "a+b", "a change that gains less than its price is left out"
    assert found.best.parts == ("--a", "--b")
    assert math.exp(found.best.log_ratio) == pytest.approx(0.4, rel=0.01)
    assert found_in(found.combinations, "a+b").ratio == pytest.approx(0.4, rel=0.01)
    (best,) = (moment for moment in session.moments if moment.name == "a+b")
    assert best.best and best.ratio == pytest.approx(0.4, rel=0.01)
    assert found.best_single is not None and found.best_single.name == "a"


def test_of_forms_that_are_equally_fast_the_simplest_is_the_best(begin: Begin) -> None:
    session = begin("--a", "--b")
    session.ms = {"--a": 0.5, "--b": 0.6, "--a --b": 0.498}
    found = search(session)
    assert found.best.name == "a"
    assert found_in(found.combinations, "a+b").ratio == pytest.approx(0.498)


def test_changes_that_contradict_each_other_are_not_compiled_together(begin: Begin) -> None:
    session = begin(a_change("--a", ("b",)), a_change("--b", ("a",)), a_change("--c"))
    session.ms = {"--a": 0.5, "--b": 0.51, "--c": 0.9}
    search(session)
    together = {name for batch, names in session.batches.items() if "together" in batch for name in names}
    assert "a+c" in together
    assert not any({"a", "b"} <= set(name.split("+")) for name in together)


def asking(*sets: frozenset[str]) -> type:
    """A sampler that asks for these."""

    class Asking:
        def __init__(self, _: object) -> None:
            self._sets = iter(sets)

        def ask(self) -> frozenset[str] | None:
            return next(self._sets, None)

        def tell(self, *_: object) -> None:
            pass

    return Asking


def test_a_combination_that_is_wrong_is_told_and_one_of_known_bytes_is_not_raced(begin: Begin) -> None:
    session = begin("--a", "--b", "--c", "--d")
    session.ms = {"--a": 0.5, "--b": 0.8, "--c": 0.8, "--d": 0.8, "--a --c": 0.4}
    session.broken = {"--a --b": Untimed(reason="output 0 differs", wrong=True)}
    session.code_of = lambda way: {"--a --d": "--a"}.get(code := " ".join(sorted(way.flags)), code)
    found = search(session)
    assert found.best.name == "a+c"
    standings = {each.name: each.standing for each in found.combinations}
    assert standings["a+b"] == "wrong"
    assert standings["a+d"] == "inert"


@pytest.mark.parametrize(("helps", "batches"), [(False, 3), (True, 6)])
def test_batches_in_vain_end_the_search_and_a_better_one_begins_their_count_anew(
    helps: bool, batches: int, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [frozenset({f"x{number}", f"x{number + 1}"}) for number in range(30)]
    monkeypatch.setattr(tuning_changes, "Sampler", asking(*pairs))
    session = begin(*(f"--x{number}" for number in range(31)), budget=1000.0)
    session.ms = {"--x10 --x9": 0.9} if helps else {}  # asked for in the third batch
    found = search(session)
    assert len([batch for batch in session.batches if "together" in batch]) == batches
    assert found.best.name == ("x10+x9" if helps else "start")
