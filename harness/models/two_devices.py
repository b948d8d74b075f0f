"""Programs that say on which of two devices, `dev_a` and `dev_b`, their parts run.

What the names mean is said when they are compiled: --iree-hal-target-device=dev_a=local[0] and so on. Arguments come
from `dev_a`, and results go back there.

    whole      an MLP without a word about devices: for one device, and for programs that choose theirs when they start
    pipeline   the MLP's first half on dev_a and its second half on dev_b; the rows go through in `batches` parts, and
               no part waits for another, so that both devices could be at work at a time
    transfers  the MLP's layers take turns: the first on dev_a, the second on dev_b, the third on dev_a, ...
"""

from dataclasses import asdict, dataclass
from typing import Literal

from harness.models.builder import Builder, BuiltModel, Count, Seed, Size, render
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


def _route(params: Parameters) -> list[int | str]:
    """What a part of the input goes through: layers, by their numbers, and devices that it is moved to."""
    steps: list[int | str] = []
    here = _DEVICES[0]
    for layer in range(params.layers):
        second_half = 2 * layer >= params.layers
        there = _DEVICES[second_half if params.kind == "pipeline" else layer % 2]
        if params.kind != "whole" and there != here:
            steps.append(there)
            here = there
        steps.append(layer)
    return steps if here == _DEVICES[0] else [*steps, _DEVICES[0]]


def build(params: Parameters) -> BuiltModel:
    """Write the layers, part by part, with random weights of the seed."""
    drawn = weights(Mlp(layers=params.layers, width=params.width, seed=params.seed))
    matrices = [matrix for matrix, _ in drawn]
    text = render("two_devices.mlir", **asdict(params), matrices=matrices, route=_route(params))
    shape = (params.batches * params.rows, params.width)
    return BuiltModel(text=text, function="main", inputs=(Input(shape=shape, seed=params.seed),))


BUILDER = Builder(
    name="two-devices",
    description="An MLP whose parts run on one or two devices: in halves, in turns, or as one.",
    parameters=Parameters,
    build=build,
)
