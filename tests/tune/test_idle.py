"""Which plugins find something in a program, asked with the real compiler and its bindings."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.bisect.variants import Way, uses_of
from harness.plugins import PLUGINS, NoOptions, Plugin, Rewrite, Step, TuningSpec, written_file
from harness.plugins.chain import RewriteCall
from harness.toolchain import Toolchain
from harness.tune.changes import Change
from harness.tune.idle import find_idle, looks_of
from tests.builders import register
from tests.explain.modules import a_module
from tests.ir.conftest import HASWELL_FLAGS, LIMITS

CONVOLUTION = """\
func.func @main(%image: tensor<1x8x8x4xf32>, %kernel: tensor<3x3x4x16xf32>) -> tensor<1x6x6x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x6x6x16xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>
  %c = linalg.conv_2d_nhwc_hwcf ins(%image, %kernel : tensor<1x8x8x4xf32>, tensor<3x3x4x16xf32>)
    outs(%filled : tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>
  return %c : tensor<1x6x6x16xf32>
}
"""


def call(function: str, phase: str = "input", **options: object) -> RewriteCall:
    return RewriteCall(plugin="any", function=f"harness.rewrites.{function}", phase=phase, options=options)


def rewrite(phase: str) -> Rewrite:
    return Rewrite(function="harness.rewrites.isolated:isolate_convolutions", phase=phase)


ISOLATE = call("isolated:isolate_convolutions", depthwise=True)
COUNT = call("tuned_convolutions:count_channelled")


def test_only_those_are_idle_that_match_nothing_and_each_sees_the_program_as_it_is(
    real_toolchain: Toolchain, tmp_path: Path
) -> None:
    module = a_module(real_toolchain, tmp_path / "module", compile_flags=HASWELL_FLAGS)
    module.mlir.write_text(CONVOLUTION)
    looks = {
        "isolated": (ISOLATE,),
        "isolated again": (call("share_concat:share_concat"), ISOLATE),
        "schedule": (COUNT,),
        "no NCHW": (call("channels_last:channels_last"),),
        "no stores": (call("replicate_stores:replicate_stores", phase="flow"),),
        "neither": (call("channels_last:channels_last"), call("fuse_padding:fuse_padding", phase="flow")),
        "broken": (call("no_such:function"),),
        "wrong options": (call("channels_last:channels_last", colour="red"),),
    }
    assert find_idle(module, looks, LIMITS) == ["no NCHW", "no stores", "neither"]


def test_a_program_that_plugins_rewrote_is_looked_at_from_there_on(real_toolchain: Toolchain, tmp_path: Path) -> None:
    flags = (*HASWELL_FLAGS, "--compile-from=input")
    module = a_module(real_toolchain, tmp_path / "module", compile_flags=flags)
    module.mlir.write_text("util.func public @main() { util.return }")
    looks = {"schedule": (COUNT,)}
    assert find_idle(module, looks, LIMITS) == ["schedule"]
    module = a_module(real_toolchain, tmp_path / "late", compile_flags=(*HASWELL_FLAGS, "--compile-from=flow"))
    assert find_idle(module, looks, LIMITS) == [], "there is no earlier program, so their compiles tell"


def test_plugins_are_told_by_their_rewrites_unless_they_would_act_on_what_the_start_hides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def a_plugin(name: str, *steps: Step, finds: Rewrite | None = None) -> Plugin[NoOptions]:
        return Plugin(name=name, version="1", description="", options=NoOptions, steps=lambda _: steps, finds=finds)

    spec, early, late = TuningSpec(file=written_file("a.mlir", "module {}")), rewrite("input"), rewrite("flow")
    plugins = [a_plugin("spec", spec), a_plugin("counted", spec, finds=early), a_plugin("both", early, late)]
    plugins += [a_plugin(name, early) for name in ("channels-last", "middle", "isolate")]
    register(monkeypatch, PLUGINS.group, *((each.name, each) for each in plugins))

    def phases(name: str, *started: str) -> list[str]:
        start, way = (Way(plugins=uses_of((each, {}) for each in each_of)) for each_of in (started, (name,)))
        return [call.phase for call in looks_of(start, Change(name=name, parts=(), purpose="", way=way))]

    assert [phases(each) for each in ("spec", "counted", "both")] == [[], ["input"], ["input", "flow"]]
    assert [phases(each, "middle") for each in ("channels-last", "isolate")] == [[], ["input"]]
    assert looks_of(Way(), Change(name="o2", parts=(), purpose="", way=Way(flags=("--o2",)))) == ()
