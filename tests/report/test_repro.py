"""Commands that a reader pastes into a shell: they name files that exist after `harness export`."""

import shlex
from dataclasses import replace
from typing import Any

import pytest

from harness.records.case import Case
from harness.records.run import Build, Check, Failure, Reference
from harness.report.repro import repro_lines
from tests.report.builders import make_small_run

RUN = make_small_run()
CASE, BUILD = RUN.header.cases[1], RUN.builds[1]
CHECK = Check(
    case=CASE.name,
    against="",
    command=("iree-run-module", "--module=module.vmfb", "--input=@input0.npy", "--output=@output0.npy"),
    relative_tolerance=1e-4,
    absolute_tolerance=1e-5,
)
EXPORT = "harness export suites/mm.toml mm --out mm"
EXPORT_VARIANT = "harness export suites/mm.toml mm --variant fast --device local-sync --out mm.fast.local-sync"
COMPILE = (
    "iree-compile mm/model.mlir -o mm/fast.local-sync.vmfb --iree-hal-target-device=local --iree-opt-level=O3 "
    "--iree-vm-emit-polyglot-zip=true"
)
NO = Failure(stage="compile", message="no")


def lines(case: Case = CASE, build: Build | None = BUILD, reference: Any = None, check: Any = None) -> tuple[str, ...]:
    return repro_lines(case, "suites/mm.toml", build, reference, check)


def benchmark(*arguments: str) -> Reference:
    return Reference(case=CASE.name, command=("iree-benchmark-module", "--module=module.vmfb", *arguments))


def test_what_there_is_decides_where_the_commands_end() -> None:
    assert lines(reference=benchmark("--input=@input12.npy"), check=CHECK) == (
        EXPORT,
        COMPILE,
        "iree-benchmark-module --module=mm/fast.local-sync.vmfb --input=@mm/input12.npy",
    )
    checked = "iree-run-module --module=mm/fast.local-sync.vmfb --input=@mm/input0.npy --output=@output0.npy"
    assert lines(check=CHECK) == (EXPORT, COMPILE, checked)
    assert lines(build=replace(BUILD, failure=NO), check=CHECK) == (EXPORT, COMPILE)
    assert lines(build=None) == lines(build=Build(case=CASE.name, command=(), cache_key="")) == ()
    of = {"3.12.0": ": pip install iree-base-compiler==3.12.0 iree-base-runtime==3.12.0"}
    for release in ("3.12.0", "3.13.0+local.build.9f3a2c"):
        case = replace(CASE, toolchain=release)
        said = repro_lines(case, "suites/mm.toml", BUILD, None, None, several_toolchains=True)[1]
        assert said == f"# the tools below are those of IREE {release}{of.get(release, ', which somebody built')}"
    # Where a plugin failed, exporting fails the same way.
    raised = replace(BUILD, compile_ns=None, failure=NO)
    assert lines(replace(CASE, plugins=("tuned",)), raised) == (EXPORT_VARIANT,)


@pytest.mark.parametrize(
    ("argument", "translated"),
    [
        ("--input=4x8xbf16=@input1.bin", "--input=4x8xbf16=@mm/input1.bin"),
        ("--parameters=model=model.irpa", "--parameters=model=mm/model.irpa"),
        ("--executable_plugin=module.vmfb.so", "--executable_plugin=module.vmfb.so"),
    ],
)
def test_only_files_of_the_folder_are_renamed(argument: str, translated: str) -> None:
    assert shlex.split(lines(reference=benchmark(argument))[-1])[2] == translated


def test_export_applies_plugins_and_brings_their_files() -> None:
    spec = "--iree-codegen-tuning-spec-path="
    command = (*BUILD.command, f"{spec}spec-0a.mlir")
    build = replace(BUILD, command=command, files=("spec-0a.mlir", "kernels-0b.so"))
    plugged = lines(replace(CASE, plugins=("tuned",)), build, benchmark("--executable_plugin=kernels-0b.so"))
    folder = "mm.fast.local-sync"
    assert plugged == (
        EXPORT_VARIANT,
        f"{COMPILE.replace('mm/', f'{folder}/')} {spec}{folder}/spec-0a.mlir",
        f"iree-benchmark-module --module={folder}/fast.local-sync.vmfb --executable_plugin={folder}/kernels-0b.so",
    )


def test_names_for_a_shell_are_quoted_or_made_harmless() -> None:
    export, compiling = lines(replace(CASE, model="-rf $(x); y", variant="a b'c"))
    assert shlex.split(export) == ["harness", "export", "suites/mm.toml", "-rf $(x); y", "--out", "rf_x_y"]
    assert shlex.split(compiling)[:4] == ["iree-compile", "rf_x_y/model.mlir", "-o", "rf_x_y/a_b_c.local-sync.vmfb"]
