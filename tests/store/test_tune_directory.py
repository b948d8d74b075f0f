"""What is kept of a search, and that one that was killed goes on where it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError, RunError
from harness.report import render
from harness.store.journal import Begun
from harness.store.kinds import TUNING, load_result, tunings_in
from harness.store.search_directory import RECORD_FILE, VARIANT_FILE, TuneDirectory, remembered_in
from tests.report.tunings import make_tuning

BEGUN = Begun(
    created="2026-11-22T03:50:12+00:00",
    machine="a machine",
    options={"model": "rdb", "without": ("tuned*",)},
    command=("harness", "tune"),
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A search in which two pieces of work are done."""
    path = tmp_path / "tuned" / "rdb@cpu"
    with TuneDirectory.create(path, BEGUN) as directory:
        directory.remember("a", {"ratios": (0.5, None)}, 2.0)
        directory.remember("b", "failed", 3.5)
    return path


def kept(directory: TuneDirectory, key: str) -> tuple[Any, float] | None:
    """What is remembered under a key, with its seconds."""
    done = directory.remembered(key)
    return None if done is None else (done.value, done.seconds)


def test_one_that_goes_on_remembers_what_was_done(place: Path) -> None:
    later = replace(BEGUN, created="2026-11-23T03:50:12+00:00")
    with TuneDirectory.create(place, later) as directory:
        assert kept(directory, "a") == ({"ratios": [0.5, None]}, 2.0)
        assert kept(directory, "c") is None
        assert directory.begun.created == BEGUN.created
    assert remembered_in(place, BEGUN.machine)["b"] == "failed"
    assert remembered_in(place, "another machine") == {}
    assert remembered_in(place, BEGUN.machine, {"model": "rdb", "[devices.cpu]": "not written then"})
    assert remembered_in(place, BEGUN.machine, {"model": "mlp"}) == {}


def test_a_line_that_was_cut_short_is_done_again_and_nothing_else(place: Path) -> None:
    record = place / RECORD_FILE
    record.write_bytes(cut := record.read_bytes()[:-4])
    assert [*remembered_in(place, BEGUN.machine)] == ["a"]
    assert record.read_bytes() == cut, "who only looks leaves the line to the harness that may be writing it"
    with TuneDirectory.create(place, BEGUN) as directory:
        assert (kept(directory, "a"), kept(directory, "b")) == (({"ratios": [0.5, None]}, 2.0), None)
        directory.remember("b", "right", 1.0)
    with TuneDirectory.create(place, BEGUN) as directory:
        assert kept(directory, "b") == ("right", 1.0)


def test_a_damaged_line_is_told_in_a_sentence(place: Path) -> None:
    record = place / RECORD_FILE
    record.write_text(f"{{}}\n{record.read_text()}")
    with (
        pytest.raises(RunError, match=r"record\.jsonl: line 1 is damaged \(key: Field required\); remove it"),
        TuneDirectory.create(place, BEGUN),
    ):
        pass
    assert not (place / ".lock").exists()


@pytest.mark.parametrize(
    ("begun", "words"),
    [
        (replace(BEGUN, machine="another"), "is a search of another machine"),
        (replace(BEGUN, options={**BEGUN.options, "model": "mlp"}), "is a search with another model; give"),
    ],
)
def test_another_search_is_not_mixed_with_it(place: Path, begun: Begun, words: str) -> None:
    with pytest.raises(HarnessError, match=words):
        TuneDirectory.create(place, begun)


def test_what_an_earlier_harness_did_not_write_down_is_held_against_nobody_and_known_from_then_on(place: Path) -> None:
    def now(device: str) -> Begun:
        return replace(BEGUN, options={**BEGUN.options, "[devices.cpu]": device})

    TuneDirectory.create(place, now("one core"))
    with pytest.raises(HarnessError, match=r"is a search with another \[devices\.cpu\]; give"):
        TuneDirectory.create(place, now("two cores"))


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(HarnessError, match="holds something else"):
        TuneDirectory.create(tmp_path, BEGUN)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_harnesses_do_not_write_one_search(place: Path) -> None:
    again = TuneDirectory.create(place, BEGUN)
    with (
        TuneDirectory.create(place, BEGUN),
        pytest.raises(RunError, match="another harness is writing this search"),
        again,
    ):
        pass


def test_what_is_written_at_the_end_is_read_again(place: Path) -> None:
    with pytest.raises(RunError, match="has not come to its end"):
        load_result(place)
    found = make_tuning(spec="#" * 200_000)
    with TuneDirectory.create(place, BEGUN) as directory:
        assert directory.write_suite("singles", "name = 'x'").read_text() == "name = 'x'"
        variant = directory.write_or_remove(VARIANT_FILE, "[variants.x]")
        directory.write_or_remove(VARIANT_FILE, "")
        assert not variant.exists()
        directory.finish(render(found, "json"), "# The report", {"race.svg": b"<svg/>"})
    assert load_result(place) == found == TUNING.load(place)
    assert tunings_in(place.parent.parent) == tunings_in(place) == [place]


def test_a_folder_of_several_is_told_from_a_run(place: Path) -> None:
    for folder in (place, place.parent / "mlp@cpu"):
        folder.mkdir(exist_ok=True)
        (folder / TUNING.file).write_text("{}")
    with pytest.raises(RunError, match=r"tuned: is a folder of tunings; give one of them: .*mlp@cpu, .*rdb@cpu$"):
        load_result(place.parent)


def test_a_damaged_document_is_told_in_a_sentence(place: Path) -> None:
    (place / TUNING.file).write_text('{"schema_version": 1}')
    with pytest.raises(
        RunError, match=r"tuning\.json: is damaged at id; call `harness tune` with the same --out again"
    ):
        TUNING.load(place)
