"""What pages are made of and load: the heat map, what changed and fails, comparisons, series, runs and tunings."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dashboard.comparisons import compare_command, comparison_facts
from harness.dashboard.encode import column, key_of, moved, script, sparkline
from harness.dashboard.kept import load_kept, side_by_side
from harness.dashboard.overview import heat_maps, lately, suites
from harness.dashboard.tables import chained_means, mean_panels
from harness.history.changes import Change
from harness.records.comparison import Explained
from harness.report.data import document_of
from harness.report.explanation_page import short_form
from harness.store.files import adapter
from harness.store.folders import TUNING
from tests.builders import Notes
from tests.dashboard.made import (
    COMPARISON,
    EVIL,
    FIRST,
    HOSTILE,
    MACHINE,
    NIGHTS,
    STEP_AT,
    Made,
    Row,
    a_history,
    acknowledged,
    decode,
    digest,
    key_of_series,
    load,
    make_case,
    make_change,
    make_point,
    make_row,
    make_run,
    make_site,
    run_id,
    table,
)
from tests.report.explanations import make_explanation
from tests.report.tunings import MOMENTS, make_nothing, make_tuning

# --- Scripts ---


@given(st.lists(st.floats() | st.integers(0, 2**52), max_size=40))
def test_figures_keep_six_digits_and_whole_numbers_all(values: list[float]) -> None:
    for value, read in zip(values, decode(column(values), len(values)), strict=True):
        if not math.isfinite(value):
            assert read is None
        elif value == int(value) and abs(value) < 2**53:
            assert read == value
        else:
            assert read == pytest.approx(value, rel=5.1e-7)


@given(st.text() | st.sampled_from([*HOSTILE, "../../etc/passwd", "00ff00ff00ff00ff\n"]))
def test_a_script_holds_nothing_that_could_end_it_and_files_are_named_in_hex(text: str) -> None:
    written = script("run/0123456789abcdef", {"name": text})
    assert written.isascii()
    assert "<" not in written
    assert "\n" not in written[:-1]
    assert json.loads(written.partition(",")[2][: -len(");\n")]) == {"name": text}
    assert re.fullmatch("[0-9a-f]{16}", key_of(text))
    assert key_of(key_of(text)) == key_of(text)  # an id that is hex stays


# --- The heat map, and means over time ---


def figures(run: Row, case: str, ratio: float | None) -> list[Row]:
    time = make_point(run, case, "latency", "ns", 2e6 * (ratio or 1.0))
    if ratio is None:
        return [time]
    return [time, make_point(run, case, "latency-vs-baseline", "ratio", ratio, low=ratio * 0.99, high=ratio * 1.01)]


def map_of(*outcomes: tuple[str, str, Any]) -> dict[str, Any]:
    """One run; a case, its status and its ratio to the baseline: `None` has only a time."""
    run = make_run(0)
    facts = {"failed": {"stage": "compile", "message": "cannot tile"}, "skipped": {"message": "no such device"}}
    made = Made(
        runs=[run],
        cases=[make_case(run, case, status=status, **(facts.get(status, {}))) for case, status, _ in outcomes],
        points=[one for case, status, ratio in outcomes if status == "measured" for one in figures(run, case, ratio)],
    )
    ((found,),) = heat_maps(made.gathered).values()
    return found


def texts(found: dict[str, Any]) -> dict[str, list[str]]:
    return {name: [cell.text for cell in cells] for name, cells in found["rows"]}


def test_a_map_has_ratios_and_failures_and_leaves_empty_what_is_not_planned() -> None:
    found = map_of(
        ("net/stock@cpu", "measured", None), ("tiny/stock@cpu", "measured", None),
        ("net/tiled@cpu", "measured", 0.5), ("tiny/tiled@cpu", "failed", None),
        ("net/wide@cpu", "measured", 1.005), ("tiny/wide@cpu", "measured", 2.0), ("net/odd@cpu", "skipped", None),
    )  # fmt: skip
    assert (found["corner"], found["heads"], found["failed"]) == ("Variant", ["net", "tiny"], 1)
    assert texts(found) == {
        "stock (baseline)": ["2.000 ms", "2.000 ms"],
        "odd": ["skipped", ""],
        "tiled": ["0.500", "✗ failed"],
        "wide": ["1.005", "2.000"],
    }
    cells = dict(found["rows"])
    assert cells["tiled"][0].words == (
        "net, tiled: 0.500 [0.495, 0.505] of the time of stock, 1.000 ms (2026-01-01 02:00 UTC, 3.14.0rc20260101)"
    )
    assert [cells[row][0].shade for row in ("stock (baseline)", "tiled", "wide")] == ["plain", "faster-4", "even"]
    failed = cells["tiled"][1]
    assert (failed.shade, failed.run, failed.series) == ("failed", run_id(0), "")
    assert failed.words.startswith("tiny, tiled: failed at compile: cannot tile (")
    assert "skipped: no such device" in cells["odd"][0].words
    down = map_of(*((f"m{number}/stock@cpu", "measured", None) for number in range(3)))
    assert (down["corner"], down["heads"]) == ("Model", ["stock"])  # the longer side goes down


def test_a_case_stays_as_its_last_run_left_it_for_thirty_days_and_bad_runs_do_not_count() -> None:
    nights = {0: "gone/stock@cpu", 20: "kept/stock@cpu", 40: "net/stock@cpu"}
    runs = [make_run(night) for night in nights]
    wrong = make_run(50, clock="it stands a year ahead"), make_run(51, finished=False)
    made = Made(
        runs=[*runs, *wrong],
        cases=[make_case(run, case) for run, case in zip(runs, nights.values(), strict=True)]
        + [make_case(run, "net/stock@cpu", status="failed") for run in wrong],
        points=[one for run, case in zip(runs, nights.values(), strict=True) for one in figures(run, case, None)],
    )
    ((found,),) = heat_maps(made.gathered).values()
    assert texts(found) == {"kept": ["2.000 ms"], "net": ["2.000 ms"]}


def test_each_variant_has_a_mean_a_run_which_a_case_that_comes_or_goes_does_not_move() -> None:
    for values, means in (
        ([[1.0, 4.0], [1.1, 4.4], [1.1, 4.4]], [2.0, 2.2, 2.2]),
        ([[1.0, math.nan], [1.1, 4.4], [1.1, 4.4]], [2.0, 2.2, 2.2]),  # the second case began a night later
        ([[5.0, math.nan], [math.nan, 4.4], [math.nan, 4.4]], [math.nan, 4.4, 4.4]),  # nothing in common
    ):
        assert chained_means(pd.DataFrame(values)).tolist() == pytest.approx(means, nan_ok=True)
    panel, _ = mean_panels(a_history().gathered)["panels"]
    assert (panel["suite"], panel["device"], panel["machine"]) == ("blocks", "cpu", MACHINE)
    assert len(table(panel["runs"])["key"]) == NIGHTS
    metrics = {
        metric["metric"]: {mean["variant"]: table(mean) for mean in metric["variants"]} for metric in panel["metrics"]
    }
    assert list(metrics) == ["latency-vs-baseline", "latency"]
    assert list(metrics["latency"]) == ["data-tiling", "stock", "winograd", "onnxruntime"]
    tiled = metrics["latency-vs-baseline"]["data-tiling"]
    assert set(tiled["cases"]) == {3}
    assert tiled["mean"][-1] == pytest.approx(0.62 / 1.08 ** (1 / 3), rel=0.02)  # one of three got a slower baseline


# --- What changed, what fails, whom to trust ---


def first_group(*changes: Change) -> dict[str, Any]:
    """The first group of suite `blocks` where these are all changes."""
    group: dict[str, Any] = suites(replace(a_history(), changes=changes).gathered)[0]["groups"][0]
    return group


def text_of(page: Path) -> str:
    return " ".join(re.sub("<[^>]*>", " ", page.read_text()).split())


def test_changes_of_one_run_and_cause_are_told_together_with_times_first() -> None:
    suite, second = suites(a_history().gathered)  # in the order of their last runs
    facts = suite["name"], suite["runs"], suite["last"]["cases"], suite["series"], second["runs"]
    assert facts == ("blocks", 60, 18, 48, 8)
    (group,) = suite["groups"]
    found = group["first"].first_bad, group["first"].cause, group["about"], group["worse"], group["better"]
    assert found == (run_id(40), "compiler", "rdb/stock@cpu, latency", 3, 0)
    assert group["commits"] is not None
    # Many changes of one run are counted, and five are shown.
    many = first_group(*(make_change(f"m{number}/stock@cpu") for number in range(9)))
    assert (len(many["lines"]), many["more"], many["worse"]) == (5, 4, 9)
    # Commits are linked only between two releases of IREE, and one minus sign is used for all figures.
    engine = {"toolchain_before": "ONNX Runtime 1.30.0", "toolchain_after": "ONNX Runtime 1.31.1"}
    same = {"toolchain_before": "3.13.0", "toolchain_after": "3.13.0"}
    for given_facts in ({"peer": "onnxruntime", **engine}, same):
        assert first_group(make_change("rdb/stock@cpu", **given_facts))["commits"] is None
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


def test_the_newest_changes_are_told_but_for_the_references_and_sizes_below_their_floor(tmp_path: Path) -> None:
    old = make_change("old/stock@cpu", started=FIRST.isoformat(), first_bad=run_id(0))
    reference = make_change("reference/stock@cpu", role="reference")
    sizes = [make_change("rdb/stock@cpu", "module-size", "bytes", direction="more", ratio=ratio, before=1e6,
                         after=1e6 * ratio) for ratio in (1.0006, 1.02)]  # fmt: skip
    counted = make_change("rdb/stock@cpu", "dispatches", "count", direction="more", ratio=1.0005)
    made = replace(a_history(), changes=[old, reference, *sizes, counted])
    assert lately(made.gathered) == [sizes[1], counted]
    text = (make_site(tmp_path / "site", made) / "index.html").read_text()
    assert "All 5 changes</a>; 1 change of a size by less than 1 % is left out here" in text


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


def test_a_small_picture_shows_a_step_and_keeps_noise_small() -> None:
    step = sparkline(np.array([100.0] * 50 + [110.0] * 50))
    assert (len(step), step[0], step[-1]) == (48, "0", "Z")
    assert sparkline(np.array([100.0] * 30 + [110.0] * 30)) == "0" * 24 + "Z" * 24, "a half of the time is one here too"
    assert not {"0", "Z"} & set(sparkline(np.array([100.0, 100.5] * 10)))
    assert sparkline(np.array([np.nan])) == ""


# --- Series and runs ---


def test_a_series_has_its_points_changes_and_the_reference_beside_it(site: Path) -> None:
    series = load(site, f"series/{key_of_series('rdb/stock@cpu')}")
    points = table(series["points"])
    runs = table(load(site, "runs"))
    assert len(points["value"]) == NIGHTS
    assert [runs["run"][run] for run in points["run"]][STEP_AT] == run_id(STEP_AT)
    assert points["value"][STEP_AT] == pytest.approx(4.32e7, rel=0.01)
    assert points["low"][0] == pytest.approx(0.99 * points["value"][0], rel=1e-6)
    assert "toolchain" not in points  # they are those of the runs
    assert series["references"] == [key_of_series("rdb/stock@cpu", role="reference")]
    assert series["repro"] == "harness export suites/blocks.toml rdb\n# IREE 3.14.0rc20260301\niree-compile m.mlir"
    (change,) = series["changes"]
    assert runs["run"][change["first_bad"]] == run_id(STEP_AT)
    assert change["worse"] is True
    # From nothing to something there is no ratio; a series of another engine has that one's version.
    (change,) = load(site, f"series/{key_of_series('mlp/stock@cpu', 'dispatches')}")["changes"]
    assert (change["ratio"], change["before"], change["after"]) == (None, 0, 3)
    points = table(load(site, f"series/{key_of_series('rdb/onnxruntime@cpu')}")["points"])
    assert set(points["toolchain"]) == {"ONNX Runtime 1.31.1"}


# --- Comparisons ---


CHANGE = make_change("block/stock@cpu", last_good="one", first_bad="two")
RUNS = "harness compare results/one results/two --filter block/stock@cpu --filter 'block/stock@cpu:*'"
OTHER_RELEASE = "harness compare iree==3.11.0 iree==3.13.0 --suite 'suites/our smoke.toml' --filter block/stock@cpu"


@pytest.mark.parametrize(
    ("change", "releases", "line"),
    [
        # Toolchains that differ are compared on the suite; under one, the two runs are.
        (CHANGE, ("3.11.0", "3.13.0"), OTHER_RELEASE),
        (CHANGE, ("3.13.0", "3.13.0"), RUNS),
        # What happens to the reference is seen in the two runs.
        (replace(CHANGE, role="reference"), ("3.11.0", "3.13.0"), RUNS),
        (replace(CHANGE, peer="onnxruntime"), ("3.11.0", "3.13.0"), ""),
        # What cannot be installed by its name is not asked for.
        *((CHANGE, (release, "3.13.0"), RUNS) for release in ("3.14.0.dev0+4fcc", "a build", "", "3.13.0; rm")),
        # Runs that are gone are named all the same.
        (make_change("a[1]/stock@cpu", last_good="nobody", first_bad="two"), ("3.11.0", "3.13.0"),
         "harness compare results/nobody results/two --filter 'a[[]1]/stock@cpu' --filter 'a[[]1]/stock@cpu:*'"),
    ],
)  # fmt: skip
def test_the_command_that_compares_both_sides_of_a_change(change: Change, releases: tuple[str, str], line: str) -> None:
    runs = {
        run: {"run": run, "toolchain": release, "suite_file": "suites/our smoke.toml"}
        for run, release in zip(("one", "two"), releases, strict=True)
    }
    assert compare_command(change, runs, "results/") == line


def test_a_comparison_has_its_rows_and_the_command_that_made_it_or_that_of_the_two_runs(
    site: Path, tmp_path: Path
) -> None:
    comparison = load(site, f"comparison/{digest(COMPARISON)}")
    rows = table(comparison["rows"])
    assert comparison["command"] == f"harness compare results/{run_id(STEP_AT - 1)} results/{run_id(STEP_AT)}"
    assert (rows["verdict"].count("regressed"), rows["control"].count(1)) == (8, 1)
    assert rows["ratio"][rows["verdict"].index("identical")] is None
    within = {"within": True, "base_run": "one", "head_run": "one"}
    rows_within = [make_row("a/winograd@cpu", 0.9, "improved", **within),
                   make_row("a/winograd@cpu", 2.0, "regressed", metric="dispatches", **within)]  # fmt: skip
    other = make_site(tmp_path / "site", Made(runs=[make_run(0)], comparisons=rows_within))
    listed = table(load(other, "comparisons"))
    facts = [listed[name][0] for name in ("verdict", "alarming", "within")]
    assert facts == ["1 improvement; 1 other figure changed.", 0, 1]
    assert load(other, f"comparison/{digest(COMPARISON)}")["command"] == "harness compare --within results/one"
    assert "winograd against the baseline" in (other / "index.html").read_text()


@pytest.mark.parametrize(
    ("toolchains", "facts", "title"),
    [
        (("3.12.0", "3.13.0"), {}, "IREE 3.13.0 against IREE 3.12.0"),
        (("3.13.0", "3.13.0"), {}, "two against one"),
        # The sides of two releases are experiments, of which no run is in the history; their command line names them.
        ((), {"command": "harness compare iree==3.11.0 iree==3.13.0 --suite x.toml"},
         "IREE 3.13.0 against IREE 3.11.0"),
        ((), {"base_commit": "9b05f1760b" * 4, "head_commit": "0a12f9c0ff" * 4},
         "commit 0a12f9c0ff against commit 9b05f1760b"),
    ],
)  # fmt: skip
def test_a_comparison_is_called_what_it_compares(
    toolchains: tuple[str, ...], facts: dict[str, str], title: str
) -> None:
    runs = [make_run(night, run=run, toolchain=release, revision="", reference=None)
            for night, (run, release) in enumerate(zip(("one", "two"), toolchains, strict=False))]  # fmt: skip
    row = make_row("a/stock@cpu", 1.0, "unchanged", base_run="one", head_run="two", **facts)
    (found,) = comparison_facts(Made(runs=runs, comparisons=[row]).gathered)
    assert found["title"] == title


def test_a_comparisons_page_says_what_regressions_are_made_of(tmp_path: Path) -> None:
    found = replace(short_form(make_explanation()), sentence=f"it takes -3 ms less {EVIL}")
    rows = [
        make_row("rdb/stock@cpu", 1.3, "regressed", explained=adapter(Explained).dump_json(found).decode()),
        make_row("mm/stock@cpu", 1.2, "regressed", explained="{"),
    ]
    site = make_site(tmp_path / "site", Made(runs=[make_run(0)], comparisons=rows))
    explained = load(site, f"comparison/{digest(COMPARISON)}")["explained"]
    assert explained == [{"case": "rdb/stock@cpu", "sentence": f"it takes \N{MINUS SIGN}3 ms less {EVIL}"}]


def test_tunings_come_the_newest_first_and_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    new, old = make_tuning(), make_nothing(id="mlp@cpu", model="mlp", created="2026-01-01T00:00:00+00:00")
    written = {
        "results/tuned/mlp@cpu": document_of(old),
        "tuned/rdb@cpu": document_of(replace(new, moments=MOMENTS[:1])),
    }
    for folder, content in {**written, "tuned/x@cpu": b"{"}.items():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / TUNING.file).write_bytes(content)
    notes = Notes()
    found = load_kept(TUNING, [tmp_path / name for name in ("tuned/x@cpu", *written)], notes)
    assert [tuning.model for tuning in found] == ["rdb", "mlp"]
    assert len(notes.lines) == 1 and notes.lines[0].endswith("it is left out")


_LINES = st.lists(st.tuples(st.sampled_from([" ", "-", "+"]), st.text("ab [],18%", min_size=1)), max_size=12)


@given(_LINES)
def test_a_difference_in_two_columns_has_every_line_of_both_sides_in_its_order(lines: list[tuple[str, str]]) -> None:
    rows = list(side_by_side("\n".join(["@@", *(f"{mark} {text}" for mark, text in lines)])))
    assert rows[0][0] == "gap"
    columns = {"-": [row[1] for row in rows[1:]], "+": [row[2] for row in rows[1:]]}
    for own, lines_of_side in columns.items():
        shown = ["".join(text for text, _ in line) for line in lines_of_side]
        assert [text for text in shown if text] == [text for mark, text in lines if mark in (" ", own)]


def test_two_versions_of_a_line_stand_beside_each_other_with_the_words_that_differ() -> None:
    changed = "- tiles = [1, 1]\n- gone()\n+ tiles = [8, 8]\n  end"
    (first, second, third) = side_by_side(changed)
    assert [text for text, differs in first[1] if differs] == ["1", "1"]
    assert [text for text, differs in first[2] if differs] == ["8", "8"]
    assert (second, third[0]) == (("other", [("gone()", False)], [("", False)]), "same")
