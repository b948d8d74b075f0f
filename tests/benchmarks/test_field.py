"""Steps of a table -> findings: what counts as one, what one cause is, and until when it lasts."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from benchmarks.field.findings import Change, Fault, faults_of, findings_of, found_steps
from benchmarks.field.parts import is_control
from benchmarks.field.reproduce import draw_inputs, shorten_weights, shown
from benchmarks.field.upstream import Report, known_reports
from harness.models.inputs import Argument
from harness.records.comparison import Verdict
from tests.report.explanations import make_explanation, make_part


def row(**other: Any) -> dict[str, Any]:
    """A judged pair of neighbours: half as slow again, decided."""
    facts: dict[str, Any] = {"line": "net/stock@v3", "model": "net", "variant": "stock", "device": "v3", "part": "v3-1"}
    facts |= {"before": "3.1.0", "after": "3.2.0", "control": False, "verdict": "regressed"}
    facts |= {"base_ns": 2e6, "head_ns": 3e6, "base_faults": 0.0, "head_faults": 0.0}
    return {**facts, "ratio": 1.5, "low": 1.4, "high": 1.6, **other}


def a_change(model: str, ratio: float, *what: str) -> Change:
    """A decided step of a model, and the largest part of its explanation."""
    (step,) = found_steps(pd.DataFrame([row(line=f"{model}/stock@v3", model=model, ratio=ratio)]))
    part = make_part("op", 1.0, 1.0 + ratio, differs_at="executable-targets" if what else "", what=what)
    return Change(steps=(step,), explanation=make_explanation(part))


def test_what_is_decided_comes_first_and_what_only_looks_like_a_step_is_told_apart() -> None:
    rows = [
        row(line="open", verdict="inconclusive", ratio=3.0, low=1.2, high=7.0),
        row(line="nothing", verdict="inconclusive", ratio=3.0, low=0.8, high=7.0),
        row(line="small", verdict="inconclusive", ratio=1.05, low=1.01, high=1.09),
        row(line="control", control=True),
        row(line="decided", before="3.1.0+local.a.123"),
    ]
    steps = found_steps(pd.DataFrame(rows))
    assert [(step.line, step.decided, step.before) for step in steps] == [
        ("decided", True, "3.1.0"),
        ("open", False, "3.1.0"),
    ]
    assert is_control("3.1.0", "3.1.0+local.a.123")
    assert not is_control("3.1.0", "3.11.0")


def test_changes_of_one_cause_are_one_finding_whatever_their_sizes() -> None:
    tiles = "vector_common_parallel goes from [1, {}] to [8, {}]"
    changes = [
        a_change("small", 1.2, tiles.format(2, 16)),
        a_change("other", 2.0, "the pipeline goes from A to B"),
        a_change("large", 4.0, tiles.format(1, 8)),
    ]
    findings = findings_of(changes)
    assert [[change.largest.model for change in finding.changes] for finding in findings] == [
        ["large", "small"],
        ["other"],
    ]
    assert [finding.slug for finding in findings] == ["slower-3-2-0-large", "slower-3-2-0-other"]


def test_a_step_of_the_same_code_is_no_finding_and_one_of_two_threads_alone_is_one_where_it_was_seen_twice() -> None:
    (step,) = found_steps(pd.DataFrame([row()]))
    same = make_explanation(make_part("op", 1.0, 2.0), schedule=(), case=step.line)
    assert findings_of([Change(steps=(step,), explanation=same)]) == []
    on_threads = replace(step, device="v3-threads")
    expected: dict[Verdict, int] = {"inconclusive": 0, "regressed": 1}
    for verdict, findings in expected.items():
        found = make_explanation(make_part("op", 1.0, 2.0, differs_at="flow", what=("it fuses",)))
        found = replace(found, latency=replace(found.latency, verdict=verdict))
        assert len(findings_of([Change(steps=(on_threads,), explanation=found)])) == findings


@pytest.mark.parametrize(("low", "high", "findings"), [(0.9, 1.2, 0), (0.9, 1.3, 1), (1.1, 1.2, 0)])
def test_a_step_of_which_explain_saw_less_than_half_is_no_finding(low: float, high: float, findings: int) -> None:
    (step,) = found_steps(pd.DataFrame([row()]))
    found = make_explanation(make_part("op", 1.0, 2.0, differs_at="flow", what=("it fuses",)))
    seen = replace(found.latency, verdict="inconclusive", ci_low=low, ci_high=high)
    assert len(findings_of([Change(steps=(step,), explanation=replace(found, latency=seen))])) == findings


def test_changes_of_one_report_are_one_finding_and_a_report_near_by_joins_nothing() -> None:
    changes = [a_change("large", 4.0, "the pipeline goes from A to B"), a_change("small", 2.0, "it fuses")]
    report = Report(direction="slower", after="3.2.0", contains=("goes from A", "it fuses"), text="a report")
    (finding,) = findings_of(changes, [report])
    assert finding.report == report
    near = replace(report, near=True)
    assert [finding.report for finding in findings_of(changes, [near])] == [near, near]
    named = replace(report, contains=("large/", "small/"))
    assert [finding.report for finding in findings_of(changes, [named])] == [replace(named, near=True)] * 2
    assert [finding.report for finding in findings_of(changes, [replace(report, after="3.3.0")])] == [None, None]
    assert sum(report.sought for report in known_reports()) == 3


def test_a_script_draws_its_large_inputs_and_keeps_the_others(tmp_path: Path) -> None:
    values: dict[str, NDArray[Any]] = {
        "input0.npy": np.random.default_rng(0).standard_normal((100, 100), np.float32),
        "input1.npy": np.arange(4, dtype=np.float32),
        "input2.npy": np.full((60, 200), -np.inf, np.float32),
        "input3.npy": np.tile(np.array([-3, 7], np.int8), 20_000),
    }
    flags = [f"@{name}" for name in values] + ["9x2000xbf16=@input4.bin"]
    for name, array in values.items():
        np.save(tmp_path / name, array)
    np.zeros((9, 2000), np.uint16).tofile(tmp_path / "input4.bin")
    text = 'cd "$(dirname "$0")"\necho ' + " ".join(f"--input={flag}" for flag in flags) + " --more\n"
    (tmp_path / "reproduce.sh").write_text(text)
    shapes = [*(array.shape for array in values.values()), (9, 2000)]
    kinds = zip([*values, "input4.bin"], shapes, ("f32", "f32", "f32", "i8", "bf16"), strict=True)
    draw_inputs(
        tmp_path / "reproduce.sh",
        [Argument(file=tmp_path / name, flag="", shape=shape, dtype=dtype) for name, shape, dtype in kinds],
    )
    done = subprocess.run(["sh", str(tmp_path / "reproduce.sh")], capture_output=True, text=True, check=True)
    drawn = ["100x100xf32=@input0.bin", "@input1.npy", "@input2.npy", "40000xi8=@input3.bin", "9x2000xbf16=@input4.bin"]
    assert done.stdout.split() == [*(f"--input={flag}" for flag in drawn), "--more"]
    floats = np.fromfile(tmp_path / "input0.bin", "<f4")
    assert (floats.size, round(float(floats.std()), 1)) == (10_000, 1.0)
    assert set(np.fromfile(tmp_path / "input3.bin", "i1")) == {*range(-3, 8)}
    assert (tmp_path / "input4.bin").stat().st_size == 36_000
    assert not (tmp_path / "input0.npy").exists()


def test_a_script_makes_large_weights_of_their_first_bytes(tmp_path: Path) -> None:
    small, large = "0x04000000" + "ab" * 100, "0x04000000" + "0123456789abcdef" * 64
    program = f'{{-# dialect_resources: {{ builtin: {{ a: "{small}", b: "{large}{"ff" * 1500}" }} }} #-}}'
    (tmp_path / "model.mlir").write_text(program)
    script = tmp_path / "reproduce.sh"
    script.write_text('#!/bin/sh\nset -e\ncd "$(dirname "$0")"\ncat model.mlir\n')
    shorten_weights(script)
    assert (tmp_path / "model.short.mlir").stat().st_size < 2000
    assert not (tmp_path / "model.mlir").exists()
    done = subprocess.run(["sh", str(script)], capture_output=True, text=True, check=True)
    again = (large[10:] * 4)[: 2 * (512 + 1500)]
    assert done.stdout == program.replace(large + "ff" * 1500, f"0x04000000{again}")


@pytest.mark.parametrize(
    ("medians", "status", "told"),
    [
        (["80 us", "0.2 ms", "100 us", "160 us", "90 us", "200 us"], 0, (200 / 90, True)),
        (["100 us", "110 us"], 0, (1.1, False)),
        (["100 us", "50 us"], 0, (0.5, False)),
        (["100 us", "200 us"], 1, (None, False)),
        ([], 0, (None, False)),
    ],
)
def test_a_script_agrees_where_its_medians_show_half_of_the_step(
    medians: list[str], status: int, told: tuple[float | None, bool]
) -> None:
    printed = "".join(f"BM_main/process_time/real_time_median   {each}   70 us   3\n" for each in medians)
    assert shown({"ratio": 2.0}, printed, status) == (pytest.approx(told[0]) if told[0] else None, told[1])


@pytest.mark.parametrize(
    ("good", "bad", "agrees"),
    [
        ("[SUCCESS]", "[FAILED] result[0]", True),
        ("[SUCCESS]", "[SUCCESS]", False),
        ("[FAILED] result[0]", "[FAILED] result[0]", False),
    ],
)
def test_a_fault_shows_where_its_release_alone_has_it(good: str, bad: str, agrees: bool) -> None:
    printed = f"== IREE 3.13.0\n{good}\n== IREE 3.7.0\n{bad}\n"
    assert shown({"after": "3.7.0", "state": "wrong"}, printed, 0) == (None, agrees)


def test_an_open_step_is_a_finding_where_explaining_it_decided_it() -> None:
    (step,) = found_steps(pd.DataFrame([row(verdict="inconclusive")]))
    assert not Change(steps=(step,), explanation=None, reason="it failed").is_there
    latency = make_explanation().latency
    assert Change(steps=(step,), explanation=make_explanation()).is_there is (latency.verdict == "regressed")


@pytest.mark.parametrize("state", ["fails", "wrong"])
def test_faults_of_one_message_and_wrong_outputs_of_one_model_are_told_once(state: str) -> None:
    places = enumerate([("a", "3.0.0"), ("a", "3.1.0+local.b.1"), ("b", "3.1.0"), ("c", "3.1.0")])
    rows = [
        {"line": line, "model": "net", "release": release, "state": state, "why": f"value {place} is off"}
        for place, (line, release) in places
    ]
    rows[-1]["why"] = "expected to fail: value 3 is off: %7 = linalg.fill"
    (fault,) = faults_of(pd.DataFrame(rows))
    lines = {"a": ("3.0.0", "3.1.0"), "b": ("3.1.0",), "c": ("3.1.0",)}
    assert fault == Fault(state=state, lines=lines, why="value 0 is off")
