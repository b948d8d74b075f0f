"""The line of a search: what it goes through, and what it says at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.stages import tuning_changes, tuning_lowering
from harness.stages.tuning import tune_model
from tests.stages.tuned import Scripted


@pytest.mark.parametrize(("without", "isolates"), [((), True), (("isolate",), False), (("*",), False)])
def test_nothing_is_isolated_against_the_users_will(
    without: tuple[str, ...], isolates: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning_changes, "changes_for", lambda *_, **__: ())
    monkeypatch.setattr(tuning_lowering, "can_profile", lambda _: False)
    with Scripted(tmp_path, monkeypatch, without=without) as underway:
        underway.code_of = lambda _: ""
        found = tune_model(underway)
    assert ("isolated" in underway.batches) is isolates
    assert (found.answer, found.sentence) == (
        "nothing beats the start",
        "net@cpu: nothing that was tried is confirmed faster than stock",
    )


def test_a_budget_in_which_nothing_was_tried_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning_changes, "changes_for", lambda *_, **__: ())
    monkeypatch.setattr(tuning_lowering, "can_profile", lambda _: True)
    with Scripted(tmp_path, monkeypatch, without=("*",), budget=0.01) as underway:
        assert tune_model(underway).answer == "budget too small"
