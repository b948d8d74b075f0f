"""PyTorch on the CPU, compiled by its inductor or eager; torch_reader.py reads the model for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from harness.peers.onnx_kinds import unknown_ops
from harness.peers.peer import Array, Peer, PeerModel, Ready, Setting, missing_package, onnx_file, refuses_onnx


@dataclass(frozen=True, kw_only=True)
class Options:
    """How PyTorch runs a model.

    Attributes:
        mode: `compile` is torch.compile, which writes C++; `eager` calls one kernel after the other.
        freeze: Compile with the weights as constants, so that they are laid out once for the kernels that read them,
            for models of which that gives what eager gives: freezing fails or gives wrong numbers for some in 2.13.
    """

    mode: Literal["compile", "eager"] = "compile"
    freeze: bool = True


def _refuses(model: PeerModel, options: Options) -> str | None:
    if (reason := refuses_onnx(model, options)) is not None:
        return reason
    if options.mode == "compile" and not shutil.which(_compiler()):
        return f"torch.compile needs the C++ compiler {_compiler()}, which is not installed"
    import onnx

    graph = onnx.load(str(onnx_file(model)), load_external_data=False).graph
    if unknown := sorted(set(unknown_ops(graph.node))):
        return f"its reader knows no op {', '.join(unknown)}"
    return None


def _compiler() -> str:
    return os.environ.get("CXX", "g++")


def prepare(model: PeerModel, arguments: Sequence[Array], setting: Setting, options: Options) -> Ready:
    """The module, compiled with what an earlier process left in the cache; one call makes the kernels ready."""
    # Read when PyTorch starts: kernels that are compiled are kept, no pool of compilers stays behind, and the threads
    # of OpenMP sleep while they wait for work.
    os.environ.update(
        TORCHINDUCTOR_CACHE_DIR=str(setting.cache / "inductor"),
        TORCHINDUCTOR_COMPILE_THREADS="1",
        TORCHINDUCTOR_FREEZING=str(int(options.freeze)),
        OMP_WAIT_POLICY="PASSIVE",
    )
    import torch

    from harness.peers.torch_reader import read_module

    torch.set_num_threads(setting.threads)
    torch.set_grad_enabled(False)
    module: Any = read_module(onnx_file(model), arguments)
    tensors = [torch.from_numpy(np.array(result)) for result in arguments]
    if options.mode == "compile":
        module = _compiled(module, tensors, freeze=options.freeze)
    results = [module(*tensors)]

    def call() -> None:
        results[0] = module(*tensors)

    return Ready(call=call, outputs=lambda: [np.array(result.numpy()) for result in results[0]])


def _compiled(eager: Any, tensors: Sequence[Any], *, freeze: bool) -> Any:
    """The module as torch.compile makes it, with frozen weights where that is right."""
    import torch

    module: Any = torch.compile(eager, fullgraph=True, dynamic=False)
    if not freeze:
        return module
    right = eager(*tensors)
    try:
        frozen = module(*tensors)
        if all(_alike(result, other) for result, other in zip(frozen, right, strict=True)):
            return module
    except RuntimeError:  # what inductor raises where its frozen graph does not fit its kernels
        pass
    torch._dynamo.reset()
    inductor: Any = torch._inductor.config
    inductor.freezing = False
    return torch.compile(eager, fullgraph=True, dynamic=False)


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
    missing=partial(missing_package, "torch"),
    version=partial(version, "torch"),
    refuses=_refuses,
    prepare=prepare,
)
