"""Results folders as harnesses leave them behind, and looks at what became of one."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

from harness.progress import Progress
from harness.records.comparison import Verdict
from harness.report import render
from harness.report.rows import rows_of
from harness.store.files import describe_folder, finished_document
from harness.store.merging import Outcome, merge
from harness.store.run_directory import RunDirectory
from harness.store.work_directory import ComparisonDirectory
from tests.builders import make_header, make_round
from tests.history.made import make_night, store
from tests.report.builders import make_comparison, make_row

FIRST_COMPARISON = datetime(2026, 1, 1, 5, tzinfo=timezone.utc)


def a_run(results: Path, night: int = 0) -> Path:
    """The finished run of a night, with tables."""
    return store(results, make_night(night), rows_of)


def runs(results: Path, count: int) -> list[str]:
    """Finished runs of so many nights; their ids."""
    return [a_run(results, night).name for night in range(count)]


def an_unfinished_run(results: Path, run_id: str = "20260201-000000-small") -> Path:
    """A run of one round that was stopped."""
    with RunDirectory.create(results, make_header(run_id)) as directory:
        directory.append(make_round(0))
    return directory.path


def a_comparison(results: Path, day: int = 0, verdict: Verdict = "unchanged") -> Path:
    """A finished comparison with one round of its own."""
    created = FIRST_COMPARISON + timedelta(days=day)
    with ComparisonDirectory.create(results, "nightly", created) as directory:
        directory.keep_round(make_round(0))
        row = make_row("net/stock@cpu", verdict=verdict, base_value=1e6, head_value=1e6)
        comparison = make_comparison([row], id=directory.path.name, created=created.isoformat())
        directory.finish(render(comparison, "json").encode(), "# A comparison\n", comparison)
    return directory.path


def edit(file: Path, **fields: object) -> None:
    """Change a document on disk."""
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


def finished_as_it_is(folder: Path) -> Path:
    """The folder as if all that is in it now had been there when it was finished."""
    files = describe_folder(folder, [path.name for path in folder.iterdir() if path.is_file()])
    (folder / "finished.json").write_bytes(finished_document(files))
    return folder


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as a disk that has so much room left."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder that is not a lock, with what is in it."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.name.endswith("lock")
    }


def merged(*sources: Path, into: Path) -> list[Outcome]:
    """What becomes of the folders of these places where they are merged."""
    return merge([str(source) for source in sources], str(into), rows_of, str, Progress())


def fates(outcomes: list[Outcome]) -> dict[str, str]:
    """What became of each folder, by name."""
    return {outcome.name: outcome.fate for outcome in outcomes}


def why(outcomes: list[Outcome]) -> str:
    """Why the only folder was not copied."""
    (outcome,) = outcomes
    assert outcome.fate in ("refused", "left out")
    assert "\n" not in outcome.why
    return outcome.why
