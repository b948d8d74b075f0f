"""Each dispatch as a program of its own: what is dumped, how it is compiled, and what its turns say."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.compare import samplers
from harness.compare.samplers import MeasurementPolicy, Module
from harness.explain.isolated_timing import (
    AloneTurns,
    as_text,
    compile_alone,
    constants_of,
    read_benchmark,
    with_constants,
)
from harness.ir.differences import Executable
from harness.measure import Group
from harness.records.run import Failure, Lost, Round, Turn
from harness.stats.rule import Rule
from harness.toolchain import Toolchain
from tests.explain.conftest import LIMITS, a_module, an_executable
from tests.fakes.fake_toolchain import calls, make_fake_toolchain

CONV = "main_dispatch_0_conv_16x16_f32"
# As iree-compile 3.13.0 dumps one, without what is in the executable and in the function.
DUMPED = """module {
  util.global private @__device_0 = #hal.device.target<"local", [...]> : !hal.device
  hal.executable private @main_dispatch_0 {
      hal.executable.export public @NAME ordinal(0) layout(#hal.pipeline.layout<...>) count(%arg0: !hal.device) {
      }
  }
  util.func public @FUNCTION(%arg0: i32) attributes {iree.abi.stub, iree.reflection = {iree.benchmark = "dispatch"}} {
  }
}
"""


def dumped(name: str = CONV, function: str = "main") -> str:
    return DUMPED.replace("NAME", name).replace("FUNCTION", function)


def test_what_is_dumped_around_a_dispatch() -> None:
    function = f"main_dispatch_0_embedded_elf_x86_64_{CONV}"
    assert read_benchmark(dumped(function=function)) == {CONV: (function,)}
    both = dumped(function=f"{function}_4") + dumped(function=f"{function}_8")
    assert read_benchmark(both) == {CONV: (f"{function}_4", f"{function}_8")}
    assert read_benchmark(dumped("main$async_dispatch_1", '"main$async_dispatch_1_x"')) == {
        "main$async_dispatch_1": ("main$async_dispatch_1_x",)
    }
    two = dumped(function=function) + dumped("main_dispatch_1_pad", "f_main_dispatch_1_pad")
    assert read_benchmark(two) == {CONV: (function,), "main_dispatch_1_pad": ("f_main_dispatch_1_pad",)}


# --- compiling ---


def with_dumps(folder: Path, *texts: str) -> Path:
    """A folder in which iree-compile has dumped these programs."""
    (folder / "benchmarks").mkdir(parents=True)
    for number, text in enumerate(texts):
        (folder / "benchmarks" / f"module_main_dispatch_{number}_benchmark.mlir").write_text(text)
    return folder


def test_dispatches_go_on_together_from_where_they_were_configured(toolchain: Toolchain, tmp_path: Path) -> None:
    folder = with_dumps(tmp_path / "folder", dumped(), dumped("main_dispatch_7_of_nobody"))
    flags = ["--iree-llvmcpu-target-cpu=host", "--compile-from=flow", "--iree-scheduling-dump-statistics-format=json"]
    module = a_module(toolchain, tmp_path, compile_flags=flags)
    compiled, failed = compile_alone(module, [CONV, "main_dispatch_9_dynamic"], folder, LIMITS)
    assert list(compiled) == [CONV]
    module_alone, functions = compiled[CONV]
    assert (module_alone.is_file(), functions) == (True, ("main",))
    assert list(failed) == ["main_dispatch_9_dynamic"]
    assert failed["main_dispatch_9_dynamic"].startswith("iree-compile makes no program of it alone")
    dump, own = (call.arguments for call in calls(toolchain, "iree-compile"))
    assert dump == (
        *("model.mlir", "-o", "module.vmfb", *flags),
        "--iree-hal-dump-executable-benchmarks-to=benchmarks",
    )
    assert own[1:] == (
        *("-o", "module.vmfb", "--compile-from=executable-configurations", "--iree-llvmcpu-target-cpu=host"),
    )


def test_what_does_not_compile_together_is_compiled_one_by_one(toolchain: Toolchain, tmp_path: Path) -> None:
    script = "cp dispatches.mlir ../$(basename $PWD).seen; grep -q bad dispatches.mlir && exit 1"
    toolchain.iree_compile.write_text(f"#!/bin/sh\ncase $1 in dispatches*) {script};; esac\necho code > module.vmfb\n")
    folder = with_dumps(tmp_path / "folder", dumped("bad"), dumped())
    compiled, failed = compile_alone(a_module(toolchain, tmp_path), [CONV, "bad"], folder, LIMITS)
    assert (list(compiled), list(failed)) == ([CONV], ["bad"])
    assert failed["bad"] == "it does not compile alone: iree-compile exited with status 1"
    joined = (folder / "dispatches0.seen").read_text()
    assert joined.count("module {\n  util.global") == joined.count("@__device_0") == 1, "one program for all"
    assert joined.index(CONV) < joined.index("@bad"), "in the order of the names"
    assert joined.count("{") == joined.count("}")


# --- turns ---


def scripted(monkeypatch: pytest.MonkeyPatch, lost: str = "", **ns_per_call: float) -> list[tuple[str, ...]]:
    """Have workers give these times, `base` of base's only function; what they were given, generation by generation."""
    asked: list[tuple[str, ...]] = []

    def measured(group: Group, generation: int, *_: Any, **__: Any) -> Iterator[Round | Lost]:
        names = tuple(case.name for case in group.cases)
        asked.append(names)
        if lost in names:
            yield Lost(case=lost, generation=generation, failure=Failure(stage="measure", message="it crashed"))
        for number in range(4):
            turns = [
                Turn(case=name, calls=1, wall_ns=round(ns_per_call[name.split()[0]] * (1 + number)), cpu_ns=0)
                for name in (names if number % 2 == 0 else names[::-1])
                if name != lost
            ]
            yield Round(group=group.name, generation=generation, round=number, started_unix_ns=0, turns=tuple(turns))

    monkeypatch.setattr(samplers, "measure_generation", measured)
    return asked


def sides(tmp_path: Path, *first_ns: int) -> tuple[Module, Module]:
    """Modules with one dispatch each, which takes so long when it is first tried, and their dumps."""
    modules = []
    for side, ns in zip(("base", "head"), first_ns or (10**6, 10**6), strict=True):
        toolchain = make_fake_toolchain(tmp_path / f"{side} tools")
        with_dumps(tmp_path / "folder" / side, dumped())
        modules.append(a_module(toolchain, tmp_path / f"{side} module", run_flags=[f"--fake_times_ns={ns}"]))
    base, head = modules
    return base, head


def turns(modules: tuple[Module, Module], folder: Path, *executables: Executable) -> AloneTurns:
    of_side = executables or (an_executable(CONV),)
    policy = MeasurementPolicy(rule=Rule(), budget_s=1, seed=1, call_limit_s=60, limits=LIMITS)
    return AloneTurns(*modules, (of_side, of_side), folder, policy)


def test_what_a_dispatch_takes_is_a_share_of_its_calls_and_counts_as_often_as_the_program_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = scripted(monkeypatch, base=1e6, head=1.5e6)
    modules = sides(tmp_path, 10_000, 4_000_000)  # so 100 of them are a call of base, and one is one of head
    base, head = turns(modules, tmp_path / "folder", replace(an_executable(CONV), dispatches=3))(0)
    middle = 3 * np.median([1, 2, 3, 4])
    assert base.dispatch_ns == {CONV: pytest.approx(middle * 1e4)}
    assert head.dispatch_ns == {CONV: pytest.approx(middle * 1.5e6)}
    assert base.call_ns == base.dispatch_ns[CONV]
    assert (base.calls, base.device_ns, base.untimed) == (4, {}, {})
    assert sorted(asked[0]) == ["base main", "head main"]
    (batch,) = (tmp_path / "folder" / "base").glob("dispatches*/batch*.npy")
    assert np.load(batch).item() == 100
    (call,) = calls(modules[0].loadable.toolchain, "iree-benchmark-module")
    assert "--function=main" in call.arguments
    assert "--input=1" in call.arguments


def test_what_crashes_is_left_out_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = scripted(monkeypatch, lost="head main", base=1e6)
    measure = turns(sides(tmp_path), tmp_path / "folder")
    for _ in range(2):
        base, head = measure(0)
        assert base.dispatch_ns == {CONV: pytest.approx(2.5e6)}
        assert head.dispatch_ns == {CONV: 0}
        assert head.untimed == {CONV: "it does not run alone: it crashed"}
    assert [len(names) for names in asked] == [2, 1]


def test_dispatches_that_cannot_be_timed_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, base=1e6, head=1e6)
    dynamic = an_executable("main_dispatch_1_dynamic")
    base, head = sides(tmp_path)
    found, _ = turns((base, head), tmp_path / "folder", an_executable(CONV), dynamic)(0)
    assert (list(found.dispatch_ns), found.dispatch_ns[dynamic.name]) == ([CONV, dynamic.name], 0)
    assert found.untimed[dynamic.name].startswith("iree-compile makes no program of it alone")
    failing = a_module(head.loadable.toolchain, tmp_path / "failing", compile_flags=["--fake-exit=3"])
    with_dumps(tmp_path / "other" / "base", dumped())
    silent = replace(base, loadable=replace(base.loadable, run_flags=("--fake_no_output",)))
    quiet, nothing = turns((silent, failing), tmp_path / "other")(0)
    why = "it does not run alone: iree-benchmark-module printed JSON of an unknown form"
    assert quiet.untimed[CONV].startswith(why)
    why = "iree-compile exited with status 3 as it wrote its dispatches one by one"
    assert (nothing.dispatch_ns, nothing.untimed) == ({CONV: 0}, {CONV: why})


BODY = """\
  %0 = arith.constant dense_resource<conv1_bias> : tensor<2xf32>
  %1 = arith.constant dense_resource<"a b.weight"> : tensor<1xf32>
  %2 = arith.constant dense_resource<conv1_bias> : tensor<2xf32>
"""
WITHOUT_CONSTANTS = f"module {{\n{BODY}}}\n"
RESOURCES = (
    'my_conv1_bias: "0x0400000000", conv1_bias: "0x040000000000803F00000040", "a b.weight": "0x0400000000004040"'
)
MODEL = f"module {{}}\n{{-# dialect_resources: {{ builtin: {{ {RESOURCES} }} }} #-}}\n"


def test_each_constant_comes_once_with_its_bytes(real_toolchain: Toolchain, tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(MODEL)
    assert constants_of(WITHOUT_CONSTANTS) == ("conv1_bias", '"a b.weight"')
    text = with_constants(WITHOUT_CONSTANTS, model)
    assert text.startswith(WITHOUT_CONSTANTS)
    assert text.count('\n      conv1_bias: "0x040000000000803F00000040",') == 1
    assert text.endswith('      "a b.weight": "0x0400000000004040"\n    }\n  }\n#-}\n')
    assert with_constants(MODEL, model) == MODEL, "it has them"
    # Bytecode is printed as text.
    source, bytecode = tmp_path / "text.mlir", tmp_path / "model.mlirbc"
    source.write_text(
        MODEL.replace("module {}", f"module {{\n  util.func public @f() {{\n{BODY}  util.return\n  }}\n}}")
    )
    iree_opt = str(real_toolchain.compiler_tools / "iree-opt")
    subprocess.run([iree_opt, str(source), "--emit-bytecode", "-o", str(bytecode)], check=True)
    printed = as_text(bytecode, real_toolchain, tmp_path, LIMITS)
    assert with_constants(WITHOUT_CONSTANTS, printed) == text
    assert as_text(model, real_toolchain, tmp_path, LIMITS) == model
    bytecode.write_bytes(b"ML\xefR and no more")
    assert with_constants(WITHOUT_CONSTANTS, as_text(bytecode, real_toolchain, tmp_path, LIMITS)) == WITHOUT_CONSTANTS
