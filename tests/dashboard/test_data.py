"""What the pages of series, runs and comparisons load."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dashboard.made import (
    EVIL,
    NIGHTS,
    STEP_AT,
    Made,
    a_history,
    digest,
    make_case,
    make_change,
    make_comparison_key,
    make_point,
    make_row,
    make_run,
    make_site,
    run_id,
    toolchain,
)
from tests.dashboard.reading import load, table


def test_a_series_has_its_points_changes_and_the_reference_beside_it(
    site: Path, key_of_series: Callable[[str], str]
) -> None:
    series = load(site, f"series/{key_of_series('rdb/stock@cpu')}")
    points = table(series["points"])
    runs = table(load(site, "runs"))
    assert len(points["value"]) == NIGHTS
    assert [runs["run"][run] for run in points["run"]][STEP_AT] == run_id(STEP_AT)
    assert points["value"][STEP_AT] == pytest.approx(4.32e7, rel=0.01)
    assert points["low"][0] == pytest.approx(0.99 * points["value"][0], rel=1e-6)
    assert points["high"][0] == pytest.approx(1.015 * points["value"][0], rel=1e-6)
    assert "toolchain" not in points  # they are those of the runs
    assert series["references"] == [digest("blocks rdb/stock@cpu latency reference")]
    (change,) = series["changes"]
    assert runs["run"][change["first_bad"]] == run_id(STEP_AT)
    assert change["worse"] is True


def test_a_change_leads_to_the_comparison_that_is_kept_and_else_tells_how_to_make_it(
    site: Path, key_of_series: Callable[[str], str]
) -> None:
    (kept,) = load(site, f"series/{key_of_series('rdb/stock@cpu')}")["changes"]
    (other,) = load(site, f"series/{key_of_series('conv/stock@cpu')}")["changes"]
    assert kept["comparison"] == make_comparison_key()
    assert other["comparison"] is None
    assert other["command"] == (
        f"harness compare iree=={toolchain(19)} iree=={toolchain(20)} --suite suites/blocks.toml "
        "--filter conv/stock@cpu"
    )


def test_from_nothing_to_something_has_no_ratio(site: Path, key_of_series: Callable[[str, str], str]) -> None:
    (change,) = load(site, f"series/{key_of_series('mlp/stock@cpu', 'dispatches')}")["changes"]
    assert change["ratio"] is None
    assert (change["before"], change["after"]) == (0, 3)


def test_a_series_of_another_engine_has_that_ones_version(site: Path, key_of_series: Callable[[str], str]) -> None:
    points = table(load(site, f"series/{key_of_series('rdb/onnxruntime@cpu')}")["points"])
    assert set(points["toolchain"]) == {"ONNX Runtime 1.31.1"}


def test_a_run_has_its_cases_and_each_figure_beside_that_of_the_run_before(site: Path) -> None:
    run = load(site, f"run/{digest(run_id(STEP_AT))}")
    cases = table(run["cases"])
    names = table(load(site, "series")["names"])
    latency = table(next(metric for metric in run["metrics"] if metric["metric"] == "latency"))
    case_names = [names["case"][name] for name in cases["name"]]
    failed = case_names.index("conv/fused@cpu")
    assert (cases["status"][failed], cases["stage"][failed]) == ("failed", "compile")
    moved = {
        case_names[int(row)]: change
        for row, change in zip(latency["case"], latency["change"], strict=True)
        if row >= 0 and cases["role"][int(row)] == "newest"
    }
    assert moved["rdb/stock@cpu"] == pytest.approx(1.08, abs=0.02)
    assert moved["conv/stock@cpu"] == pytest.approx(1.0, abs=0.02)


def test_commands_are_kept_once_for_all_nights_with_each_ones_toolchain(site: Path) -> None:
    key = digest("blocks\0rdb/stock@cpu")
    assert load(site, f"commands/{key}") == {
        "commands": ["harness export suites/blocks.toml rdb\n# IREE \1\niree-compile m.mlir"]
    }


def test_the_last_runs_commands_stand_on_the_page_of_a_series(site: Path, key_of_series: Callable[[str], str]) -> None:
    repro = load(site, f"series/{key_of_series('rdb/stock@cpu')}")["repro"]
    assert repro == "harness export suites/blocks.toml rdb\n# IREE 3.14.0rc20260301\niree-compile m.mlir"


def test_a_comparison_has_its_rows_and_a_command_for_each_whatever_its_name(site: Path) -> None:
    comparison = load(site, f"comparison/{make_comparison_key()}")
    rows = table(comparison["rows"])
    assert comparison["command"] == comparison["command_of_all"]
    assert comparison["command"] == f"harness compare results/{run_id(STEP_AT - 1)} results/{run_id(STEP_AT)}"
    assert rows["verdict"].count("regressed") == 8
    assert rows["control"].count(1) == 1
    evil = next(at for at, case in enumerate(rows["case"]) if case.startswith(EVIL))
    assert rows["filter"][evil].startswith("'<script>")  # quoted for a shell
    assert rows["ratio"][rows["verdict"].index("identical")] is None


def test_a_comparison_is_repeated_as_it_was_made_and_a_row_of_it_alone(tmp_path: Path) -> None:
    command = "harness compare iree==3.12.0 iree==3.13.0 --suite x.toml --filter 'a/*' --filter=b --row-budget 3"
    site = make_site(tmp_path / "site", Made(comparisons=[make_row("a/stock@cpu", 1.0, "unchanged", command=command)]))
    comparison = load(site, f"comparison/{make_comparison_key()}")
    assert comparison["command"] == "harness compare iree==3.12.0 iree==3.13.0 --suite x.toml --filter 'a/*' " + (
        "--filter=b --row-budget 3"
    )
    assert comparison["command_of_all"] == "harness compare iree==3.12.0 iree==3.13.0 --suite x.toml --row-budget 3"


def test_a_comparison_within_a_run_says_so_and_is_alarming_only_where_compare_would_fail(tmp_path: Path) -> None:
    rows = [
        make_row("a/winograd@cpu", 0.9, "improved", within=True, base_run="one", head_run="one"),
        make_row("a/winograd@cpu", 2.0, "regressed", metric="dispatches", within=True, base_run="one", head_run="one"),
    ]
    site = make_site(tmp_path / "site", Made(runs=[make_run(0)], comparisons=rows))
    (verdict,), (alarming,), (within,) = (
        table(load(site, "comparisons"))[name] for name in ("verdict", "alarming", "within")
    )
    assert (verdict, alarming, within) == ("1 improvement; 1 other figure changed.", 0, 1)
    assert load(site, f"comparison/{make_comparison_key()}")["command"] == "harness compare --within results/one"
    assert "variants against baseline" in (site / "index.html").read_text()


def test_whole_numbers_stay_as_they_are_on_every_page(tmp_path: Path) -> None:
    exact, huge = 19_003_904, 1_234_567_890_123
    points = [make_point(make_run(0), "a/b@cpu", "module-size", "bytes", exact),
              make_point(make_run(1), "a/b@cpu", "module-size", "bytes", huge)]  # fmt: skip
    runs = [make_run(0), make_run(1)]
    changes = [make_change("a/b@cpu", "module-size", "bytes", before=exact, after=huge)]
    cases = [make_case(run, "a/b@cpu") for run in runs]
    site = make_site(tmp_path / "site", Made(runs=runs, points=points, cases=cases, changes=changes))
    assert table(load(site, "series")["series"])["value"] == [huge]
    assert table(load(site, f"series/{points[0].series}")["points"])["value"] == [exact, huge]
    assert table(load(site, f"run/{digest(run_id(1))}")["metrics"][0])["value"] == [huge]
    listed = table(load(site, "changes"))
    assert (listed["before"], listed["after"]) == ([exact], [huge])


def test_a_ratio_to_the_reference_toolchain_has_its_interval_on_the_page_of_its_run(tmp_path: Path) -> None:
    run = make_run(0)
    point = make_point(run, "a/b@cpu", "latency-vs-reference", "ratio", 1.02, low=1.01, high=1.03)
    site = make_site(tmp_path / "site", Made(runs=[run], points=[point], cases=[make_case(run, "a/b@cpu")]))
    metric = table(load(site, f"run/{digest(run_id(0))}")["metrics"][0])
    assert (metric["low"], metric["value"], metric["high"]) == ([1.01], [1.02], [1.03])


def test_figures_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    run = make_run(0)
    odd = [math.nan, math.inf, 5e-324, 1e300]
    points = [make_point(make_run(night), "a/b@cpu", "latency", "ns", value) for night, value in enumerate(odd)]
    made = Made(runs=[make_run(night) for night in range(4)], points=points, cases=[make_case(run, "a/b@cpu")])
    site = make_site(tmp_path / "site", made)
    values = table(load(site, f"series/{points[0].series}")["points"])["value"]
    assert values == [None, None, 5e-324, 1e300]


def test_a_url_of_a_results_folder_stays_one_in_commands(tmp_path: Path) -> None:
    made = a_history()
    same = replace(made, runs=[replace(run, toolchain="3.13.0") for run in made.runs])
    site = make_site(tmp_path / "site", same, place="s3://bucket/our results/")
    changes = load(site, f"series/{digest('blocks conv/stock@cpu latency newest')}")["changes"]
    assert f"'s3://bucket/our results/{run_id(19)}'" in changes[0]["command"]
