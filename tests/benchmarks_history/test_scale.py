"""The benchmark of large histories, at a size that takes seconds: that it runs, and what it makes and writes."""

from pathlib import Path

from benchmarks.history.made import nights
from benchmarks.history.made_runs import Folders, write_runs
from benchmarks.history.scale import measure_scale
from benchmarks.history.scale_tables import BEGIN, END, write_scale
from harness.report import render
from harness.report.run_report import build_report
from harness.store.run_directory import load_run


def test_run_folders_are_whole_runs_that_can_be_reported(tmp_path: Path) -> None:
    folders = Folders(cases=12, runs=2, roles=("reference", "newest"), generations=3, rounds=2)
    paths = write_runs(tmp_path, folders, report=lambda run: render(run, "markdown", full=True))
    assert [path.name for path in paths] == [night.run for night in nights(2)]
    run = load_run(paths[1])
    assert run.finished
    assert len(run.header.cases) == len(run.builds) == len(run.checks) == len(run.references) == 24
    assert len(run.rounds) == 3 * 3 * 2
    assert build_report(run).summary.measured == 24
    assert "model-0002/data-tiling@cpu" in (paths[1] / "report.md").read_text()


def test_everything_that_is_measured_runs(tmp_path: Path) -> None:
    scale = measure_scale(fractions=[1.0], share=0.001, repeats=1, runs=12)
    document = tmp_path / "history.md"
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_scale(document, scale)
    text = document.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert "| `harness compare --no-remeasure`, no module identical, a fresh process | 10 cases | under 3 s |" in text
    assert all(one.cost.peak_bytes > 0 and one.cost.seconds > 0 for one in scale.measured)
    assert [one.size for one in scale.of("changes")] == [10]
