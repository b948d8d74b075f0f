"""NumPy beside IREE: the layers of the builder `mlp`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.models import mlp
from harness.peers import Peer, PeerModel, Ready, Setting
from harness.peers.peer import Array


@dataclass(frozen=True, kw_only=True)
class Options:
    """`transposed`: keep the weights as the model stores them, and let the product turn them."""

    transposed: bool = False


def refuses(model: PeerModel, options: Options) -> str | None:
    """What the suite's report says of models that this peer has no program for."""
    if model.builder != "mlp" or model.params["dtype"] != "f32":
        return "it has only the f32 layers of the builder mlp"
    return None


def prepare(model: PeerModel, arguments: Sequence[Array], setting: Setting, options: Options) -> Ready:
    """Runs in a process of its own, which is pinned, and whose OPENBLAS_NUM_THREADS is set."""
    params = mlp.Parameters(**model.params)
    rows = params.batch, params.width
    layers = [
        (weight.T if options.transposed else np.ascontiguousarray(weight.T), bias, np.empty(rows, np.float32))
        for weight, bias in mlp.weights(params)
    ]

    def call() -> None:
        x = arguments[0]
        for weight, bias, y in layers:
            np.matmul(x, weight, out=y)
            np.add(y, bias, out=y)
            x = np.maximum(y, 0, out=y)

    return Ready(call=call, outputs=lambda: [layers[-1][2].copy()])


PEER = Peer(
    name="numpy",
    title="NumPy",
    description="NumPy's matmul, of the BLAS that it is built with",
    install="pip install numpy",
    options=Options,
    missing=lambda: None,
    version=lambda: np.__version__,
    refuses=refuses,
    prepare=prepare,
)
