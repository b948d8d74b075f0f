"""What a user may call a run: its path, latest, @-1, or a beginning that only one has."""

import json
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.store.folders import find_folder

FOLDERS = {
    "20260101-000000-a": "run.json",
    "20260102-000000-a": "run.json",
    "20260103-000000-b": "run.json",
    "20260104-000000-b-compare": "comparison.json",
    "base": "run.json",
    "base-again": "run.json",  # of which the whole name of the other is the beginning
}


@pytest.fixture(autouse=True)
def _results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder `results`, of whose runs the first and the third are finished."""
    monkeypatch.chdir(tmp_path)
    for name, file in FOLDERS.items():
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / file).touch()
    for name in ("20260101-000000-a", "20260103-000000-b"):
        (tmp_path / "results" / name / "finished.json").touch()
    (tmp_path / "results" / "history").mkdir()
    (tmp_path / "here").mkdir()


@pytest.mark.parametrize(
    ("name", "options", "folder"),
    [
        ("latest", {}, "20260104-000000-b-compare"),
        ("latest", {"kind": "run"}, "20260103-000000-b"),
        ("latest", {"unfinished": True}, "20260102-000000-a"),
        ("latest", {"kind": "comparison"}, "20260104-000000-b-compare"),
        ("@-1", {"kind": "run"}, "20260102-000000-a"),
        ("@-2", {"kind": "run"}, "20260101-000000-a"),
        ("results/@-1", {}, "20260103-000000-b"),
        ("20260104", {}, "20260104-000000-b-compare"),
        ("results/20260102", {}, "20260102-000000-a"),
        ("base", {"kind": "run"}, "base"),
        ("2026010", {"unfinished": True}, "20260102-000000-a"),
    ],
)
def test_names_of_folders(name: str, options: dict[str, object], folder: str) -> None:
    assert find_folder(name, **options) == Path("results") / folder  # type: ignore[arg-type]


@pytest.mark.parametrize(("purpose", "newest"), [("compare", "b"), ("selfcheck", "b"), ("bench", "side"), ("", "side")])
def test_a_side_of_a_comparison_is_nobodys_latest(purpose: str, newest: str) -> None:
    side = Path("results/20260105-000000-side")
    side.mkdir()
    (side / "run.json").write_text(json.dumps({"settings": {"purpose": purpose}}))
    assert find_folder("latest", kind="run").name.endswith(newest)
    assert find_folder("20260105") == side


@pytest.mark.parametrize("name", ["here", "results", "results/base", "no-such-run", "iree==3.12.0", "", "/", "here/x"])
def test_a_path_stays_what_it_is_also_where_nothing_is_there(name: str) -> None:
    assert find_folder(name) == Path(name)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("@-3", {"kind": "run"}, "@-3: results has no run that it could mean; `ls results` shows what is there"),
        (
            "here/latest",
            {},
            "here/latest: here has no run, comparison, explanation or bisect that it could mean; `harness run SUITE` "
            "makes a run",
        ),
        ("@-1", {"unfinished": True}, "@-1: results has no unfinished run that it could mean; `ls results` shows"),
        (
            "2026",
            {},
            "2026: begins the names of 20260101-000000-a, 20260102-000000-a, 20260103-000000-b and 1 more in results; "
            "give more of the one you mean",
        ),
    ],
)
def test_a_name_that_means_none_or_several(name: str, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_folder(name, **options)  # type: ignore[arg-type]
    assert str(caught.value).startswith(sentence)
