"""A history that is a link, or of which a table is one, is nobody's to change: what it leads to may be anything."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.history.parquet import merge_parts
from harness.progress import Silent
from harness.store.check_history import check_history, stray_files
from harness.store.compact import compact
from harness.store.drop_turns import drop_turns
from harness.store.merge import merge
from harness.store.place import open_place
from tests.archive.made import a_run, contents, fates, runs

NOW = datetime(2027, 1, 1, tzinfo=timezone.utc)


@pytest.fixture(params=["history", "history/points", "history/turns", "history/.lock"])
def linked(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A results folder with a run, of whose history one folder leads to somebody else's files."""
    victim = tmp_path / "victim"
    (victim / "points").mkdir(parents=True)
    for name in ("theirs.parquet", "points/theirs.parquet"):
        (victim / name).write_bytes(b"nothing of ours")
    results = tmp_path / "results"
    a_run(results)
    (results / request.param).parent.mkdir(exist_ok=True)
    (results / request.param).symlink_to(victim)
    return results


def test_nothing_is_deleted_or_written_through_a_link(tmp_path: Path, linked: Path) -> None:
    before = contents(tmp_path)
    attempts = (
        lambda: compact(open_place(str(linked)), Silent()),
        lambda: drop_turns(open_place(str(linked)), timedelta(days=1), NOW, Silent(), dry_run=False),
        lambda: merge_parts(linked, leave_turns_of=["any"]),
        lambda: merge([str(tmp_path / "from")], str(linked), Silent()),
    )
    for attempt in attempts:
        with pytest.raises(RunError) as caught:
            attempt()
        assert "is a symbolic link, which is not followed; put what it leads to in its place" in str(caught.value)
    assert stray_files(linked) == []
    assert contents(tmp_path) == before


def test_verify_tells_it(linked: Path) -> None:
    (finding,) = check_history(linked)
    assert finding.state == "damaged"
    assert "is a symbolic link, which is not followed" in finding.why


def test_a_source_whose_table_is_a_link_is_not_read_through_it(tmp_path: Path) -> None:
    (name,) = runs(tmp_path / "from", 1)
    compact(open_place(str(tmp_path / "from")), Silent())
    points = tmp_path / "from" / "history" / "points"
    points.rename(tmp_path / "elsewhere")
    points.symlink_to(tmp_path / "elsewhere")
    outcomes = merge([str(tmp_path / "from")], str(tmp_path / "into"), Silent())
    assert fates(outcomes) == {name: "copied", "history": "refused"}
