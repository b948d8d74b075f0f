"""What a comparison measures again: modules found in the cache as the run left them, and compiles side by side."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.compare.engine import Generation
from harness.compare.pairs import Side
from harness.compare.samplers import CacheMiss, Module, find_module, sample_compiles, summarise_generation
from harness.compile import BuildCache
from harness.errors import CaseError
from harness.process import Limits
from harness.records.run import ArgumentRecord, Round, Turn
from harness.toolchain import Toolchain
from tests.builders import a_loadable
from tests.compare.runs import MODEL, a_build, a_case, a_side
from tests.compile.conftest import a_request
from tests.fakes.fake_toolchain import calls, make_fake_toolchain

CASE = a_case(run_flags=("--task_topology_group_count=1",))


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    return make_fake_toolchain(tmp_path / "tools")


@pytest.fixture
def side(tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> Side:
    """A run of one case, whose cache and suite lie in the same folder."""
    cache, suite = tmp_path / "cache", tmp_path / "suites"
    monkeypatch.setenv("HARNESS_CACHE", str(cache))
    for folder in (cache / "models", suite):
        folder.mkdir(parents=True)
    (cache / "models" / "net.mlir").write_text("func.func @main()")
    np.save(cache / "models" / "input0.npy", np.ones(4, np.float32))
    (suite / "net.irpa").write_bytes(b"weights")
    request = a_request(toolchain=toolchain, model=cache / "models" / "net.mlir")
    build, _ = BuildCache(cache).compile(replace(request, case=CASE))
    arguments = (ArgumentRecord(file="models/input0.npy", shape=(4,), dtype="f32"),)
    files: Any = {"mlir": "models/net.mlir", "arguments": arguments, "parameter_files": {"net": "net.irpa"}}
    model = replace(MODEL, inputs=("4xf32 constant 1",), **files)
    made = a_side(CASE, model=model, suite=str(suite / "net.toml"))
    return Side(replace(made.run, builds=(build,)), "results/base")


def test_weights_of_a_commit_are_read_in_its_tree(side: Side, toolchain: Toolchain, tmp_path: Path) -> None:
    run = replace(side.run, header=replace(side.run.header, suite="../suites/small.toml"))
    for folder in ("tree/suites", "tree/sub"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tree/suites/net.irpa").write_bytes(b"as they were")
    of_commit = replace(side, run=run, root=tmp_path / "tree/sub")
    module = find_module(of_commit, CASE, toolchain)
    assert module.loadable.parameters["net"].read_bytes() == b"as they were"


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("cache/models/net.mlir", "the model of net/stock@cpu in results/base is no longer in the cache"),
        ("cache/models/input0.npy", "the inputs of net/stock@cpu in results/base are no longer in the cache"),
        ("suites/net.irpa", "the weights 'net' of net/stock@cpu in results/base are not at {file}"),
        ("cache/builds", "the module of net/stock@cpu in results/base is no longer in the cache"),
    ],
)
def test_what_is_gone_is_named(side: Side, toolchain: Toolchain, tmp_path: Path, file: str, sentence: str) -> None:
    path = tmp_path / file
    path.rename(path.with_name("moved"))
    with pytest.raises(CacheMiss) as caught:
        find_module(side, CASE, toolchain)
    assert str(caught.value) == sentence.format(file=path)


# --- Latencies ---


def test_a_generation_is_the_centre_of_its_rounds_and_the_median_of_either_side() -> None:
    times = [(100, 110, 0), (200, 240, 1), (1000, 1100, 0), (400, 0, 1)]  # base, head, and which of the two comes first
    rounds = []
    for number, (base, head, first) in enumerate(times):
        turns = [Turn(case=case, calls=2, wall_ns=2 * ns, cpu_ns=0) for case, ns in (("base", base), ("head", head))]
        ordered = (turns[first], turns[1 - first])
        rounds.append(Round(group="row", generation=0, round=number, started_unix_ns=0, turns=ordered))
    found = summarise_generation(rounds, 1.5)
    assert found.log_ratio == pytest.approx((math.log(1.1) + math.log(1.2)) / 2)
    assert (found.base, found.head, found.rounds, found.seconds) == (300, 240, 3, 1.5)
    assert summarise_generation([], 0.1) == Generation(log_ratio=None, base=None, head=None, rounds=0, seconds=0.1)


# --- Compile times ---


def a_module(toolchain: Toolchain, folder: Path, *flags: str) -> Module:
    mlir = folder / "net.mlir"
    mlir.write_text("func.func @main()")
    command = ("iree-compile", "model.mlir", "-o", "module.vmfb", *flags)
    loadable = a_loadable(CASE.name, toolchain)
    return Module(files=(), case=CASE, loadable=loadable, mlir=mlir, build=a_build(CASE, command=command))


def compiles(base: Module, head: Module, number: int = 0, seconds: float = 60) -> Generation:
    return sample_compiles(base, head, None, Limits(seconds=seconds), number)


def test_both_sides_are_compiled_anew_in_every_generation_and_take_turns_to_be_first(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    base, head = (a_module(toolchain, tmp_path, f"--fake-code={side}") for side in ("base", "head"))
    for number in range(3):
        generation = compiles(base, head, number)
        assert generation.rounds == 1
        assert generation.base and generation.head
        assert generation.log_ratio == math.log(generation.head / generation.base)
        assert generation.seconds == (generation.base + generation.head) / 1e9
    started = [call.arguments for call in calls(toolchain, "iree-compile")]
    assert [arguments[-1].removeprefix("--fake-code=") for arguments in started] == [
        *("base", "head"),
        *("head", "base"),
        *("base", "head"),
    ]
    assert {arguments[:-1] for arguments in started} == {("model.mlir", "-o", "module.vmfb")}


@pytest.mark.parametrize(
    ("flag", "ending"),
    [("--fake-exit=3", "exited with status 3"), ("--fake-signal=ABRT", "SIGABRT"), ("--fake-sleep=60", "2 s")],
)
def test_a_compile_that_fails_now_fails_the_row(toolchain: Toolchain, tmp_path: Path, flag: str, ending: str) -> None:
    head = a_module(toolchain, tmp_path, "--fake-stderr=last words", flag)
    with pytest.raises(CaseError) as caught:
        compiles(a_module(toolchain, tmp_path), head, seconds=2)
    assert caught.value.stage == "compile"
    assert str(caught.value).startswith("the head's iree-compile ")
    assert ending in str(caught.value)
    assert caught.value.stderr.strip() == "last words"
