"""Folders that show a difference without the harness: what lies in them, and what the script does where it runs."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.compare.pairs import Pair, Side
from harness.compare.rows import blank_row
from harness.errors import RunError, UsageError
from harness.metrics import LATENCY
from harness.records.case import Case
from harness.records.run import ArgumentRecord, Build, Check, Failure
from harness.stages.reproducer import write_reproducer
from tests.compare.runs import MODEL, a_case, a_side

OLD, NEW = (
    a_case(name=f"net/stock@cpu:{release}", toolchain=release, run_flags=("--task_topology_group_count=1",))
    for release in ("3.11.0", "3.12.0")
)
COMPILE = (
    "iree-compile",
    "model.mlir",
    "-o",
    "module.vmfb",
    "--a=b c",
    "--iree-scheduling-dump-statistics-format=json",
)
CALL = ("--module=module.vmfb", "--input=@input0.npy", "--parameters=w=parameters0.irpa")
WRONG = Failure(stage="verify", message="its output 0 differs", mismatch=True)


def check(case: Case, **fields: Any) -> Check:
    command = ("iree-run-module", *CALL, "--output=@output0.npy")
    return Check(
        case=case.name, against="x", command=command, relative_tolerance=0.5, absolute_tolerance=0.25, **fields
    )


@pytest.fixture
def side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Side]:
    """Makes a run of cases whose files are in a cache."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache/models").mkdir(parents=True)
    (tmp_path / "cache/models/model.mlir").write_text("func.func @main()")
    np.save(tmp_path / "cache/models/input0.npy", np.ones(4, np.float32))
    (tmp_path / "w.irpa").write_bytes(b"weights")
    arguments = (ArgumentRecord(file="models/input0.npy", shape=(4,), dtype="f32"),)
    files: Any = {"mlir": "models/model.mlir", "arguments": arguments, "parameter_files": {"w": "w.irpa"}}
    model = replace(MODEL, inputs=("4xf32 constant 1",), **files)

    def make(*cases: Case, checks: tuple[Check, ...] = (), **failures: Failure) -> Side:
        made = a_side(*cases, model=model, suite=str(tmp_path / "net.toml"))
        builds = [
            Build(case=case.name, command=COMPILE, cache_key="", failure=failures.get(f"of{number}"))
            for number, case in enumerate(cases)
        ]
        run = replace(made.run, builds=tuple(builds), checks=checks or tuple(check(case) for case in cases))
        return Side(run, "results/x")

    return make


def run_script(folder: Path, status: int = 0) -> list[str]:
    """What the script prints with tools that print how they are called, and end with a status."""
    for name in ("base", "head"):
        tools = folder.parent / name
        tools.mkdir(exist_ok=True)
        for tool in ("iree-compile", "iree-run-module", "iree-benchmark-module"):
            (tools / tool).write_text(f'#!/bin/sh\necho "{name} {tool}" "$@"\nexit {status}\n')
            (tools / tool).chmod(0o755)
    tools_of = {name.upper(): str(folder.parent / name) for name in ("base", "head")}
    script = ["sh", str(folder / "reproduce.sh")]
    done = subprocess.run(script, env={"PATH": "/usr/bin:/bin", **tools_of}, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_two_releases_are_timed_by_their_own_tools_and_what_was_measured_is_said(
    side: Callable[..., Side], tmp_path: Path
) -> None:
    run, folder = side(OLD, NEW), tmp_path / "shown"
    row = blank_row(Pair(name=NEW.name, base=OLD, head=NEW), LATENCY, "regressed", 0.01)
    row = replace(row, ratio=1.5, ci_low=1.4, ci_high=1.625, base_value=2e6, head_value=3e6)
    write_reproducer(folder, base=(run, OLD), head=(run, NEW), measured=row, cause="all of it is in a matmul")
    assert sorted(file.name for file in folder.iterdir()) == [
        "input0.npy",
        "model.mlir",
        "parameters0.irpa",
        "reproduce.sh",
    ]
    call = "--module={0}.vmfb --input=@input0.npy --parameters=w=parameters0.irpa --benchmark_repetitions=3"
    said = "net/stock@cpu goes from 2.00 ms on IREE 3.11.0 to 3.00 ms on IREE 3.12.0 (+50 % [+40, +62.5]): all of it"
    printed = run_script(folder)
    releases = (("base", "3.11.0"), ("head", "3.12.0"))
    compiled = [
        (f"== IREE {release}", f"{name} iree-compile model.mlir -o {name}.vmfb --a=b c") for name, release in releases
    ]
    turn = [
        (f"== IREE {release}", f"{name} iree-benchmark-module {call.format(name)} --benchmark_min_time=0.3s")
        for name, release in releases
    ]
    assert printed[:16] == [line for lines in (*compiled, *turn * 3) for line in lines]
    assert said in " ".join(printed[16:])
    text = (folder / "reproduce.sh").read_text()
    assert "pip install --quiet iree-base-compiler==3.12.0 iree-base-runtime==3.12.0" in text
    assert said in text.replace("\n# ", " ")


def test_a_wrong_output_is_shown_beside_the_right_one_for_the_inputs_that_show_it(
    side: Callable[..., Side], tmp_path: Path
) -> None:
    refused = tmp_path / "cache/refused/ab"
    refused.mkdir(parents=True)
    np.save(refused / "refused0.npy", np.zeros(2, np.float32))
    np.save(refused / "right0.npy", np.array([0.0, -4.0]))  # the second is wrong, by more than 0.5 of it and 0.25
    np.save(refused / "input0.npy", np.full(4, 7, np.float32))
    run = side(OLD, NEW, checks=(check(OLD), check(NEW, failure=WRONG, reproducer="refused/ab")))
    folder = tmp_path / "shown"
    write_reproducer(folder, base=(run, OLD), head=(run, NEW))
    assert np.load(folder / "input0.npy")[0] == 7
    assert np.load(folder / "expected0.npy").tolist() == [0, -4]
    assert np.load(folder / "expected0.npy").dtype == np.float32
    printed = run_script(folder)
    assert printed[2].endswith("--expected_output=@expected0.npy --expected_f32_threshold=2.25")
    assert "its output 0 differs" in " ".join(printed)


def test_a_compile_that_fails_does_not_end_the_script(side: Callable[..., Side], tmp_path: Path) -> None:
    folder = tmp_path / "shown"
    run = side(OLD, NEW, of0=Failure(stage="compile", message="no"), of1=Failure(stage="compile", message="no"))
    write_reproducer(folder, base=(run, OLD), head=(run, NEW))
    printed = run_script(folder, status=3)
    assert printed[2] == "iree-compile ended with status 3"
    assert printed[4] == "head iree-compile model.mlir -o head.vmfb --a=b c"
    write_reproducer(folder, base=None, head=(run, NEW))
    assert run_script(folder, status=3)[0] == "== IREE 3.12.0"


def test_what_nobody_released_is_asked_for_and_one_release_is_installed_once(
    side: Callable[..., Side], tmp_path: Path
) -> None:
    own = replace(NEW, name="net/fast@cpu", variant="fast", toolchain="3.13.0+local.build.9f3a2c")
    other = replace(own, name="net/stock@cpu", variant="stock")
    run = side(other, own)
    text = write_reproducer(tmp_path / "shown", base=(run, other), head=(run, own)).read_text()
    assert ': "${BASE:?give the folder of the tools of IREE 3.13.0+local.build.9f3a2c, which nobody released}"' in text
    assert "HEAD=${HEAD:-$BASE}" in text
    assert "echo '== fast'" in text


def test_programs_that_differ_lie_in_folders_of_their_own(side: Callable[..., Side], tmp_path: Path) -> None:
    base, folder = side(OLD), tmp_path / "shown"
    (tmp_path / "cache/models/other").mkdir()
    (tmp_path / "cache/models/other/model.mlir").write_text("func.func @other()")
    head = side(NEW)
    model = replace(head.run.header.models[0], mlir="models/other/model.mlir")
    head = Side(replace(head.run, header=replace(head.run.header, models=(model,))), "results/y")
    write_reproducer(folder, base=(base, OLD), head=(head, NEW))
    assert (folder / "head/model.mlir").read_text() == "func.func @other()"
    assert run_script(folder)[1:6:4] == [
        "base iree-compile base/model.mlir -o base/base.vmfb --a=b c",
        "base iree-benchmark-module --module=base/base.vmfb --input=@base/input0.npy "
        "--parameters=w=base/parameters0.irpa --benchmark_repetitions=3 --benchmark_min_time=0.3s",
    ]


def test_what_cannot_be_shown(side: Callable[..., Side], tmp_path: Path) -> None:
    run, plugged = side(OLD), replace(NEW, plugins=("p",))
    with pytest.raises(UsageError, match=r"net/stock@cpu:3\.12\.0 was not compiled by iree-compile, so no plain"):
        write_reproducer(tmp_path / "shown", base=None, head=(run, NEW))
    with pytest.raises(UsageError, match="failed with plugins; `harness export --variant` writes its program"):
        run_of = side(plugged, of0=Failure(stage="compile", message="no"))
        write_reproducer(tmp_path / "shown", base=None, head=(run_of, plugged))
    (tmp_path / "w.irpa").unlink()
    with pytest.raises(RunError, match=r"are not at .*w\.irpa; make the run again with `harness run "):
        write_reproducer(tmp_path / "shown", base=None, head=(run, OLD))
    assert not (tmp_path / "shown").exists()
