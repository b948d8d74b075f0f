"""What the first page tells of suites, of changes that came together, and of machines."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.dashboard.comparisons import comparison_facts
from harness.dashboard.encode import moved, spark_path, sparkline
from harness.dashboard.gather import Acknowledgements
from harness.dashboard.overview import controls, lately, machine_changes, machines, suites
from harness.history.changes import Change
from tests.dashboard.made import (
    FIRST,
    Made,
    a_history,
    acknowledged,
    load,
    make_case,
    make_change,
    make_row,
    make_run,
    make_site,
    run_id,
    table,
)


def suites_of(made: Made) -> list[dict[str, Any]]:
    """Every suite of a history."""
    return suites(made.gathered, Acknowledgements(made.gathered))


def first_group(*changes: Change) -> dict[str, Any]:
    """The first group of suite `blocks` where these are all changes."""
    group: dict[str, Any] = suites_of(replace(a_history(), changes=changes))[0]["groups"][0]
    return group


def text_of(page: Path) -> str:
    return " ".join(re.sub("<[^>]*>", " ", page.read_text()).split())


def test_changes_of_one_run_and_cause_are_told_together_with_times_first() -> None:
    suite, second = suites_of(a_history())  # in the order of their last runs
    facts = suite["name"], suite["runs"], suite["last"]["cases"], suite["series"], second["runs"]
    assert facts == ("blocks", 60, 18, 48, 8)
    (group,) = suite["groups"]
    assert (group["first"].first_bad, group["first"].cause, group["about"]) == (
        run_id(40), "compiler", "rdb/stock@cpu, latency",
    )  # fmt: skip
    assert (group["worse"], group["better"], group["more"]) == (3, 0, 0)
    assert group["commits"] is not None
    # Many changes of one run are counted, and five are shown.
    many = first_group(*(make_change(f"m{number}/stock@cpu") for number in range(9)))
    assert (len(many["lines"]), many["more"], many["worse"]) == (5, 4, 9)


def test_commits_are_linked_only_between_two_releases_of_iree() -> None:
    engine = {"toolchain_before": "ONNX Runtime 1.30.0", "toolchain_after": "ONNX Runtime 1.31.1"}
    same = {"toolchain_before": "3.13.0", "toolchain_after": "3.13.0"}
    for facts in ({"peer": "onnxruntime", **engine}, same):
        assert first_group(make_change("rdb/stock@cpu", **facts))["commits"] is None


def test_one_minus_sign_is_used_for_all_figures() -> None:
    group = first_group(make_change("rdb/stock@cpu", ratio=0.826, evidence="moved by -17.4 % on kernel 6.1.0-25"))
    assert group["first"].evidence == "moved by \N{MINUS SIGN}17.4 % on kernel 6.1.0-25"
    assert moved(group["first"].ratio) == "\N{MINUS SIGN}17.4 %"


def test_what_fails_with_the_newest_release_is_told_once_a_cause_with_since_when(tmp_path: Path) -> None:
    runs = [make_run(night, failed=1 if night > 2 else 0) for night in range(6)]
    elsewhere = make_run(7, machine_class="another machine")
    failed = {"status": "failed", "stage": "compile", "message": "iree-compile ran into <it>"}
    cases = [
        make_case(runs[night], case, **({} if night < 3 else failed))
        for case in ("mlp/stock@cpu", "mlp/tiled@cpu")
        for night in range(2, 6)
    ]
    cases += [make_case(elsewhere, f"rdb/v{number:02}@cpu", status="missing") for number in range(15)]
    text = text_of(make_site(tmp_path / "site", Made(runs=[*runs, elsewhere], cases=cases)) / "index.html")
    assert "failed at compile : iree-compile ran into &lt;it&gt; 2 cases : mlp/stock@cpu , mlp/tiled@cpu" in text
    assert "blocks, 3.14.0rc20260106 2026-01-04 02:00 with 3.14.0rc20260104 3" in text
    assert "missing 15 cases : rdb/v00@cpu" in text
    assert "rdb/v11@cpu , and 3 more blocks, 3.14.0rc20260108" in text


def test_the_newest_changes_are_told_and_none_of_the_reference_toolchain() -> None:
    old = make_change("old/stock@cpu", started=FIRST.isoformat(), first_bad=run_id(0))
    reference = make_change("reference/stock@cpu", role="reference")
    made = replace(a_history(), changes=[old, reference, make_change("new/stock@cpu")])
    assert [change.case for change in lately(made.gathered)] == ["new/stock@cpu"]
    quiet = replace(made, changes=[old])  # where nothing changed lately, the newest before that
    assert lately(quiet.gathered) == []
    assert [group["first"].case for group in suites_of(quiet)[0]["groups"]] == ["old/stock@cpu"]


def test_a_size_that_changed_by_less_than_its_floor_is_in_the_list_of_all_changes_alone(tmp_path: Path) -> None:
    sizes = [make_change("rdb/stock@cpu", "module-size", "bytes", direction="more", ratio=ratio, before=1e6,
                         after=1e6 * ratio) for ratio in (1.0006, 1.02)]  # fmt: skip
    counted = make_change("rdb/stock@cpu", "dispatches", "count", direction="more", ratio=1.0005)
    made = replace(a_history(), changes=[*sizes, counted])
    assert lately(made.gathered) == [sizes[1], counted]
    text = (make_site(tmp_path / "site", made) / "index.html").read_text()
    assert "All 3 changes</a>; 1 change of a size by less than 1 % is left out here" in text


def test_changes_that_somebody_knows_of_stand_apart_with_what_was_said(tmp_path: Path) -> None:
    known = acknowledged(a_history(), "rdb/stock@cpu", "acknowledged", "wanted: <it> saves memory")
    site = make_site(tmp_path / "site", known)
    new, apart = text_of(site / "index.html").split("Acknowledged, or marked as fixed")
    assert "▲ 1 worse" in new  # dispatches of mlp/stock@cpu, of which nobody said anything
    assert "rdb/stock@cpu Latency" not in new
    said = "acknowledged by ann on 2026-02-12: wanted: &lt;it&gt; saves memory"
    assert f"rdb/stock@cpu Latency ▲ +8.0 % 2026-02-10 02:00 {said}" in apart
    listed = table(load(site, "changes"))
    states = dict(zip(zip(listed["case"], listed["title"], strict=True), listed["state"], strict=True))
    assert states["rdb/stock@cpu", "Latency"] == states["rdb/stock@cpu", "Dispatch count"] == "acknowledged"
    assert states["mlp/stock@cpu", "Dispatch count"] == "new"


def test_what_was_fixed_and_came_back_is_new_again_with_what_was_said() -> None:
    (group,) = suites_of(acknowledged(a_history(), "rdb/stock@cpu", "fixed", "mended upstream"))[0]["groups"]
    assert group["said"] == "marked as fixed by ann on 2026-02-12: mended upstream; its level is back"


# --- Machines ---


def test_what_became_different_on_a_machine_is_found_and_what_was_not_recorded_is_not() -> None:
    facts: list[dict[str, Any]] = [{"kernel": ""}, {"kernel": "6.1"}, *[{"kernel": "6.2", "cores": 4}] * 2]
    runs = [make_run(night, **own) for night, own in enumerate(facts)]
    found = machine_changes(Made(runs=runs).gathered)
    assert [(change["what"], change["before"], change["after"], change["run"]["run"]) for change in found] == [
        ("cores", "2", "4", run_id(2)),
        ("kernel", "6.1", "6.2", run_id(2)),
    ]


def test_a_machine_has_its_selfchecks_and_the_noise_of_its_last_ten_runs() -> None:
    runs = [make_run(night, noise=0.5 if night < 10 else 0.01) for night in range(40)]
    (machine,) = machines(Made(runs=runs).gathered)
    assert machine["noise"] == pytest.approx(0.01)
    assert [run["selfcheck_when"][:10] for run in machine["selfchecks"]] == ["2026-01-31", "2026-01-01"]


def test_controls_of_all_comparisons_give_a_rate_with_its_bound() -> None:
    rows = [
        make_row(f"m/v{number}@cpu", 1.0, "regressed" if number == 0 else "unchanged", control=True)
        for number in range(100)
    ]
    (found,) = controls(comparison_facts(Made(comparisons=rows).gathered))
    assert (found["rows"], found["flagged"], found["comparisons"]) == (100, 1, 1)
    assert found["bound"] == pytest.approx(0.0545, abs=1e-4)  # Clopper and Pearson's of 1 in 100


def test_a_small_picture_shows_a_step_and_keeps_noise_small() -> None:
    step = sparkline(np.array([100.0] * 50 + [110.0] * 50))
    assert (len(step), step[0], step[-1]) == (48, "0", "Z")
    assert not {"0", "Z"} & set(sparkline(np.array([100.0, 100.5] * 10)))
    paths = [spark_path(letters, 10, 20) for letters in (sparkline(np.array([np.nan])), "0", "0Z")]
    assert paths == ["", "M0.0,20.0L10.0,20.0", "M0.0,20.0L10.0,0.0"]
