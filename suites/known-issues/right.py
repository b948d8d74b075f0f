"""Write the right outputs of the known issues beside their programs: `python suites/known-issues/right.py`.

numpy computes them from the arguments that the suite gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.models.inputs import make_array
from harness.suite.load import load_suite

Array = NDArray[Any]

HERE = Path(__file__).parent
SUITE = HERE.parent / "known-issues.toml"


def depth_to_space(x: Array) -> Array:
    """As ONNX defines the CRD mode: channels are (channel, row, column)."""
    batch, channels, height, width = x.shape
    blocks = x.reshape(batch, channels // 4, 2, 2, height, width).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(batch, channels // 4, 2 * height, 2 * width)


def prelu(x: Array, slope: Array) -> Array:
    """Negative values times their channel's slope."""
    return np.where(x < 0, x * slope[:, None, None], x)


def repeated_sum(x: Array, weights: Array, start: Array) -> Array:
    """Twice x := start + x @ weights."""
    once = start + x @ weights
    return np.asarray(start + once @ weights)


def inserted(x: Array, whole: Array) -> Array:
    """The last columns replaced."""
    return np.concatenate([whole[..., : -x.shape[-1]], x + x], axis=-1)


RIGHT: dict[str, Callable[..., Array | tuple[Array, ...]]] = {
    "depth-to-space": depth_to_space,
    "prelu": prelu,
    "prelu-wide": prelu,
    "if-ranks": lambda x, _: x.max(),
    "strided-convolution": lambda x, filter_: np.einsum("nct,fct->nf", x[..., :3], filter_)[..., None],
    "reverse": lambda x: x[::-1],
    "dynamic-padding": lambda x: np.pad(np.arange(2 * len(x), dtype=np.float32), 1),
    "padding": lambda x: np.pad(np.exp(x), 1),
    "loop": repeated_sum,
    "gather": lambda rows, at: rows[np.clip(at[:, 0], 0, 5)],
    "insertion": inserted,
    "two-stores": lambda x, a, b: (inserted(x, a), inserted(x, b)),
}


def right_outputs() -> Iterator[tuple[Path, Array]]:
    """Each file of right outputs, in order, with what belongs into it."""
    for model in load_suite(SUITE).models:
        if model.name not in RIGHT:
            continue
        outputs = RIGHT[model.name](*(make_array(one) for one in model.inputs))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        yield from zip(model.expected, (np.asarray(one, np.float32, order="C") for one in outputs), strict=True)


if __name__ == "__main__":
    for file, values in right_outputs():
        np.save(file, values)
