"""`harness plot`: a folder and a kind give a file, and what does not go together is told in a sentence."""

from pathlib import Path
from typing import Any

import pytest

from harness.cli import run_command_line
from harness.cli.plot import PlotOptions
from harness.cli.plot import plot as plot_command
from harness.errors import RunError, UsageError
from harness.plots.canvas import THEMES
from harness.report.data import document_of
from tests.plots.conftest import texts_of
from tests.report.builders import make_quiet_comparison

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = RESULTS / "published" / "esrgan"


@pytest.fixture
def compared(tmp_path: Path) -> Path:
    """A comparison on disk."""
    folder = tmp_path / "20261121-093000-esrgan-compare"
    folder.mkdir()
    (folder / "comparison.json").write_bytes(document_of(make_quiet_comparison()))
    return folder


def plot(path: Path | str, out: Path, **given: Any) -> int:
    return plot_command(PlotOptions(str(path), out=out, **given))


def test_of_all_pictures_each_is_named_on_stdout(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "pictures"
    assert plot(compared, out, kind="all") == 0
    names = ["forest-light.svg", "forest-light.png", "forest-dark.svg", "forest-dark.png"]
    assert capsys.readouterr().out == "".join(f"{out / name}\n" for name in names)
    assert sorted(path.name for path in out.iterdir()) == sorted(names)


def test_a_run_is_drawn_for_a_page_and_for_some_of_its_cases(tmp_path: Path) -> None:
    out = tmp_path / "picture.svg"
    assert plot(PUBLISHED, out, kind="variants", theme="dark", patterns=("rdb/*@cpu",)) == 0
    texts = texts_of(out.read_bytes())
    assert any("share-concat" in text for text in texts)
    assert not any("cpu-mt" in text for text in texts)
    assert THEMES["dark"].ground.encode() in out.read_bytes()


def test_a_series_of_a_folder_of_runs(tmp_path: Path) -> None:
    out = tmp_path / "picture.svg"
    assert plot(PUBLISHED.parent, out, series="rdb/stock@cpu") == 0
    assert "rdb/stock@cpu: median latency" in texts_of(out.read_bytes())
    assert plot(PUBLISHED.parent, tmp_path / "all", series="rdb/stock@cpu/module-size", kind="all") == 0
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [
        f"timeline-{theme}.{picture}" for theme in ("dark", "light") for picture in ("png", "svg")
    ]


@pytest.mark.parametrize(
    ("folder", "given", "said"),
    [
        (PUBLISHED, {"out": Path("x.gif")}, r"--out x\.gif: does not end in \.svg or \.png; name a file that does"),
        (PUBLISHED, {"series": "x"}, "is a run, which can be drawn as roofline, .*; --series is for the folder"),
        (PUBLISHED, {"kind": "timeline"}, "is a run, .*; a timeline is for the folder that holds the runs"),
        (PUBLISHED, {"patterns": ("nobody/*",)}, r"--filter nobody/\* matches no case"),
        (PUBLISHED.parent, {"kind": "forest"}, "is a folder of runs, which can be drawn as timeline"),
        (PUBLISHED.parent, {"series": "x", "top": 3}, "--top is for runs and comparisons"),
        (PUBLISHED.parent, {"series": "nobody"}, "--series nobody: means no series"),
    ],
)
def test_what_does_not_go_together(folder: Path, given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        plot(folder, given.pop("out", tmp_path / "picture.svg"), **given)


def test_errors_name_the_file(compared: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no such folder"):
        plot(tmp_path / "cache", tmp_path / "picture.svg")
    with pytest.raises(RunError, match=r"none/picture\.svg: cannot be written \(No such file or directory\)"):
        plot(compared, tmp_path / "none" / "picture.svg")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="file: is no folder to write to"):
        plot(compared, tmp_path / "file", kind="all")
    (compared / "comparison.json").write_text("{")
    with pytest.raises(RunError, match=r"comparison\.json: is not JSON"):
        plot(compared, tmp_path / "picture.svg")


def test_the_command_line(compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "picture.PNG"
    assert run_command_line(["plot", str(compared), "--kind", "forest", "--top", "2", "--out", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == f"{out}\n"
    assert run_command_line(["plot", str(compared), "--kind", "pie", "--out", str(out)]) == 2
    assert "forest" in capsys.readouterr().err
