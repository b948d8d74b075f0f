"""Apache TVM: Relax's ONNX reader and its default pipeline for LLVM, compiled once into a shared object.

Nothing is tuned: operations keep the loops that TVM's operator library writes, fused with what is pointwise around
them, and the arithmetic is left to LLVM.
"""

import hashlib
import os
import shutil
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from harness.files import file_sha256
from harness.models.onnx_file import graph_inputs
from harness.peers.peer import Array, Peer, PeerModel, Ready, Setting, missing_package, onnx_file, refuses_onnx
from harness.plugins.options import NoOptions

_LINKER = "g++"


def _missing() -> str | None:
    if (reason := missing_package("tvm", "apache-tvm")) is not None:
        return reason
    return None if shutil.which(_LINKER) else f"{_LINKER}, with which it links, is not installed"


def prepare(model: PeerModel, arguments: Sequence[Array], setting: Setting, _: NoOptions) -> Ready:
    """Relax's virtual machine with the compiled library; results are new tensors of its own pool at each call."""
    # Its threads spin before they sleep, and each takes a core for its own, unless these say otherwise at its start.
    os.environ.update(TVM_NUM_THREADS=str(setting.threads), TVM_THREAD_POOL_SPIN_COUNT="0", TVM_BIND_THREADS="0")
    import tvm
    from tvm import relax

    host = tvm.target.codegen
    target = tvm.target.Target(
        {"kind": "llvm", "mcpu": host.llvm_get_system_cpu(), "mtriple": host.llvm_get_system_triple()}
    )
    shapes = [(value.shape, value.dtype) for value in model.inputs]
    key = repr([file_sha256(onnx_file(model)), tvm.__version__, str(target), shapes])
    library = setting.cache / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"
    if not library.exists():
        _compile(tvm, target, model, arguments, library)
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())
    tensors = [tvm.runtime.tensor(np.require(value, requirements="C")) for value in arguments]
    main = machine["main"]
    results: list[Any] = [None]

    def call() -> None:
        results[0] = main(*tensors)

    def outputs() -> list[Array]:
        several = [results[0]] if hasattr(results[0], "numpy") else list(results[0])
        return [np.array(value.numpy()) for value in several]

    return Ready(call=call, outputs=outputs)


def _compile(tvm: Any, target: Any, model: PeerModel, arguments: Sequence[Array], library: Path) -> None:
    import onnx
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    read = onnx.load(str(onnx_file(model)))
    names = [value.name for value in graph_inputs(read.graph)]
    shapes = {name: list(value.shape) for name, value in zip(names, arguments, strict=True)}
    types = {name: value.dtype.name for name, value in zip(names, arguments, strict=True)}
    module = from_onnx(read, shape_dict=shapes, dtype_dict=types)
    built = tvm.compile(relax.get_pipeline("zero")(module), target)
    # Its name decides how it is linked; moved when whole, since another worker may be at it.
    unfinished = library.with_name(f"{library.stem}-{os.getpid()}.so")
    built.export_library(str(unfinished), cc=_LINKER)
    unfinished.replace(library)


PEER = Peer(
    name="tvm",
    title="TVM",
    description="Apache TVM's Relax, compiled by LLVM for this processor, untuned",
    install="pip install 'iree-harness[tvm]'",
    options=NoOptions,
    missing=_missing,
    version=partial(version, "apache-tvm"),
    refuses=refuses_onnx,
    prepare=prepare,
)
