"""The dashboard as a folder of pages: what it holds, how it takes its place, and the command that makes it."""

import hashlib
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from benchmarks.history.made import Size
from benchmarks.history.made_tables import write_history
from harness.cli import run_command_line
from harness.dashboard.site import MARKER, ONE_EACH, PARTS, POLICY, STATIC, TEMPLATES, replaced
from harness.errors import UsageError
from tests.dashboard.made import EVIL, Made, load, make_site, table
from tests.report.rendered import Elements

ROOT = Path(__file__).parents[2]

_FOLDERS = {"series.html": "series", "run.html": "run", "comparison.html": "comparison"}
_UPLOT = STATIC / "vendor" / "uplot"
# What makes markup or code of a text.
_MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function")
_NOTED = dict(re.findall(r"^\| (\S+) \| ([0-9a-f]{64}) \|$", (_UPLOT / "README.md").read_text(), re.MULTILINE))


def read(path: Path) -> Elements:
    """A page, taken apart."""
    return Elements(path.read_text("utf-8"))


def words(path: Path) -> str:
    return " ".join(read(path).text.split())


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_site(tmp_path_factory.mktemp("dashboard") / "empty", Made(), place="my results")


@pytest.mark.parametrize("which", ["site", "empty"])
def test_every_page_is_well_formed_links_to_what_is_there_and_has_no_code_in_it(
    which: str, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(which)
    names = {path.name for path in TEMPLATES.iterdir()} - {*PARTS, *ONE_EACH.values()}
    assert {path.name for path in folder.glob("*.html")} >= names
    used: set[str] = set()
    for path in folder.glob("*.html"):
        page = read(path)
        assert (page.open, page.wrong) == ([], []), path
        ids = page.values("id")
        assert len(ids) == len(set(ids)), path
        for address in [*page.values("href"), *page.values("src")]:
            used.add(address)
            parts = urlsplit(address)
            if parts.scheme in ("data", "https"):
                assert address == "data:," or address.startswith("https://github.com/iree-org/iree/compare/")
                continue
            assert parts.scheme == ""
            assert not parts.path or (folder / parts.path).is_file(), address
            if parts.query:
                key = parse_qs(parts.query)["id"][0]
                assert (folder / "data" / _FOLDERS[parts.path] / f"{key}.js").is_file(), address
        # No script and no style is in it, and it may have none.
        policies = [given["content"] for _, given in page.elements if "http-equiv" in given]
        assert policies == [POLICY]
        assert all(given.get("src") for tag, given in page.elements if tag == "script")
        assert "style" not in {tag for tag, _ in page.elements}
        assert not {key for _, given in page.elements for key in given if key == "style" or key.startswith("on")}
    assert "unsafe" not in POLICY
    # The site holds nothing unused.
    assert which == "empty" or used >= {
        str(path.relative_to(folder)) for path in (folder / "static").rglob("*") if path.suffix in (".js", ".css")
    }


def test_hostile_names_are_text_on_pages_and_ascii_in_scripts(site: Path) -> None:
    shown = [path.name for path in site.glob("*.html") if EVIL in read(path).text]
    assert {"index.html", "machines.html"} <= set(shown)
    for path in site.glob("*.html"):
        assert EVIL not in path.read_text("utf-8"), path
    for path in (site / "data").rglob("*.js"):
        text = path.read_bytes().decode("ascii")
        assert "<" not in text, path
        assert re.fullmatch(r"[0-9a-f]{16}|runs|series|changes|comparisons|means|rules", path.stem)


def test_pages_tell_what_changed_with_its_cause_whom_to_trust_and_what_each_tuning_found(site: Path) -> None:
    text = words(site / "index.html")
    for part in (
        "2026-02-10 02:00 compiler ▲ 3 worse",
        "The toolchain changed, and the reference toolchain did not move.",
        "▲ +8.0 % 40.00 ms → 43.20 ms step (2026-02-09 to 2026-02-11)",
        "All 4 changes",
        # Notes also tell of experiments, which can be read.
        "Some of what lies in the results folder is left out; the page on machines says what and why.",
        "▲ regressed 8 ▼ improved 1 ? inconclusive 1 ≠ outputs differ 2 ✗ failed 1 = unchanged 1 ≡ identical 1",
    ):
        assert part in text
    assert "6.1.0-25" not in text  # more than thirty days ago
    (file,) = {address for address in read(site / "index.html").values("href") if address.startswith("explanation-")}
    text = words(site / file)
    for part in ("the pipeline goes from CPUDoubleTilingExpert", "IREE 3.10.0 IREE 3.12.0 lowering_config = [1,"):
        assert part in text
    text = words(site / "machines.html")
    for part in ("68 0.78 % 0.42 2026-01-31 02:00 0 of 400 0.75 % 1.2 %", "it stands a year ahead",
                 f"Folder {EVIL} is left out: it is a symlink."):  # fmt: skip
        assert part in text
    assert "0.338 [0.334, 0.342]" in words(site / "tunings.html")
    files = [address for address in read(site / "tunings.html").values("href") if address.startswith("tuning-")]
    assert len(files) == 2
    text = words(site / files[0])
    for part in ("tuned-rdb 790 0.338, the best then", "flag --iree-opt-level=O3", "Configurations of main_dispatch_2",
                 "main_dispatch_9 : it has no tiles"):  # fmt: skip
        assert part in text


def test_the_first_page_begins_with_the_steps_between_releases_and_why_is_two_clicks_away(tmp_path: Path) -> None:
    command = ["dashboard", str(ROOT / "results/published"), "--out", str(tmp_path / "site")]
    assert run_command_line(command) == 0
    text, page = words(tmp_path / "site/index.html"), read(tmp_path / "site/index.html")
    first = text[text.index("Between releases") : text.index("Over runs")]
    assert "rdb/stock@cpu latency, 3.6.0 to 3.7.0 ▲ 5.1" in first
    assert "rdb/stock@cpu goes from 165 ms on IREE 3.6.0 to 798 ms" in first
    assert first.index("3.6.0 to 3.7.0") < first.index("3.11.0 to 3.12.0") < first.index("not explained yet")
    files = [address for address in page.values("href") if address.startswith("explanation-")]
    assert "IREE 3.6.0 IREE 3.7.0" in words(tmp_path / "site" / files[0])  # heads of two columns of IR


def test_an_empty_history_is_told_what_to_do(empty: Path) -> None:
    text = words(empty / "index.html")
    assert "There are no runs in my results yet. Measure" in text
    assert "harness dashboard 'my results' --out site" in text


def test_what_is_vendored_has_its_noted_hash_and_own_scripts_are_small_and_strict() -> None:
    files = [path for path in _UPLOT.iterdir() if path.name != "README.md"]
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files} == _NOTED
    for path in STATIC.glob("*.js"):
        text = path.read_text()
        assert '"use strict";' in text, path
        assert len(text.splitlines()) < 250, path
        assert not _MARKUP.search(text), path


# --- Its place ---


def write(out: Path, text: str = "new") -> None:
    with replaced(out) as folder:
        (folder / "index.html").write_text(text)


def there(folder: Path) -> list[str]:
    """What lies in a folder, but for the lock, which stays."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_a_former_dashboard_is_replaced_whole_and_a_crash_leaves_it_and_nothing_else(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    write(site, "old")
    (site / "gone.html").write_text("of an older harness")
    write(site)
    assert there(site) == [MARKER, "index.html"]
    with pytest.raises(KeyboardInterrupt), replaced(site) as folder:
        (folder / "index.html").write_text("half")
        raise KeyboardInterrupt
    assert (site / "index.html").read_text() == "new"
    assert there(tmp_path) == ["site"]
    why = r"site: cannot be written \(No space left on device\); make room"
    with pytest.raises(UsageError, match=why), replaced(site):
        raise OSError(28, "No space left on device")


def test_what_is_no_dashboard_is_left_alone(tmp_path: Path) -> None:
    for number, (place, message) in enumerate({
        "thesis.tex": "holds other files than a dashboard; name a folder that is empty",
        ".git": "holds other files",
        "": "is no folder",
    }.items()):  # fmt: skip
        site = tmp_path / str(number)
        (site / place).parent.mkdir(exist_ok=True)
        (site / place).write_text("mine")
        with pytest.raises(UsageError, match=message):
            write(site)
        assert (site / place).read_text() == "mine"


def test_a_results_folder_becomes_a_site_and_what_cannot_be_read_or_replaced_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, site, theirs = tmp_path / "results", tmp_path / "site", tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("mine")
    for out, said in ((site, "harness: "), (theirs, f"harness: --out {theirs}: holds other files")):
        assert run_command_line(["dashboard", str(results), "--out", str(out)]) == 2
        assert capsys.readouterr().err.startswith(said)
    assert not site.exists()
    write_history(results, Size(series=16, runs=20))
    assert run_command_line(["dashboard", str(results), "--out", str(site), "--title", "Our <b>nights</b>"]) == 0
    output = capsys.readouterr()
    assert output.out == ""
    assert "Writing pages" in output.err
    assert output.err.endswith(f"{site / 'index.html'}\n")
    html = (site / "index.html").read_text()
    assert "Our &lt;b&gt;nights&lt;/b&gt;" in html
    assert "20 runs, 16 series" in html
    assert set(table(load(site, "series")["series"])["points"]) == {20}
    # No page tells where the results lay.
    pages = [file for file in site.rglob("*") if file.suffix in (".html", ".js")]
    assert not any(str(tmp_path) in file.read_text() for file in pages)
