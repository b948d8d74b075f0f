"""Making models in a store of the test's own, and running them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import onnxruntime
import pytest
from numpy.typing import NDArray

from harness import process
from harness.models.materialize import ModelArtifact, lay_out, materialize
from harness.models.model import Model
from harness.toolchain import Toolchain
from harness.verify.outputs import ModuleCall, run_once

LIMITS = process.Limits(seconds=120)

Make = Callable[..., ModelArtifact]
RunMain = Callable[..., list[NDArray[Any]]]


def onnx_graph(text: str, *, opset: int = 17, ir_version: int = 8) -> Any:
    """A model of what follows `graph` in ONNX's own notation: `(float[2] x) => (float[2] y) { y = Relu(x) }`."""
    return onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> graph {text}')


def run_onnx_bytes(model: bytes, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """What ONNX Runtime's results are for these inputs, in order."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return list(session.run(None, dict(zip(names, arrays, strict=True))))


@pytest.fixture
def toolchain(real_toolchain: Toolchain) -> Toolchain:
    return real_toolchain


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def make(store: Path, toolchain: Toolchain) -> Make:
    """Materialize a model, or a builder's model of these parameters, into the test's own store."""

    def make(model: Model | str, **params: Any) -> ModelArtifact:
        if isinstance(model, str):
            model = Model(name="m", builder=model, params=params, parameters={})
        with_onnx = model.builder is not None
        return materialize(model, store=store, toolchain=toolchain, limits=LIMITS, with_onnx=with_onnx)

    return make


@pytest.fixture
def run_main(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> RunMain:
    """Compile an artifact for the CPU and run it once with its arguments; its outputs, bf16 as f32."""

    def run_main(
        artifact: ModelArtifact,
        outputs: int = 1,
        *,
        targets: tuple[str, ...] = ("local",),
        uris: tuple[str, ...] = ("local-sync",),
    ) -> list[NDArray[Any]]:
        folder = tmp_path_factory.mktemp("run")
        module = folder / "compiled.vmfb"
        command = [
            *(f"--iree-hal-target-device={target}" for target in targets),
            "--iree-hal-local-target-device-backends=llvm-cpu",
            "--iree-llvmcpu-target-cpu=host",
            "--iree-input-demote-f64-to-f32=false",  # on by default, and then f64 arguments are refused
            *(str(artifact.mlir), "-o", str(module)),
        ]
        compiled = process.run([str(toolchain.iree_compile), *command], cwd=folder, limits=LIMITS)
        assert compiled.ok, compiled.stderr
        call = ModuleCall(
            toolchain=toolchain,
            folder=lay_out(folder / "bench", module, artifact),
            function=artifact.function,
            inputs=tuple(argument.flag for argument in artifact.arguments),
            parameters=artifact.parameter_flags,
            uris=uris,
        )
        return run_once(call, outputs, LIMITS)

    return run_main
