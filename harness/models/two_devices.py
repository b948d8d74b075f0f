"""Programs that say on which of two devices, `dev_a` and `dev_b`, their parts run.

What the names mean is said when they are compiled: --iree-hal-target-device=dev_a=local[0] and so on. Arguments come
from `dev_a`, and results go back there.

    whole      an MLP without a word about devices: for one device, and for programs that choose theirs when they start
    pipeline   the MLP's first half on dev_a and its second half on dev_b; the rows go through in `batches` parts, and
               no part waits for another, so that both devices could be at work at a time
    transfers  the MLP's layers take turns: the first on dev_a, the second on dev_b, the third on dev_a, ...
"""

from dataclasses import dataclass
from typing import Literal

from harness.models.builder import Builder, BuiltModel, Count, Seed, Size
from harness.models.mlir_text import Body, Tensor
from harness.models.mlp import Parameters as Mlp
from harness.models.mlp import weights
from harness.models.model import Input

_DEVICES = ("dev_a", "dev_b")


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Kind and sizes; all tensors are f32."""

    kind: Literal["whole", "pipeline", "transfers"] = "pipeline"  # See above; all kinds compute the same
    layers: Count = 4  # Of the MLP: a product with a weight matrix and a ReLU each
    width: Size = 256  # Inputs and outputs of each layer
    rows: Size = 64  # Of each part
    batches: Count = 1  # In how many parts the input goes through
    seed: Seed = 0  # Of the weights and of the input


def device_of(params: Parameters, layer: int) -> str | None:
    """The device on which a layer runs; None: the program does not say."""
    if params.kind == "whole":
        return None
    if params.kind == "pipeline":
        return _DEVICES[2 * layer >= params.layers]
    return _DEVICES[layer % 2]


def build(params: Parameters) -> BuiltModel:
    """Write the layers, part by part, with random weights of the seed."""
    body = Body("f32")
    shape = (params.batches * params.rows, params.width)
    argument = Tensor("%arg0", shape, "f32")
    zeros = body.zeros((params.rows, params.width))
    matrices = [
        body.weight(f"layer{layer}_weight", values)
        for layer, (values, _) in enumerate(weights(Mlp(layers=params.layers, width=params.width, seed=params.seed)))
    ]
    parts = []
    for part in range(params.batches):
        x = _slice(body, argument, params, part)
        here: str | None = _DEVICES[0]
        for layer, matrix in enumerate(matrices):
            x, here = _move(body, x, here, device_of(params, layer))
            x = _layer(body, x, matrix, zeros)
        x, _ = _move(body, x, here, _DEVICES[0])
        parts.append(x)
    text = body.module("", argument, ["%zero = arith.constant 0.0 : f32"], _join(body, parts, shape))
    return BuiltModel(text=text, function="main", inputs=(Input(shape=shape, seed=params.seed),))


def _slice(body: Body, x: Tensor, params: Parameters, part: int) -> Tensor:
    if params.batches == 1:
        return x
    shape = (params.rows, params.width)
    kind = Tensor("", shape, "f32").type
    where = f"[{part * params.rows}, 0] [{params.rows}, {params.width}] [1, 1]"
    return body.add(f"tensor.extract_slice {x.name}{where} : {x.type} to {kind}", shape)


def _move(body: Body, x: Tensor, here: str | None, there: str | None) -> tuple[Tensor, str | None]:
    """The tensor where it is wanted, and where that is."""
    if there is None or here == there:
        return x, here
    moved = body.add(f"flow.tensor.transfer {x.name} : {x.type} to #hal.device.promise<@{there}>", x.shape)
    return moved, there


def _layer(body: Body, x: Tensor, matrix: Tensor, zeros: Tensor) -> Tensor:
    """relu(x * matrix)."""
    product = body.matmul(x, matrix, zeros)
    return body.add(f"arith.maximumf {product.name}, {zeros.name} : {x.type}", x.shape)


def _join(body: Body, parts: list[Tensor], shape: tuple[int, int]) -> Tensor:
    if len(parts) == 1:
        return parts[0]
    names, types = ", ".join(part.name for part in parts), ", ".join(part.type for part in parts)
    return body.add(f"tensor.concat dim(0) {names} : ({types}) -> {Tensor('', shape, 'f32').type}", shape)


BUILDER = Builder(
    name="two-devices",
    description="An MLP whose parts run on one or two devices: in halves, in turns, or as one.",
    parameters=Parameters,
    build=build,
)
