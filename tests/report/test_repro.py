"""Commands that a reader pastes into a shell: they name files that exist after `harness export`."""

import shlex
from dataclasses import replace

import pytest

from harness.records.case import Case
from harness.records.run import Build, Check, Failure, Reference, Run
from harness.report.repro import repro_lines


@pytest.fixture
def case(small_run: Run) -> Case:
    return small_run.header.cases[1]


@pytest.fixture
def build(small_run: Run) -> Build:
    return small_run.builds[1]


def reference_of(case: Case, *arguments: str) -> Reference:
    return Reference(case=case.name, command=("iree-benchmark-module", "--module=module.vmfb", *arguments))


def check_of(case: Case) -> Check:
    command = ("iree-run-module", "--module=module.vmfb", "--input=@input0.npy", "--output=@output0.npy")
    return Check(case=case.name, against="", command=command, relative_tolerance=1e-4, absolute_tolerance=1e-5)


def test_export_compile_benchmark(case: Case, build: Build) -> None:
    reference = reference_of(
        case, "--device=local-sync", "--function=main", "--input=@input0.npy", "--input=@input12.npy"
    )
    assert repro_lines(case, "suites/mm.toml", build, reference, check_of(case)) == (
        "harness export suites/mm.toml mm --out mm",
        "iree-compile mm/model.mlir -o mm/fast.local-sync.vmfb --iree-hal-target-device=local --iree-opt-level=O3 "
        "--iree-vm-emit-polyglot-zip=true",
        "iree-benchmark-module --module=mm/fast.local-sync.vmfb --device=local-sync --function=main "
        "--input=@mm/input0.npy --input=@mm/input12.npy",
    )


@pytest.mark.parametrize(
    ("argument", "translated"),
    [
        ("--input=4x8xbf16=@input1.bin", "--input=4x8xbf16=@mm/input1.bin"),
        ("--parameters=model=model.irpa", "--parameters=model=mm/model.irpa"),
        ("--parameters=parameters.irpa", "--parameters=mm/parameters.irpa"),
        ("--executable_plugin=module.vmfb.so", "--executable_plugin=module.vmfb.so"),
    ],
)
def test_only_files_of_the_folder_are_renamed(case: Case, build: Build, argument: str, translated: str) -> None:
    lines = repro_lines(case, "s.toml", build, reference_of(case, argument), None)
    assert shlex.split(lines[-1])[2] == translated


def test_what_there_is_decides_where_the_commands_end(case: Case, build: Build) -> None:
    failed = replace(build, failure=Failure(stage="compile", message="no"))
    lines = repro_lines(case, "s.toml", failed, None, None)
    assert [shlex.split(line)[0] for line in lines] == ["harness", "iree-compile"]
    checked = repro_lines(case, "s.toml", build, None, check_of(case))[-1]  # without a benchmark
    assert checked == "iree-run-module --module=mm/fast.local-sync.vmfb --input=@mm/input0.npy --output=@output0.npy"
    for unbuilt in (None, Build(case=case.name, command=(), cache_key="")):
        assert repro_lines(case, "s.toml", unbuilt, None, None) == ()
    # Where a plugin failed, exporting fails the same way.
    raised = replace(build, compile_ns=None, failure=Failure(stage="compile", message="plugin tuned raised"))
    lines = repro_lines(replace(case, plugins=("tuned",)), "s.toml", raised, None, None)
    assert lines == ("harness export s.toml mm --variant fast --device local-sync --out mm.fast.local-sync",)


def test_export_applies_plugins_and_brings_their_files(case: Case, build: Build) -> None:
    rewritten = replace(
        build,
        command=(*build.command, "--compile-from=input", "--iree-codegen-tuning-spec-path=spec-0a.mlir"),
        files=("spec-0a.mlir", "kernels-0b.so"),
    )
    reference = reference_of(case, "--executable_plugin=kernels-0b.so")
    lines = repro_lines(replace(case, plugins=("tuned",)), "s.toml", rewritten, reference, None)
    assert lines == (
        "harness export s.toml mm --variant fast --device local-sync --out mm.fast.local-sync",
        "iree-compile mm.fast.local-sync/model.mlir -o mm.fast.local-sync/fast.local-sync.vmfb "
        "--iree-hal-target-device=local --iree-opt-level=O3 --iree-vm-emit-polyglot-zip=true --compile-from=input "
        "--iree-codegen-tuning-spec-path=mm.fast.local-sync/spec-0a.mlir",
        "iree-benchmark-module --module=mm.fast.local-sync/fast.local-sync.vmfb "
        "--executable_plugin=mm.fast.local-sync/kernels-0b.so",
    )


def test_names_for_a_shell_are_quoted_or_made_harmless(case: Case, build: Build) -> None:
    odd = replace(case, model="-rf $(x); y", variant="a b'c")
    export, compiling = repro_lines(odd, "my suite.toml", build, None, None)
    assert shlex.split(export) == ["harness", "export", "my suite.toml", "-rf $(x); y", "--out", "rf_x_y"]
    assert shlex.split(compiling)[:4] == ["iree-compile", "rf_x_y/model.mlir", "-o", "rf_x_y/a_b_c.local-sync.vmfb"]
