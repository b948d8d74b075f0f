"""The first view of the first page: models x variants as shades, and geometric means over time."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.dashboard.heat_map import heat_maps
from harness.dashboard.tables import chained_means, mean_panels
from tests.dashboard.made import FIRST, MACHINE, NIGHTS, Made, a_history, make_case, make_point, make_run, run_id, table

A, B = "net", "tiny"


def made_outcomes(*outcomes: tuple[str, str, Any], **facts: Any) -> Made:
    """One run; a case, its status and its ratio to the baseline: `None` has only a time."""
    run = make_run(0, **facts)
    return Made(
        runs=[run],
        cases=[make_case(run, case, status=status, **(_FACTS.get(status, {}))) for case, status, _ in outcomes],
        points=[
            point for case, status, ratio in outcomes if status == "measured" for point in figures(run, case, ratio)
        ],
    )


_FACTS = {
    "failed": {"stage": "compile", "message": "cannot tile"},
    "skipped": {"message": "no such device"},
}


def figures(run: SimpleNamespace, case: str, ratio: float | None) -> list[SimpleNamespace]:
    time = make_point(run, case, "latency", "ns", 2e6 * (ratio or 1.0))
    if ratio is None:
        return [time]
    return [time, make_point(run, case, "latency-vs-baseline", "ratio", ratio, low=ratio * 0.99, high=ratio * 1.01)]


def only_map(made: Made) -> dict[str, Any]:
    ((found,),) = heat_maps(made.gathered).values()
    return found


def texts(found: dict[str, Any]) -> dict[str, list[str]]:
    return {name: [cell.text for cell in cells] for name, cells in found["rows"]}


def test_a_map_has_ratios_failures_and_means_with_their_number_and_leaves_empty_what_is_not_planned() -> None:
    made = made_outcomes(
        (f"{A}/stock@cpu", "measured", None), (f"{B}/stock@cpu", "measured", None),
        (f"{A}/tiled@cpu", "measured", 0.5), (f"{B}/tiled@cpu", "failed", None),
        (f"{A}/wide@cpu", "measured", 1.005), (f"{B}/wide@cpu", "measured", 2.0), (f"{A}/odd@cpu", "skipped", None),
    )  # fmt: skip
    found = only_map(made)
    assert (found["corner"], found["heads"], found["failed"]) == ("Variant", [A, B, "Geometric mean"], 1)
    assert texts(found) == {
        "stock (baseline)": ["2.000 ms", "2.000 ms", ""],
        "odd": ["skipped", "", ""],
        "tiled": ["0.500", "✗ failed", "0.500 of 1"],
        "wide": ["1.005", "2.000", "1.418 of 2"],
    }
    cells = {(row, head): cell for row, own in found["rows"] for head, cell in zip(found["heads"], own, strict=True)}
    assert cells["tiled", A].words == (
        "net, tiled: 0.500 [0.495, 0.505] of the time of stock, 1.000 ms (2026-01-01 02:00 UTC, 3.14.0rc20260101)"
    )
    assert [cells[row, A].shade for row in ("stock (baseline)", "tiled", "wide")] == ["plain", "faster-4", "even"]
    failed = cells["tiled", B]
    assert (failed.shade, failed.run, failed.series) == ("failed", run_id(0), "")
    assert failed.words.startswith("tiny, tiled: failed at compile: cannot tile (")
    assert "skipped: no such device" in cells["odd", A].words
    assert cells["wide", "Geometric mean"].words == "Geometric mean of wide: 1.418 over 2 of 2 models"


def test_the_longer_side_goes_down_and_one_model_has_no_mean() -> None:
    models = [(f"m{number}/{variant}@cpu", "measured", ratio) for number in range(3)
              for variant, ratio in (("stock", None), ("tiled", 0.9))]  # fmt: skip
    down = only_map(made_outcomes(*models))
    assert (down["corner"], down["heads"]) == ("Model", ["stock (baseline)", "tiled"])
    assert texts(down)["Geometric mean"] == ["", "0.900 of 3"]
    single = only_map(made_outcomes(*models[:2]))
    assert (single["corner"], single["heads"]) == ("Variant", ["m0"])


def test_a_case_stays_as_its_last_run_left_it_for_thirty_days_and_bad_runs_do_not_count() -> None:
    nights = {0: "gone/stock@cpu", 20: "kept/stock@cpu", 40: "net/stock@cpu"}
    runs = [make_run(night) for night in nights]
    wrong = make_run(50, clock="it stands a year ahead"), make_run(51, finished=False)
    made = Made(
        runs=[*runs, *wrong],
        cases=[make_case(run, case) for run, case in zip(runs, nights.values(), strict=True)]
        + [make_case(run, "net/stock@cpu", status="failed") for run in wrong],
        points=[point for run, case in zip(runs, nights.values(), strict=True) for point in figures(run, case, None)],
    )
    assert texts(only_map(made)) == {"kept": ["2.000 ms"], "net": ["2.000 ms"]}


# --- Over time ---


def test_a_case_that_comes_or_goes_does_not_move_a_mean_and_without_gaps_it_is_the_plain_one() -> None:
    values = np.array([[1.0, 4.0], [1.1, 4.4], [1.1, 4.4]])
    assert chained_means(values) == pytest.approx([2.0, 2.2, 2.2])
    values[0, 1] = math.nan  # the second case began a night later
    assert chained_means(values) == pytest.approx([2.0, 2.2, 2.2])
    values[:, :] = [[5.0, math.nan], [math.nan, 4.4], [math.nan, 4.4]]  # nothing in common
    assert chained_means(values) == pytest.approx([math.nan, 4.4, 4.4], nan_ok=True)


def test_each_variant_has_a_mean_a_run_with_its_number_of_cases() -> None:
    panel, _ = mean_panels(a_history().gathered)["panels"]
    assert (panel["suite"], panel["device"], panel["machine"]) == ("blocks", "cpu", MACHINE)
    runs = table(panel["runs"])
    assert len(runs["key"]) == NIGHTS
    assert runs["started"][0] == FIRST.isoformat()
    metrics = {
        metric["metric"]: {mean["variant"]: table(mean) for mean in metric["variants"]} for metric in panel["metrics"]
    }
    assert list(metrics) == ["latency-vs-baseline", "latency"]
    assert list(metrics["latency"]) == ["data-tiling", "stock", "winograd", "onnxruntime"]
    tiled = metrics["latency-vs-baseline"]["data-tiling"]
    assert set(tiled["cases"]) == {3}
    assert tiled["mean"][0] == pytest.approx(0.62, rel=0.02)
    assert tiled["mean"][-1] == pytest.approx(0.62 / 1.08 ** (1 / 3), rel=0.02)  # one of three got a slower baseline
