"""What regressed latencies are made of, on a comparison's page; what no harness wrote is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.records.comparison import Explained
from harness.report.explanation_words import short_form
from harness.store.files import adapter
from tests.dashboard.made import EVIL, Made, make_comparison_key, make_row, make_run, make_site
from tests.dashboard.reading import load, table
from tests.report.explanations import make_explanation


def test_a_comparisons_page_has_the_parts_of_what_regressed(tmp_path: Path) -> None:
    found = short_form(make_explanation())
    found = replace(found, sentence=f"it takes -3 ms less {EVIL}", parts=found.parts[:2])
    text = adapter(Explained).dump_json(found).decode()
    rows = [
        make_row("rdb/stock@cpu", 1.3, "regressed", explained=text),
        make_row("mm/stock@cpu", 1.2, "regressed", explained="{"),
        make_row("conv/stock@cpu", 1.0, "unchanged"),
    ]
    site = make_site(tmp_path / "site", Made(runs=[make_run(0)], comparisons=rows))
    (explained,) = load(site, f"comparison/{make_comparison_key()}")["explained"]
    parts = table(explained["parts"])
    assert (explained["case"], explained["left_out"]) == ("rdb/stock@cpu", 1)
    assert explained["sentence"].startswith("it takes \N{MINUS SIGN}3 ms less <script>")
    assert (parts["name"], parts["verdict"]) == (["conv_a", "conv_b"], ["improved", "improved"])
    assert parts["base_ns"] == [400_000_000, 300_000_000]


def test_a_comparison_without_any_has_none(tmp_path: Path) -> None:
    rows = [make_row("rdb/stock@cpu", 1.3, "regressed")]
    site = make_site(tmp_path / "site", Made(runs=[make_run(0)], comparisons=rows))
    assert load(site, f"comparison/{make_comparison_key()}")["explained"] == []
