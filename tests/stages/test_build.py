"""Compiles: what is wrong with a model fails its own cases, and nothing is compiled twice; and a program as files."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from iree.compiler import ir

from harness.cache import cache_root
from harness.compile import CompileRequest, Underway
from harness.errors import CaseError, UsageError
from harness.plugins import Flags, Rewrite, TransformSpec
from harness.records.case import Case
from harness.records.run import Build, Failure
from harness.stages import build as room
from harness.stages.build import compile_stage, export_program, requests_of
from harness.verify.cases import trim_outputs
from tests.builders import PRODUCT, a_model, a_plugin, a_suite, example_file, make_case, register
from tests.stages.conftest import AT_END, UnderWay, lay_out_suite

QUICK = [make_case(variant, model="quick") for variant in ("stock", "fast")]
SLOW = [make_case(variant, model="slow") for variant in ("stock", "fast")]
QUICK_PEER, SLOW_PEER = (replace(make_case("peer", model=model), peer="onnxruntime") for model in ("quick", "slow"))
BROKEN = Failure(stage="model", message="no weights")


def names(cases: Iterable[Case]) -> list[str]:
    return [case.name for case in cases]


ALL, QUICK_NAMES, SLOW_NAMES = names([*QUICK, *SLOW]), names(QUICK), names(SLOW)
LATE = Failure(stage="compile", message="iree-compile ran past its limit of 1 s")


class Compiling:
    """The compile stage, whose compiles end at once."""

    def __init__(self, under_way: UnderWay, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []  # The cases that were compiled, in order
        self.late = ""  # One that takes too long
        self._under_way = under_way
        monkeypatch.setattr(room, "compile_cases", self._compile)
        monkeypatch.setattr(room, "request_for", lambda _, case, *__: SimpleNamespace(case=case))

    def _compile(self, requests: Iterable[CompileRequest], *given: Any) -> Iterator[tuple[Build, str] | Underway]:
        _, _, refusal, _ = given
        for request in requests:
            name = request.case.name
            self.asked.append(name)
            yield Underway(cases=(name,))
            failure = refusal(request.case) or (LATE if name == self.late else None)
            yield Build(case=name, command=(), cache_key=name, failure=failure), ""

    def __call__(self, *cases: Case, done: Sequence[Build] = (), slow: Failure | None = None) -> dict[str, Build]:
        """Compile these; all builds."""
        model = self._under_way.artifact
        artifacts = {"quick": replace(model, mlir_bytes=10), "slow": slow or replace(model, mlir_bytes=1000)}
        suite = a_suite(models=(a_model("quick"), a_model("slow")))
        before = replace(self._under_way.begun, builds=tuple(done))
        context = self._under_way.context(cases, suite, before, artifacts)
        compile_stage(context, requests_of(context))
        kept = [build.case for build in (*done, *self._under_way.run.builds)]
        assert sorted(kept) == sorted(context.done.builds)
        return context.done.builds


@pytest.fixture
def compiled(under_way: UnderWay, monkeypatch: pytest.MonkeyPatch) -> Compiling:
    return Compiling(under_way, monkeypatch)


def test_small_models_are_compiled_first_and_peers_are_not(compiled: Compiling) -> None:
    assert compiled(*SLOW, *QUICK, QUICK_PEER).keys() == set(ALL)
    assert compiled.asked == ALL


def test_what_an_interrupted_run_had_compiled_is_not_compiled_again(compiled: Compiling) -> None:
    refused = Failure(stage="compile", message="no")
    done = [Build(case=name, command=(), cache_key="", failure=refused) for name in QUICK_NAMES]
    compiled(*SLOW, *QUICK, done=done)
    assert compiled.asked == SLOW_NAMES


def test_a_model_that_could_not_be_made_fails_all_of_its_cases(compiled: Compiling) -> None:
    builds = compiled(*SLOW, SLOW_PEER, *QUICK, slow=BROKEN)
    assert {name for name, build in builds.items() if build.failure == BROKEN} == {*SLOW_NAMES, SLOW_PEER.name}


def test_a_compile_that_timed_out_takes_the_other_variants_along(compiled: Compiling, under_way: UnderWay) -> None:
    compiled.late = SLOW_NAMES[0]
    builds = compiled(*QUICK, *SLOW)
    failed = {name: build.failure.message for name, build in builds.items() if build.failure is not None}
    assert list(failed) == SLOW_NAMES
    assert failed[SLOW_NAMES[1]].startswith(f"not tried, since {SLOW_NAMES[0]} timed out; ")
    assert under_way.notes.lines == [f"Failed (compile): {SLOW_NAMES[0]}: {LATE.message}; 1 case fails with it"]


def test_what_killed_harnesses_left_in_the_cache_and_outputs_beyond_its_limit_go_as_a_run_begins(
    under_way: UnderWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [cache_root() / name for name in ("models/.writing-dead", "scratch/dead", f"outputs/{'a' * 32}.npy")]
    for file in left:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
        os.utime(file, (1e9, 1e9))
    monkeypatch.setattr("harness.stages.build.trim_outputs", partial(trim_outputs, limit_bytes=0))
    compile_stage(under_way.context([]), [])
    assert [file.exists() for file in left] == [False] * 3


# --- `harness export`: a program, as it is or as plugins make it, with all that command lines of it name ---


# Instead of parts of the small suite's text.
CHANGES = {
    "[{ shape = [4] }]": '[{ shape = [10, 20] }, { shape = [20, 30] }, { shape = [10, 30], dtype = "bf16" }]',
    "[variants.tiled]": '[variants.plus]\nplugins = ["plus", "spec"]\n\n[variants.broken]',
    'flagsets = ["tiling"]': 'plugins = ["broken"]',
    AT_END: '[devices.other]\nuri = "local-task"\nbackend = "vmvx"\n\n'
    '[matrix]\nexclude = ["net/plus@cpu", "net/broken@other"]\n',
}
SPEC = example_file("generic_product.mlir")


PLUGINS = {
    "plus": a_plugin("plus", Rewrite(function="fake_rewrites:plus")),
    "broken": a_plugin("broken", Rewrite(function="fake_rewrites:raises")),
    "spec": a_plugin("spec", TransformSpec(file=SPEC), Flags(compile=("--iree-opt-level=O2",))),
}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite with three variants on two devices, whose plugins are installed."""
    register(monkeypatch, "harness.plugins", *PLUGINS.items())
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "fakes"))
    monkeypatch.chdir(tmp_path)
    return lay_out_suite(CHANGES, program=PRODUCT)


def test_a_models_own_program_with_its_inputs_or_as_plugins_make_it_with_their_files(
    suite: Path, tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "out"
    exported = export_program(suite, "net", out)
    assert exported.files == ("model.mlir", "input0.npy", "input1.npy", "input2.bin")
    assert {path.name for path in out.iterdir()} == set(exported.files)
    assert (out / "model.mlir").read_text() == PRODUCT
    assert (exported.function, exported.effects) == ("main", ())
    out = tmp_path / "rewritten"
    exported = export_program(suite, "net", out, variant="plus", device="other")
    assert (exported.files[0], exported.files[-1]) == ("model.mlir", SPEC.unique_name)
    assert (out / SPEC.unique_name).read_bytes() == SPEC.data
    (effect,) = exported.effects
    assert (effect.name, effect.changed) == ("plus", True)
    with ir.Context():
        program = str(ir.Module.parse((out / "model.mlir").read_bytes()))
    assert "linalg.matmul" in program, "what the compiler does itself is in its flags, and not done yet"


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("nets/plus", "there is no model 'nets'; did you mean \"net\"?"),
        ("net/plsu", "there is no variant 'plsu'; did you mean \"plus\"?"),
        ("net/plus@vulkan", "there is no device 'vulkan'; known: cpu, other"),
        ("net/plus@cpu", "[matrix] leaves out net/plus@cpu; choose a case of `harness list`"),
        ("net/broken@cpu", "plugin broken raised KeyError"),
    ],
)
def test_what_is_not_there_or_fails_leaves_nothing_behind(
    suite: Path, tmp_path: Path, case: str, sentence: str
) -> None:
    model, variant, device = re.split("[/@]", f"{case}@")[:3]
    with pytest.raises((UsageError, CaseError)) as caught:
        export_program(suite, model, tmp_path / "out", variant=variant, device=device or None)
    assert sentence in str(caught.value)
    assert not (tmp_path / "out").exists()
