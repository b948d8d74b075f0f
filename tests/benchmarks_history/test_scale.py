"""The benchmark of large histories, at a size that takes seconds: that it runs, and what it makes and writes."""

from pathlib import Path

from benchmarks.history.scale import measure_scale
from benchmarks.history.scale_tables import BEGIN, END, write_scale


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
