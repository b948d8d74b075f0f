"""Comparisons of a history as pages load them, and what their regressions are made of."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.dashboard.comparisons import compare_command, comparison_facts
from harness.dashboard.site import load_tunings
from harness.history.changes import Change
from harness.records.comparison import Explained
from harness.report.data import document_of
from harness.report.explanation_page import short_form
from harness.store.files import adapter
from harness.store.kinds import TUNING
from tests.builders import Notes
from tests.dashboard.made import (
    EVIL,
    STEP_AT,
    Made,
    load,
    make_change,
    make_comparison_key,
    make_row,
    make_run,
    make_site,
    run_id,
    table,
)
from tests.dashboard.test_site import read
from tests.report.explanations import make_explanation
from tests.report.tunings import MOMENTS, make_nothing, make_tuning

CHANGE = make_change("block/stock@cpu", last_good="one", first_bad="two")
RUNS = "harness compare results/one results/two"
OTHER_RELEASE = "harness compare iree==3.11.0 iree==3.13.0 --suite 'suites/our smoke.toml' --filter block/stock@cpu"


@pytest.mark.parametrize(
    ("change", "releases", "references", "line"),
    [
        # Toolchains that differ are compared on the suite, whatever else the runs had; under one, the two runs are.
        (CHANGE, ("3.11.0", "3.13.0"), (None, None), OTHER_RELEASE),
        (CHANGE, ("3.11.0", "3.13.0"), ("3.12.0", "3.12.0"), OTHER_RELEASE),
        (CHANGE, ("3.13.0", "3.13.0"), (None, None), f"{RUNS} --filter block/stock@cpu"),
        # Where runs have several toolchains, their cases' names end in them; other devices are left out.
        (CHANGE, ("3.13.0", "3.13.0"), ("3.12.0", "3.12.0"), f"{RUNS} --filter 'block/stock@cpu:*'"),
        (CHANGE, ("3.13.0", "3.13.0"), (None, "3.12.0"),
         f"{RUNS} --filter block/stock@cpu --filter 'block/stock@cpu:*'"),
        # What happens to the reference is seen in the two runs.
        (replace(CHANGE, role="reference"), ("3.11.0", "3.13.0"), ("3.12.0", "3.12.0"),
         f"{RUNS} --filter 'block/stock@cpu:*'"),
        (replace(CHANGE, peer="onnxruntime"), ("3.11.0", "3.13.0"), (None, None), ""),
        # What cannot be installed by its name is not asked for.
        *((CHANGE, (release, "3.13.0"), (None, None), f"{RUNS} --filter block/stock@cpu")
          for release in ("3.14.0.dev0+4fcc", "a build", "", "3.13.0; rm")),
        # Runs that are gone are named all the same.
        (make_change("a[1]/stock@cpu", last_good="nobody", first_bad="two"), ("3.11.0", "3.13.0"), (None, None),
         "harness compare results/nobody results/two --filter 'a[[]1]/stock@cpu'"),
    ],
)  # fmt: skip
def test_the_command_that_compares_both_sides_of_a_change(
    change: Change, releases: tuple[str, str], references: tuple[str | None, str | None], line: str
) -> None:
    runs = {
        run: {"run": run, "toolchain": release, "reference": reference, "suite_file": "suites/our smoke.toml"}
        for run, release, reference in zip(("one", "two"), releases, references, strict=True)
    }
    assert compare_command(change, runs, "results/") == line


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
    assert comparison["command"] == command
    assert comparison["command_of_all"] == command.replace(" --filter 'a/*' --filter=b", "")


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
    assert "winograd against the baseline" in (site / "index.html").read_text()


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
        ((), {}, "two against one"),
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


# --- Tunings ---


def test_the_list_leads_to_each_tuning(site: Path) -> None:
    page = read(site / "tunings.html")
    assert "0.338 [0.334, 0.342]" in page.text
    files = [address for address in page.values("href") if address.startswith("tuning-")]
    assert len(files) == 2
    one = read(site / files[0])
    assert (one.open, one.wrong) == ([], [])
    words = " ".join(one.text.split())
    for part in ("tuned-rdb 790 0.338, the best then", "flag --iree-opt-level=O3", "Configurations of main_dispatch_2"):
        assert part in words
    assert "main_dispatch_5 : it does not make the whole program faster" in words


def test_tunings_are_found_in_results_and_out_folders_the_newest_first(tmp_path: Path) -> None:
    new, old = make_tuning(), make_nothing(id="mlp@cpu", model="mlp", created="2026-01-01T00:00:00+00:00")
    written = {
        "results/tuned/mlp@cpu": document_of(old),
        "tuned/rdb@cpu": document_of(replace(new, moments=MOMENTS[:1])),
    }
    for folder, text in {**written, "tuned/x@cpu": b"{"}.items():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / TUNING.file).write_bytes(text)
    notes = Notes()
    found = load_tunings([tmp_path / "tuned", tmp_path / "results"], notes)
    assert [tuning.model for tuning in found] == ["rdb", "mlp"]
    assert len(notes.lines) == 1 and notes.lines[0].endswith("it is left out")
    site = tmp_path / "site"
    command = ["dashboard", str(tmp_path / "results"), "--tuned", str(tmp_path / "tuned"), "--out", str(site)]
    assert run_command_line(command) == 0
    assert len(list(site.glob("tuning-*.html"))) == 2
