"""What a comparison measures again: found in the cache exactly as the run left it, or gone with a sentence."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from harness.compare.modules import Gone, find_module, require_same
from harness.compare.pairs import Side, side_of
from harness.compile import BuildCache, CompileRequest
from harness.errors import ToolchainError
from harness.process import Limits
from harness.records.run import ArgumentRecord, ModelRecord, Run
from harness.toolchain import Toolchain
from tests.builders import make_header
from tests.compare.runs import TOOLCHAIN, a_case
from tests.fakes.fake_toolchain import make_fake_toolchain

CASE = a_case(run_flags=("--task_topology_group_count=1",))


@dataclass
class Kept:
    """A run of one case, the cache that it left, and its suite's folder."""

    cache: Path
    suite: Path
    toolchain: Toolchain
    side: Side

    def with_model(self, **changes: object) -> Side:
        """The run, as if it had recorded something else of its model."""
        header = self.side.run.header
        model = replace(header.models[0], **changes)  # type: ignore[arg-type]
        return side_of(replace(self.side.run, header=replace(header, models=(model,))), self.side.label)

    def gone(self, side: Side | None = None) -> str:
        """Why the module cannot be found."""
        with pytest.raises(Gone) as caught:
            find_module(side or self.side, CASE, self.toolchain, self.cache)
        return str(caught.value)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    cache, suite = tmp_path / "cache", tmp_path / "suites"
    for folder in (cache / "models", suite):
        folder.mkdir(parents=True)
    (cache / "models" / "net.mlir").write_text("func.func @main()")
    np.save(cache / "models" / "input0.npy", np.ones(4, np.float32))
    (suite / "net.irpa").write_bytes(b"weights")
    toolchain = make_fake_toolchain(tmp_path / "tools")
    request = CompileRequest(
        case=CASE,
        toolchain=toolchain,
        model=cache / "models" / "net.mlir",
        model_sha256="aa" * 32,
        function="main",
        host_cpu="",
        limits=Limits(seconds=60),
    )
    build, _ = BuildCache(cache).compile(request)
    assert build.failure is None
    model = ModelRecord(
        name="net",
        mlir_sha256="aa" * 32,
        mlir_bytes=17,
        function="main",
        inputs=("4xf32 constant 1",),
        mlir="models/net.mlir",
        arguments=(ArgumentRecord(file="models/input0.npy", shape=(4,), dtype="f32"),),
        parameter_files={"net": "net.irpa"},
    )
    header = make_header(cases=(CASE,), models=(model,), suite=str(suite / "net.toml"))
    return Kept(cache, suite, toolchain, side_of(Run(header=header, builds=(build,), finished=True), "results/base"))


def test_everything_that_a_worker_and_a_compiler_need(kept: Kept) -> None:
    module = find_module(kept.side, CASE, kept.toolchain, kept.cache)
    assert hashlib.sha256(module.loadable.module.read_bytes()).hexdigest() == module.build.module_sha256
    assert module.mlir.read_text() == "func.func @main()"
    assert [dict(one) for one in module.loadable.arguments] == [{"file": str(kept.cache / "models" / "input0.npy")}]
    assert module.loadable.parameters == {"net": kept.suite / "net.irpa"}
    assert module.loadable.function == "main"
    assert module.loadable.run_flags == CASE.run_flags
    assert module.loadable.toolchain == kept.toolchain


def test_a_cache_that_was_emptied(kept: Kept) -> None:
    shutil.rmtree(kept.cache / "builds")
    assert kept.gone() == "the module of net/stock@cpu in results/base is no longer in the cache"


def test_a_module_of_other_bytes_is_not_the_runs(kept: Kept) -> None:
    build = replace(kept.side.run.builds[0], module_sha256="0" * 64)
    other = side_of(replace(kept.side.run, builds=(build,)), "results/base")
    assert kept.gone(other) == "the module of net/stock@cpu in results/base is no longer in the cache"


def test_a_module_that_was_cut_short(kept: Kept) -> None:
    module = find_module(kept.side, CASE, kept.toolchain, kept.cache).loadable.module
    module.write_bytes(module.read_bytes()[:10])
    assert kept.gone() == "the module of net/stock@cpu in results/base is no longer in the cache"


def test_a_model_that_is_gone_or_that_an_older_harness_did_not_record(kept: Kept) -> None:
    sentence = "the model of net/stock@cpu in results/base is no longer in the cache"
    assert kept.gone(kept.with_model(mlir="")) == sentence
    (kept.cache / "models" / "net.mlir").unlink()
    assert kept.gone() == sentence


def test_inputs_that_are_gone_or_that_an_older_harness_did_not_record(kept: Kept) -> None:
    assert kept.gone(kept.with_model(arguments=())) == (
        "results/base was made by a harness that did not keep what net/stock@cpu is called with"
    )
    (kept.cache / "models" / "input0.npy").unlink()
    assert kept.gone() == "the inputs of net/stock@cpu in results/base are no longer in the cache"


def test_weights_that_moved(kept: Kept) -> None:
    (kept.suite / "net.irpa").rename(kept.suite / "moved.irpa")
    assert kept.gone() == (f"the weights 'net' of net/stock@cpu in results/base are not at {kept.suite / 'net.irpa'}")


def test_a_toolchain_is_the_runs_only_with_the_same_compiler(kept: Kept) -> None:
    same = replace(TOOLCHAIN, compiler_sha256=kept.toolchain.compiler_sha256)
    assert require_same(kept.toolchain, same, "results/base") is kept.toolchain
    with pytest.raises(ToolchainError) as caught:
        require_same(kept.toolchain, TOOLCHAIN, "results/base")
    assert str(caught.value) == (
        "results/base: IREE 0.0.0 here has another compiler than the run's; make the run again"
    )
