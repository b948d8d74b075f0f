"""PyTorch on the CPU, compiled by its inductor or eager; PyTorch has no reader of ONNX, and onnx2torch is one.

What onnx2torch converts is known when it has done so, so a process of its own tries that before a model is planned.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from harness import process
from harness.models.onnx_file import with_static_inputs
from harness.peers.peer import Array, Peer, PeerModel, Ready, Setting, missing_package, onnx_file, refuses_onnx

_CONVERT_LIMITS = process.Limits(seconds=300)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How PyTorch runs a model: torch.compile writes C++; eager calls one kernel after the other."""

    mode: Literal["compile", "eager"] = "compile"


def _refuses(model: PeerModel, options: Options) -> str | None:
    if (reason := refuses_onnx(model, options)) is not None:
        return reason
    if options.mode == "compile" and not shutil.which(_compiler()):
        return f"torch.compile needs the C++ compiler {_compiler()}, which is not installed"
    shapes = json.dumps([value.shape for value in model.inputs])
    command = [sys.executable, "-m", "harness.peers.pytorch", str(onnx_file(model).resolve()), shapes]
    with tempfile.TemporaryDirectory() as folder:  # Python would import a `torch` or `onnx` folder of the user's own
        finished = process.run(command, cwd=Path(folder), limits=_CONVERT_LIMITS)
    if finished.ok:
        return None
    said = finished.stderr.strip().splitlines() or [finished.how_it_ended(_CONVERT_LIMITS)]
    return f"onnx2torch cannot convert it ({said[-1]})"


def _compiler() -> str:
    return os.environ.get("CXX", "g++")


def prepare(model: PeerModel, arguments: Sequence[Array], setting: Setting, options: Options) -> Ready:
    """The module, compiled with what an earlier process left in the cache; one call makes the kernels ready."""
    # Read when PyTorch starts: kernels that are compiled are kept, no pool of compilers stays behind, and the threads
    # of OpenMP sleep while they wait for work.
    os.environ.update(
        TORCHINDUCTOR_CACHE_DIR=str(setting.cache / "inductor"),
        TORCHINDUCTOR_COMPILE_THREADS="1",
        TORCHINDUCTOR_FREEZING="1",
        OMP_WAIT_POLICY="PASSIVE",
    )
    import torch

    torch.set_num_threads(setting.threads)
    torch.set_grad_enabled(False)
    module = read_module(onnx_file(model), [value.shape for value in arguments])
    tensors = [torch.from_numpy(np.array(result)) for result in arguments]
    if options.mode == "compile":
        module = _compiled(module, tensors)
    results = [module(*tensors)]

    def call() -> None:
        results[0] = module(*tensors)

    return Ready(call=call, outputs=lambda: [np.array(result.numpy()) for result in _several(results[0])])


def read_module(path: Path, shapes: Sequence[Sequence[int]]) -> Any:
    """The graph as a torch.nn.Module for arguments of these shapes; raises what onnx2torch does where it cannot."""
    import onnx
    import onnx2torch

    model = with_static_inputs(onnx.load(str(path)), shapes, str(path))
    # onnx2torch finds weights among the initializers only.
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            model.graph.initializer.add().CopyFrom(node.attribute[0].t)
            model.graph.initializer[-1].name = node.output[0]
        else:
            model.graph.node.append(node)
    return onnx2torch.convert(model).eval()


def _several(result: Any) -> Sequence[Any]:
    return result if isinstance(result, (list, tuple)) else [result]


def _compiled(eager: Any, tensors: Sequence[Any]) -> Any:
    """The module as torch.compile makes it, with its weights laid out once for the kernels that read them.

    Not for models of which that does not give what eager gives: freezing fails or gives wrong numbers for some in 2.13.
    """
    import torch

    module: Any = torch.compile(eager, dynamic=False)
    right = eager(*tensors)
    try:
        frozen = module(*tensors)
        if all(_alike(result, other) for result, other in zip(_several(frozen), _several(right), strict=True)):
            return module
    except RuntimeError:  # what inductor raises where its frozen graph does not fit its kernels
        pass
    torch._dynamo.reset()
    inductor: Any = torch._inductor.config
    inductor.freezing = False
    return torch.compile(eager, dynamic=False)


def _alike(result: Any, right: Any) -> bool:
    """Whether two results differ by rounding only; the harness checks them by the suite's own tolerance later."""
    scale = float(right.abs().max()) if right.numel() else 0.0
    return not right.numel() or float((result - right).abs().max()) <= 0.01 * max(scale, 1e-30)


PEER = Peer(
    name="pytorch",
    title="PyTorch",
    description="PyTorch on the CPU: torch.compile with frozen weights, or eager",
    install="pip install 'iree-harness[pytorch]'",
    options=Options,
    missing=lambda: missing_package("torch") or missing_package("onnx2torch"),
    version=partial(version, "torch"),
    refuses=_refuses,
    prepare=prepare,
)


if __name__ == "__main__":
    read_module(Path(sys.argv[1]), json.loads(sys.argv[2]))
