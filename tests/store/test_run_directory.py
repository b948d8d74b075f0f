"""Run directories: written record by record, read back as they were, and closed for good."""

from __future__ import annotations

import json
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from harness.errors import RunError
from harness.records.case import Case, Gate, VariantGroup
from harness.records.run import (
    Build,
    Check,
    EncodedTensor,
    Failure,
    Header,
    IrCounts,
    Lost,
    ModelRecord,
    Peak,
    Reference,
    Round,
    Run,
    Work,
)
from harness.store.run_directory import Record, RunDirectory, load_run, new_run_id
from tests.builders import make_header, make_round

_finite = st.floats(allow_nan=False, allow_infinity=False)
_plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | _finite | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
_sections = st.dictionaries(st.text(), st.dictionaries(st.text(), _plain), max_size=3)
_failures = st.none() | st.from_type(Failure)
_counts = st.none() | st.integers()

st.register_type_strategy(EncodedTensor, st.builds(EncodedTensor, worst_ratio=_finite))
RECORDS: dict[type[Any], st.SearchStrategy[Any]] = {
    Build: st.from_type(Build),
    IrCounts: st.from_type(IrCounts),
    Check: st.builds(
        Check,
        relative_tolerance=_finite,
        absolute_tolerance=_finite,
        max_absolute=st.none() | _finite,
        max_relative=st.none() | _finite,
        failure=_failures,
    ),
    Reference: st.builds(
        Reference,
        real_time_ns=st.lists(_finite).map(tuple),
        host_peak_bytes=_counts,
        device_peak_bytes=_counts,
        load_1min=st.none() | _finite,
        failure=_failures,
    ),
    Round: st.from_type(Round),
    Lost: st.from_type(Lost),
    Work: st.from_type(Work),
    Peak: st.builds(
        Peak,
        operations_per_s=st.none() | _finite,
        bytes_per_s=st.none() | _finite,
        measured=st.dictionaries(st.text(), _finite),
        failure=_failures,
    ),
}
_headers = st.builds(
    make_header,
    suite_description=st.text(),
    command=st.lists(st.text()).map(tuple),
    models=st.lists(st.from_type(ModelRecord), max_size=2).map(tuple),
    cases=st.lists(st.from_type(Case), max_size=2).map(tuple),
    groups=st.lists(st.from_type(VariantGroup), max_size=2).map(tuple),
    settings=st.dictionaries(st.text(), _plain),
    environment=_sections,
    floors=st.dictionaries(st.text(), _finite),
    gates=st.lists(st.builds(Gate, relative=st.none() | _finite, absolute=st.none() | _finite), max_size=2).map(tuple),
)

BUILD = Build(case="net/stock@cpu", command=("iree-compile",), cache_key="ab")
COUNTS = IrCounts(case="net/stock@cpu", counts={"flow/flow.dispatch": 3, "flow/executables:linalg.*": 0})
CHECK = Check(case="net/stock@cpu", against="", command=(), relative_tolerance=1e-4, absolute_tolerance=0.0)
REFERENCE = Reference(case="net/stock@cpu", command=(), real_time_ns=(1.0, 2.0))
LOST = Lost(case="net/fast@cpu", generation=1, failure=Failure(stage="measure", message="the worker died"))


def files(path: Path) -> list[str]:
    return sorted(one.relative_to(path).as_posix() for one in path.rglob("*") if one.is_file())


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: str(kind.__name__))
@given(data=st.data())
def test_every_kind_of_record_comes_back_as_it_was(kind: type[Any], data: st.DataObject) -> None:
    records = data.draw(st.lists(RECORDS[kind], min_size=1, max_size=3))
    with tempfile.TemporaryDirectory() as results:
        with RunDirectory.create(Path(results), make_header()) as directory:
            for record in records:
                directory.append(record)
        run = load_run(directory.path)
    read: dict[type[Any], tuple[Record, ...]] = {
        Build: run.builds,
        IrCounts: run.ir,
        Check: run.checks,
        Reference: run.references,
        Round: run.rounds,
        Lost: run.lost,
        Work: run.work,
        Peak: run.peaks,
    }
    assert read.pop(kind) == tuple(records)
    assert not any(read.values())


@given(header=_headers)
def test_a_header_comes_back_as_it_was(header: Header) -> None:
    adapter = TypeAdapter(Header)
    assert adapter.validate_json(adapter.dump_json(header)) == header


def test_a_run_that_is_older_than_floors_and_gates_has_none(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path, make_header(floors={"latency": 0.02}))
    stored = json.loads((directory.path / "run.json").read_text())
    assert (stored.pop("floors"), stored.pop("gates")) == ({"latency": 0.02}, [])
    (directory.path / "run.json").write_text(json.dumps(stored))
    assert load_run(directory.path).header == make_header()


def test_a_run_that_is_older_than_plugins_effects_and_op_counts_has_none(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.append(BUILD)
    file = directory.path / "builds.jsonl"
    stored = json.loads(file.read_text())
    assert (stored.pop("rewritten"), stored.pop("files"), stored.pop("effects")) == (False, [], [])
    file.write_text(json.dumps(stored) + "\n")
    run = load_run(directory.path)
    assert (run.builds, run.ir) == ((BUILD,), ())


def test_a_new_run_has_a_header_and_nothing_else(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "deep" / "results", make_header())
    assert files(directory.path) == ["run.json"]
    assert load_run(directory.path) == Run(header=make_header())


def test_records_come_back_in_the_order_they_were_written(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        for record in (BUILD, COUNTS, CHECK, make_round(0), REFERENCE, LOST, make_round(1)):
            directory.append(record)
    assert load_run(directory.path) == Run(
        header=make_header(),
        builds=(BUILD,),
        ir=(COUNTS,),
        checks=(CHECK,),
        references=(REFERENCE,),
        rounds=(make_round(0), make_round(1)),
        lost=(LOST,),
    )


def test_each_record_is_one_line_of_json(tmp_path: Path) -> None:
    failure = Failure(stage="compile", message="no", stderr="two\nlines\r\nand \u2028 more")
    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.append(Build(case="a", command=(), cache_key="", failure=failure))
        directory.append(BUILD)
    content = (directory.path / "builds.jsonl").read_bytes()
    assert content.endswith(b"\n")
    first, second = content.removesuffix(b"\n").split(b"\n")
    assert json.loads(first)["failure"]["stderr"] == failure.stderr
    assert json.loads(second)["case"] == "net/stock@cpu"


def test_a_record_is_on_disk_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        for number in range(3):
            directory.append(make_round(number))
            assert len(load_run(directory.path).rounds) == number + 1


def test_runs_of_the_same_second_have_names_of_their_own(tmp_path: Path) -> None:
    directories = [RunDirectory.create(tmp_path, make_header("now-small")) for _ in range(4)]
    names = ["now-small", "now-small-2", "now-small-3", "now-small-4"]
    assert [directory.path.name for directory in directories] == names
    assert [directory.header.id for directory in directories] == names
    assert [load_run(directory.path).header.id for directory in directories] == names


def test_a_run_id_is_utc_and_sorts_by_time() -> None:
    east = timezone(timedelta(hours=9))
    early, late = datetime(2026, 11, 21, 3, 50, 12, tzinfo=east), datetime(2026, 11, 20, 20, 0, tzinfo=timezone.utc)
    assert new_run_id("esrgan", early) == "20261120-185012-esrgan"
    assert sorted([new_run_id("b", late), new_run_id("z", early)]) == [new_run_id("z", early), new_run_id("b", late)]


def test_finishing_writes_the_report_of_the_finished_run_and_drops_the_lock(tmp_path: Path) -> None:
    seen: list[Run] = []

    def report(run: Run) -> str:
        seen.append(run)
        return f"{len(run.rounds)} rounds, ü\n"

    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.append(make_round(0))
        directory.finish(report)
    assert files(directory.path) == ["finished.json", "report.md", "rounds.jsonl", "run.json"]
    assert (directory.path / "report.md").read_text(encoding="utf-8") == "1 rounds, ü\n"
    assert seen == [load_run(directory.path)]
    assert seen[0].finished


def test_a_report_that_fails_leaves_the_run_open(tmp_path: Path) -> None:
    def report(_: Run) -> str:
        raise ZeroDivisionError

    with RunDirectory.create(tmp_path, make_header()) as directory, pytest.raises(ZeroDivisionError):
        directory.finish(report)
    assert files(directory.path) == ["run.json"]
    RunDirectory.resume(directory.path)


def test_a_finished_run_is_not_resumed(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.finish(lambda _: "")
    before = {name: (directory.path / name).read_bytes() for name in files(directory.path)}
    sentence = f"{directory.path}: this run is finished and is not written again; start a new one"
    for attempt in (lambda: RunDirectory.resume(directory.path), directory.__enter__):
        with pytest.raises(RunError) as caught:
            attempt()
        assert str(caught.value) == sentence
    assert {name: (directory.path / name).read_bytes() for name in files(directory.path)} == before


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.append(make_round(0))
        with (directory.path / "rounds.jsonl").open("ab") as rounds:
            rounds.write(b'{"a line in flight')
        with pytest.raises(RunError) as caught:
            RunDirectory.resume(directory.path)
        assert str(caught.value) == f"{directory.path}: another harness is writing this run; wait for it or stop it"
        assert (directory.path / "rounds.jsonl").read_bytes().endswith(b'{"a line in flight')
    resumed, run = RunDirectory.resume(directory.path)
    assert run.rounds == (make_round(0),)
    with resumed:
        resumed.append(make_round(1))


def test_what_a_tool_printed_is_kept_by_case(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        paths = [directory.log(case, f"of {case} ü") for case in ("a_b/c@d", "a/b_c@d", "a/b.c+d-e@f")]
    assert len(set(paths)) == 3
    assert all(path.parent == directory.path / "logs" for path in paths)
    assert paths[1].read_text(encoding="utf-8") == "of a/b_c@d ü"
