"""The line of a search: what it goes through, and what it says at the end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.records.comparison import Verdict
from harness.records.run import PluginEffect
from harness.stages import tuning_changes, tuning_lowering
from harness.stages.tuning import tune_model
from tests.stages.tuned import Scripted, a_change


@pytest.mark.parametrize(("without", "isolates"), [((), True), (("isolate",), False), (("*",), False)])
def test_nothing_is_isolated_against_the_users_will(
    without: tuple[str, ...], isolates: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning_changes, "changes_for", lambda *_, **__: ())
    monkeypatch.setattr(tuning_lowering, "can_profile", lambda _: False)
    with Scripted(tmp_path, monkeypatch, without=without) as underway:
        underway.code_of = lambda _: ""
        found = tune_model(underway)
    assert ("isolated-1" in underway.batches) is isolates
    assert (found.answer, found.sentence) == (
        "nothing beats the start",
        "net@cpu: nothing that was tried is confirmed faster than stock",
    )


CHANNELS_FIRST = PluginEffect(name="isolate", changed=False, matched=0, left_alone={"convolutions": 1})


@pytest.mark.parametrize(("effects", "forms"), [((), 1), ((CHANNELS_FIRST,), 2)])
def test_other_forms_are_isolated_where_the_program_has_convolutions(
    effects: tuple[PluginEffect, ...], forms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning_changes, "changes_for", lambda *_, **__: tuple(map(a_change, ("--a", "--b", "--c"))))
    monkeypatch.setattr(tuning_lowering, "can_profile", lambda _: False)
    with Scripted(tmp_path, monkeypatch) as underway:
        underway.ms, underway.effects = {"--a": 0.5, "--b": 0.51, "--c": 0.9}, effects
        underway.code_of = lambda way: " ".join(way.flags)
        underway.verdicts = {("a", "start"): "unchanged"}
        tune_model(underway)
    assert sum("isolated" in batch for batch in underway.batches) == forms


@pytest.mark.parametrize(
    ("verdict", "seconds", "sentence"),
    [
        ("unchanged", 0.1, "nothing that was tried is confirmed faster than stock"),
        ("unchanged", 1.5, "nothing that was tried is confirmed faster than stock; 17 of 21 changes tried; give it 3m"),
        (
            "inconclusive",
            0.1,
            "nothing that was tried is confirmed faster than stock, though o2 may take 0.500 of its ",
        ),
        ("unchanged", 9.0, "the budget of 100 s ended before timing o2; 0 of 21 changes tried; give it 35m"),
    ],
)
def test_the_answer_says_what_was_not_tried_and_what_seems_faster(
    verdict: Verdict, seconds: float, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = (replace(a_change("--o2"), is_level=True), *(a_change(f"--x{number}") for number in range(20)))
    monkeypatch.setattr(tuning_changes, "changes_for", lambda *_, **__: offered)
    monkeypatch.setattr(tuning_lowering, "can_profile", lambda _: False)
    with Scripted(tmp_path, monkeypatch, without=("isolate",), budget=100.0) as underway:
        underway.compile_s, underway.ms = seconds, {"--o2": 0.5}
        underway.takes_s = {"--o2": 60.0} if seconds > 2 else {}
        underway.verdicts = {("o2", "start"): verdict}
        found = tune_model(underway)
    assert found.sentence.startswith(f"net@cpu: {sentence}")
    assert found.answer == ("budget too small" if "budget" in sentence else "nothing beats the start")


def test_a_budget_in_which_nothing_was_tried_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning_changes, "changes_for", lambda *_, **__: ())
    monkeypatch.setattr(tuning_lowering, "can_profile", lambda _: True)
    with Scripted(tmp_path, monkeypatch, without=("*",), budget=0.01) as underway:
        assert tune_model(underway).answer == "budget too small"
